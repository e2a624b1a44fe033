from __future__ import annotations

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
from xdsl.ir import Operation

X, INDEX = "tensor<2xf32>", "tensor<i32>"


def loop(
    direction: str = "LT",
    *,
    first: str = "0",
    limit: str = "5",
    step: str = "1",
    swapped: bool = False,
    element: str = "i32",
) -> str:
    """A loop that counts, and adds %w, which it carries unchanged, to %x."""
    kind = f"tensor<{element}>"
    sides = ("l", "i") if swapped else ("i", "l")
    return (
        number("c", first, element)
        + f"""%0, %1, %2 = "stablehlo.while"(%c, %x, %w) ({{
        ^bb0(%i: {kind}, %a: {X}, %b: {X}):
        """
        + number("l", limit, element)
        + compared(*sides, direction, element, "t")
        + returned(["t"], ["tensor<i1>"])
        + f"}}, {{ ^bb1(%i: {kind}, %a: {X}, %b: {X}):\n"
        + number("s", step, element)
        + applied("stablehlo.add", ["i", "s"], kind, "n")
        + applied("stablehlo.add", ["a", "b"], X, "m")
        + returned(["n", "m", "b"], [kind, X, X])
        + f"}}) : ({kind}, {X}, {X}) -> ({kind}, {X}, {X})\n"
        + returned(["0", "1"], [kind, X], "func.return")
    )


@pytest.mark.parametrize(
    ("direction", "first", "limit", "step", "swapped", "iterations", "last"),
    [
        ("LT", "0", "5", "1", False, 5, 5),
        ("LE", "0", "5", "1", False, 6, 6),
        ("LT", "1", "6", "2", False, 3, 7),
        ("GT", "0", "5", "1", True, 5, 5),
        ("GE", "-2", "1", "3", True, 2, 4),
        ("LT", "9", "5", "1", False, 0, 9),
    ],
)
def test_a_loop_that_counts_has_a_known_number_of_iterations(
    direction: str,
    first: str,
    limit: str,
    step: str,
    swapped: bool,
    iterations: int,
    last: int,
) -> None:
    body = loop(direction, first=first, limit=limit, step=step, swapped=swapped)
    module = lowered(body, f"%x: {X}, %w: {X}", f"{INDEX}, {X}")
    assert "control.repeat" in operations(module)
    x, w = np.array([1, 2], np.float32), np.array([10, -1], np.float32)
    count, found = values_of(module, x, w)
    assert int(count) == last
    np.testing.assert_array_equal(found, x + iterations * w)


def test_a_value_that_no_iteration_changes_is_not_carried() -> None:
    module = lowered(loop(), f"%x: {X}, %w: {X}", f"{INDEX}, {X}")
    (repeat,) = [op for op in module.walk() if op.name == "control.repeat"]
    assert len(repeat.operands) == 1


@pytest.mark.parametrize(
    ("direction", "limit", "step", "element"),
    [
        ("NE", "5", "1", "i32"),
        ("LT", "-1", "-1", "i32"),
        # The counter wraps before it is above the limit.
        ("LE", "127", "1", "i8"),
    ],
)
def test_other_loops_ask_their_condition(
    direction: str, limit: str, step: str, element: str
) -> None:
    body = loop(direction, limit=limit, step=step, element=element)
    module = lowered(body, f"%x: {X}, %w: {X}", f"tensor<{element}>, {X}")
    assert "control.while" in operations(module)


def test_a_loop_ends_by_what_it_computes() -> None:
    body = (
        """%0 = "stablehlo.while"(%x) ({ ^bb0(%a: tensor<f32>):
        """
        + number("l", "100.0", "f32")
        + compared("a", "l", "LT", "f32", "t")
        + returned(["t"], ["tensor<i1>"])
        + "}, { ^bb1(%a: tensor<f32>):\n"
        + applied("stablehlo.add", ["a", "a"], "tensor<f32>", "n")
        + returned(["n"], ["tensor<f32>"])
        + "}) : (tensor<f32>) -> tensor<f32>\n"
        + returned(["0"], ["tensor<f32>"], "func.return")
    )
    for first in (3.0, 200.0):
        (found,) = results_of(body, "%x: tensor<f32>", "tensor<f32>", np.float32(first))
        assert float(found) == (192.0 if first < 100 else 200.0)


def branches(count: int) -> str:
    """The regions of a case, of which number i adds i to %x."""
    regions = [
        number("k", f"{i}.0", "f32")
        + applied("stablehlo.add", ["x", "k"], "tensor<f32>", "n")
        + returned(["n"], ["tensor<f32>"])
        for i in range(count)
    ]
    return ", ".join(f"{{ {each} }}" for each in regions)


