from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lowered_stablehlo import (
    applied,
    compared,
    lowered,
    number,
    operations,
    results_of,
    returned,
    values_of,
)
from numpy.typing import NDArray

from abele.ir.support.errors import InputError

Array = NDArray[Any]
NAN = "0x7FC00000"


def sort(comparator: str, elements: list[str], shape: str = "6", axis: int = 0) -> str:
    """A sort of %x0, %x1, ... by a region, whose arguments are %a0, %b0, %a1, %b1, ..."""
    names = [f"x{i}" for i in range(len(elements))]
    types = [f"tensor<{shape}x{e}>" for e in elements]
    arguments = ", ".join(
        f"%{side}{i}: tensor<{e}>" for i, e in enumerate(elements) for side in "ab"
    )
    made = [f"y{i}" for i in range(len(elements))]
    return (
        f'{", ".join("%" + each for each in made)} = "stablehlo.sort"'
        f"({', '.join('%' + each for each in names)}) "
        f"<{{dimension = {axis} : i64, is_stable = true}}> ({{ ^bb0({arguments}):\n{comparator}"
        + returned(["t"], ["tensor<i1>"])
        + f"}}) : ({', '.join(types)}) -> ({', '.join(types)})\n"
        + returned(made, types, "func.return")
    )


def signature(elements: list[str], shape: str = "6") -> tuple[str, str]:
    """The arguments and the results of @main around a sort."""
    types = [f"tensor<{shape}x{e}>" for e in elements]
    return ", ".join(f"%x{i}: {t}" for i, t in enumerate(types)), ", ".join(types)


def canonical(name: str, made: str) -> str:
    """One zero and one NaN for all, as JAX writes it."""
    return (
        number(f"z{made}", "0.0", "f32")
        + compared(name, f"z{made}", "EQ", "f32", f"e{made}")
        + f'%s{made} = "stablehlo.select"(%e{made}, %z{made}, %{name}) : '
        "(tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>\n"
        + compared(name, name, "NE", "f32", f"n{made}")
        + number(f"q{made}", NAN, "f32")
        + f'%{made} = "stablehlo.select"(%n{made}, %q{made}, %s{made}) : '
        "(tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>\n"
    )


@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_sort_of_one_operand_is_a_sort_of_nn(direction: str, turned: bool) -> None:
    sides = ("b0", "a0") if turned else ("a0", "b0")
    body = sort(compared(*sides, direction, "i32", "t"), ["i32"])
    module = lowered(body, *signature(["i32"]))
    assert operations(module) == ["nn.sort"]
    given = np.array([3, -1, 4, 1, -5, 9], np.int32)
    (found,) = values_of(module, given)
    descending = (direction == "GT") != turned
    np.testing.assert_array_equal(found, np.sort(given)[:: -1 if descending else 1])


def test_operands_are_reordered_together_by_several_keys() -> None:
    elements = ["i32", "f32", "i32"]
    comparator = (
        compared("a0", "b0", "GT", "i32", "p")
        + compared("a0", "b0", "EQ", "i32", "q")
        + compared("a1", "b1", "LT", "f32", "r")
        + applied("stablehlo.and", ["q", "r"], "tensor<i1>", "u")
        + applied("stablehlo.or", ["p", "u"], "tensor<i1>", "t")
    )
    first = np.array([1, 2, 1, 2, 1, 2], np.int32)
    second = np.array([0.5, 1, 0.25, -1, 0.5, 1], np.float32)
    place = np.arange(6, dtype=np.int32)
    found = results_of(sort(comparator, elements), *signature(elements), first, second, place)
    order = np.lexsort([second, -first])
    for made, given in zip(found, (first, second, place), strict=True):
        np.testing.assert_array_equal(made, given[order])


def test_a_choice_between_two_comparisons_is_an_order_too() -> None:
    elements = ["i32", "i32"]
    comparator = (
        compared("a1", "b1", "EQ", "i32", "q")
        + compared("a0", "b0", "LT", "i32", "r")
        + compared("a1", "b1", "LT", "i32", "p")
        + '%t = "stablehlo.select"(%q, %r, %p) : '
        "(tensor<i1>, tensor<i1>, tensor<i1>) -> tensor<i1>\n"
    )
    first = np.array([5, 4, 3, 2, 1, 0], np.int32)
    second = np.array([1, 0, 1, 0, 1, 0], np.int32)
    found = results_of(sort(comparator, elements), *signature(elements), first, second)
    np.testing.assert_array_equal(found[0], first[np.lexsort([first, second])])


SPECIAL = np.array([0.0, np.nan, -0.0, -np.inf, -np.nan, 1.0], np.float32)


def test_floats_in_the_order_of_jax_have_one_zero_and_one_nan() -> None:
    comparator = (
        canonical("a0", "l")
        + canonical("b0", "r")
        + compared("l", "r", "LT", "f32", "t", "TOTALORDER")
    )
    place = np.arange(6, dtype=np.int32)
    body, outer = sort(comparator, ["f32", "i32"]), signature(["f32", "i32"])
    _, order = results_of(body, *outer, SPECIAL, place)
    np.testing.assert_array_equal(order, [3, 0, 2, 5, 1, 4])


def test_floats_in_total_order_have_two_zeros_and_two_nans() -> None:
    comparator = compared("a0", "b0", "LT", "f32", "t", "TOTALORDER")
    place = np.arange(6, dtype=np.int32)
    body, outer = sort(comparator, ["f32", "i32"]), signature(["f32", "i32"])
    _, order = results_of(body, *outer, SPECIAL, place)
    np.testing.assert_array_equal(order, [4, 3, 2, 0, 5, 1])