def test_a_case_takes_the_last_region_for_a_number_that_none_has() -> None:
    end = returned(["0"], ["tensor<f32>"], "func.return")
    body = f'%0 = "stablehlo.case"(%i) ({branches(3)}) : ({INDEX}) -> tensor<f32>\n' + end
    module = lowered(body, f"%x: tensor<f32>, %i: {INDEX}", "tensor<f32>")
    for index, chosen in ((-1, 2), (0, 0), (1, 1), (2, 2), (7, 2)):
        (found,) = values_of(module, np.float32(10), np.int32(index))
        assert float(found) == 10 + chosen


def test_a_case_of_many_regions_nests_few_branches() -> None:
    end = returned(["0"], ["tensor<f32>"], "func.return")
    body = f'%0 = "stablehlo.case"(%i) ({branches(300)}) : ({INDEX}) -> tensor<f32>\n' + end
    module = lowered(body, f"%x: tensor<f32>, %i: {INDEX}", "tensor<f32>")
    for index, chosen in ((-1, 299), (0, 0), (128, 128), (298, 298), (2**31 - 1, 299)):
        (found,) = values_of(module, np.float32(0), np.int32(index))
        assert float(found) == chosen
    deepest = max(len(_around(op)) for op in module.walk() if op.name == "control.if")
    assert deepest == 9


def _around(op: Operation) -> list[Operation]:
    """The branches that an operation is in, itself among them."""
    found: list[Operation] = []
    each: Operation | None = op
    while each is not None:
        found += [each] if each.name == "control.if" else []
        each = each.parent_op()
    return found


def test_a_case_of_a_known_number_leaves_one_region() -> None:
    end = returned(["0"], ["tensor<f32>"], "func.return")
    for index, chosen in ((-1, 2), (1, 1)):
        body = number("i", str(index), "i32")
        body += f'%0 = "stablehlo.case"(%i) ({branches(3)}) : ({INDEX}) -> tensor<f32>\n' + end
        module = lowered(body, "%x: tensor<f32>", "tensor<f32>")
        assert "control.if" not in operations(module)
        (found,) = values_of(module, np.float32(10))
        assert float(found) == 10 + chosen


def test_an_if_takes_one_of_two_regions() -> None:
    end = returned(["0"], ["tensor<f32>"], "func.return")
    body = f'%0 = "stablehlo.if"(%p) ({branches(2)}) : (tensor<i1>) -> tensor<f32>\n' + end
    module = lowered(body, "%x: tensor<f32>, %p: tensor<i1>", "tensor<f32>")
    for condition in (True, False):
        (found,) = values_of(module, np.float32(10), np.bool_(condition))
        assert float(found) == 10 + (not condition)


def reading_loop(rows: int, iterations: int, step: int = 1) -> str:
    """A loop that adds a row of %t to %x, in each iteration one at its counter times a step."""
    table = f"tensor<{rows}x2xf32>"
    return (
        number("z", "0", "i32")
        + f"""%0, %1 = "stablehlo.while"(%z, %x) ({{ ^bb0(%i: {INDEX}, %a: {X}):
        """
        + number("l", str(iterations), "i32")
        + compared("i", "l", "LT", "i32", "t")
        + returned(["t"], ["tensor<i1>"])
        + f"}}, {{ ^bb1(%i: {INDEX}, %a: {X}):\n"
        + number("one", "1", "i32")
        + number("s", str(step), "i32")
        + applied("stablehlo.multiply", ["i", "s"], INDEX, "at")
        + f"""%r = "stablehlo.dynamic_slice"(%rows, %at, %z) <{{slice_sizes = array<i64: 1, 2>}}>
            : ({table}, {INDEX}, {INDEX}) -> tensor<1x2xf32>
        %row = "stablehlo.reshape"(%r) : (tensor<1x2xf32>) -> {X}
        """
        + applied("stablehlo.add", ["a", "row"], X, "m")
        + applied("stablehlo.add", ["i", "one"], INDEX, "n")
        + returned(["n", "m"], [INDEX, X])
        + f"}}) : ({INDEX}, {X}) -> ({INDEX}, {X})\n"
        + returned(["1"], [X], "func.return")
    )


@pytest.mark.parametrize(
    ("rows", "iterations", "step", "limited"),
    [(5, 5, 1, False), (5, 6, 1, True), (9, 5, 2, False), (8, 5, 2, True), (5, 5, -1, True)],
)
def test_a_counter_that_stays_inside_needs_no_limits(
    rows: int, iterations: int, step: int, limited: bool
) -> None:
    body = reading_loop(rows, iterations, step)
    module = lowered(body, f"%rows: tensor<{rows}x2xf32>, %x: {X}", X)
    assert bool({"nn.min", "nn.max"} & {*operations(module)}) == limited
    table = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    (found,) = values_of(module, table, np.zeros(2, np.float32))
    places = np.clip(np.arange(iterations) * step, 0, rows - 1)
    np.testing.assert_array_equal(found, table[places].sum(0))