def test_truth_values_and_inner_axes_are_sorted() -> None:
    body = sort(compared("a0", "b0", "LT", "i1", "t"), ["i1", "i32"], "2x3", 1)
    given = np.array([[True, False, True], [False, True, False]])
    place = np.arange(6, dtype=np.int32).reshape(2, 3)
    found = results_of(body, *signature(["i1", "i32"], "2x3"), given, place)
    np.testing.assert_array_equal(found[0], np.sort(given, axis=1))
    np.testing.assert_array_equal(found[1], [[1, 0, 2], [3, 5, 4]])


def test_any_other_comparison_compares_all_pairs() -> None:
    # By the distance from 2; equal distances keep their order.
    elements = ["i32", "i32"]
    comparator = (
        number("k", "2", "i32")
        + "".join(
            applied("stablehlo.subtract", [f"{side}0", "k"], "tensor<i32>", f"d{side}")
            + applied("stablehlo.abs", [f"d{side}"], "tensor<i32>", f"m{side}")
            for side in "ab"
        )
        + compared("ma", "mb", "LT", "i32", "t")
    )
    given = np.array([[5, 2, 0, -1], [4, 3, 1, 9]], np.int32)
    place = np.arange(8, dtype=np.int32).reshape(2, 4)
    for axis in (0, 1):
        body = sort(comparator, elements, "2x4", axis)
        found = results_of(body, *signature(elements, "2x4"), given, place)
        order = np.argsort(abs(given - 2), axis=axis, kind="stable")
        for made, each in zip(found, (given, place), strict=True):
            np.testing.assert_array_equal(made, np.take_along_axis(each, order, axis))


def test_a_comparison_of_very_many_parts_is_no_deep_recursion() -> None:
    # t0 = a < b; t(i + 1) = a < b, or a == b and t(i).
    parts = [compared("a0", "b0", "LT", "i32", "p"), compared("a0", "b0", "EQ", "i32", "q")]
    parts.append(applied("stablehlo.or", ["p", "p"], "tensor<i1>", "t0"))
    for i in range(1500):
        parts.append(applied("stablehlo.and", ["q", f"t{i}"], "tensor<i1>", f"u{i}"))
        parts.append(applied("stablehlo.or", ["p", f"u{i}"], "tensor<i1>", f"t{i + 1}"))
    parts.append(applied("stablehlo.or", ["t1500", "t1500"], "tensor<i1>", "t"))
    body = sort("".join(parts), ["i32"])
    given = np.array([3, 1, 2, 5, 4, 0], np.int32)
    (found,) = results_of(body, *signature(["i32"]), given)
    np.testing.assert_array_equal(found, np.sort(given))


@pytest.mark.parametrize("direction", ["LE", "GE"])
def test_a_comparison_that_holds_of_equal_elements_keeps_their_order(direction: str) -> None:
    elements = ["i32", "i32"]
    given, place = np.array([1, 0, 1, 2, 0, 1], np.int32), np.arange(6, dtype=np.int32)
    body = sort(compared("a0", "b0", direction, "i32", "t"), elements)
    _, order = results_of(body, *signature(elements), given, place)
    np.testing.assert_array_equal(
        order, np.argsort(given if direction == "LE" else -given, kind="stable")
    )


@pytest.mark.parametrize(
    "comparator",
    [
        # An or of two orders that is no lexicographic one, and one that asks another operand.
        compared("a0", "b0", "LT", "i32", "p")
        + compared("a1", "b1", "EQ", "i32", "q")
        + compared("a1", "b1", "LT", "i32", "r")
        + applied("stablehlo.and", ["q", "r"], "tensor<i1>", "u")
        + applied("stablehlo.or", ["p", "u"], "tensor<i1>", "t"),
        compared("a0", "b1", "LT", "i32", "t"),
    ],
)
def test_many_elements_by_another_comparison_are_refused_by_name(comparator: str) -> None:
    with pytest.raises(InputError, match=r"stablehlo\.sort.*an order by this comparison"):
        lowered(sort(comparator, ["i32", "i32"], "4096"), *signature(["i32", "i32"], "4096"))


def test_the_largest_elements_come_with_their_indices() -> None:
    body = (
        '%v, %i = "chlo.top_k"(%x) <{k = 3 : i64}> : (tensor<2x5xf32>) -> '
        "(tensor<2x3xf32>, tensor<2x3xi32>)\n"
        + returned(["v", "i"], ["tensor<2x3xf32>", "tensor<2x3xi32>"], "func.return")
    )
    given = np.array([[1, 3, 3, -1, 2], [np.nan, 0, np.inf, -0.0, -1]], np.float32)
    values, indices = results_of(
        body, "%x: tensor<2x5xf32>", "tensor<2x3xf32>, tensor<2x3xi32>", given
    )
    np.testing.assert_array_equal(indices, [[1, 2, 4], [0, 2, 1]])
    np.testing.assert_array_equal(values, np.take_along_axis(given, indices, 1))


def test_types_that_are_only_stored_are_sorted_in_wider_ones() -> None:
    given = np.array([3, -8, 7, 0, -1, 3], ml_dtypes.int4)
    body = sort(compared("a0", "b0", "LT", "i4", "t"), ["i4"])
    (found,) = results_of(body, *signature(["i4"]), given)
    np.testing.assert_array_equal(found.astype(np.int8), np.sort(given.astype(np.int8)))
