from __future__ import annotations

import numpy as np
import pytest
from lowered_stablehlo import applied, lowered, operations, results_of, returned

from abele.ir.support.errors import InputError
from abele.ir.upstream import VerifyException

X, UPDATES = "tensor<4x3xf32>", "tensor<2x3xf32>"
GIVEN = np.arange(12, dtype=np.float32).reshape(4, 3)


def scatter(region: str, end: str = "m") -> str:
    """Two rows of %u merged into %x at %i by a region on %a and %b."""
    return (
        f"""%0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
        index_vector_dim = 1>}}> ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        {region}"""
        + returned([end], ["tensor<f32>"])
        + f"}}) : ({X}, tensor<2x1xi32>, {UPDATES}) -> {X}\n"
        + returned(["0"], [X], "func.return")
    )


AROUND = (f"%x: {X}, %i: tensor<2x1xi32>, %u: {UPDATES}", X)


@pytest.mark.parametrize(
    ("region", "end", "merged"),
    [
        (applied("stablehlo.add", "ab", "tensor<f32>", "m"), "m", np.add),
        (applied("stablehlo.multiply", "ba", "tensor<f32>", "m"), "m", np.multiply),
        (applied("stablehlo.maximum", "ab", "tensor<f32>", "m"), "m", np.maximum),
        (applied("stablehlo.minimum", "ab", "tensor<f32>", "m"), "m", np.minimum),
        (applied("stablehlo.subtract", "ab", "tensor<f32>", "m"), "m", np.subtract),
        ("", "b", lambda old, new: new),
        ("", "a", lambda old, new: old),
    ],
)
def test_rows_are_merged_as_the_region_says(region: str, end: str, merged: object) -> None:
    updates = np.array([[2, -1, 5], [3, 3, 100]], np.float32)
    indices = np.array([[2], [9]], np.int32)
    (found,) = results_of(scatter(region, end), *AROUND, GIVEN, indices, updates)
    want = GIVEN.copy()
    assert callable(merged)
    want[2] = merged(GIVEN[2], updates[0])
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    "region",
    [
        applied("stablehlo.power", "ab", "tensor<f32>", "m"),
        applied("stablehlo.subtract", "ba", "tensor<f32>", "m"),
        applied("stablehlo.add", "bb", "tensor<f32>", "m"),
    ],
)
def test_other_merging_is_refused_by_name(region: str) -> None:
    with pytest.raises(InputError, match=r"stablehlo.scatter.*merging by this region"):
        lowered(scatter(region), *AROUND)


def dynamic(start: str) -> str:
    """A slice of two rows of %x, and %x with %u in the place of two rows."""
    return f"""{start}
        %z = "stablehlo.constant"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
        %0 = "stablehlo.dynamic_slice"(%x, %s, %z) <{{slice_sizes = array<i64: 2, 3>}}>
            : ({X}, tensor<i32>, tensor<i32>) -> {UPDATES}
        %1 = "stablehlo.dynamic_update_slice"(%x, %u, %s, %z)
            : ({X}, {UPDATES}, tensor<i32>, tensor<i32>) -> {X}
        """ + returned(["0", "1"], [UPDATES, X], "func.return")


@pytest.mark.parametrize("start", [-5, 0, 1, 2, 7])
def test_slices_that_would_reach_out_are_moved_inside(start: int) -> None:
    at = min(max(start, 0), 2)
    updates = -np.ones((2, 3), np.float32)
    want = GIVEN.copy()
    want[at : at + 2] = updates
    outer = f"{UPDATES}, {X}"
    free = f"%x: {X}, %u: {UPDATES}, %s: tensor<i32>"
    constant = f'%s = "stablehlo.constant"() <{{value = dense<{start}> : tensor<i32>}}> '
    constant += ": () -> tensor<i32>"
    found = results_of(dynamic(""), free, outer, GIVEN, updates, np.int32(start))
    known = results_of(dynamic(constant), f"%x: {X}, %u: {UPDATES}", outer, GIVEN, updates)
    for made in (found, known):
        np.testing.assert_array_equal(made[0], GIVEN[at : at + 2])
        np.testing.assert_array_equal(made[1], want)
    module = lowered(dynamic(constant), f"%x: {X}, %u: {UPDATES}", outer)
    assert "nn.gather" not in operations(module)


def test_a_gather_reads_rows() -> None:
    body = f"""%0 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<
        offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
        index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}}>
        : ({X}, tensor<5x1xi32>) -> tensor<5x3xf32>\n""" + returned(
        ["0"], ["tensor<5x3xf32>"], "func.return"
    )
    indices = np.array([[3], [0], [-2], [9], [1]], np.int32)
    (found,) = results_of(body, f"%x: {X}, %i: tensor<5x1xi32>", "tensor<5x3xf32>", GIVEN, indices)
    np.testing.assert_array_equal(found, GIVEN[[3, 0, 0, 3, 1]])


@pytest.mark.parametrize(
    ("axes", "indices", "why"),
    [
        ("[0], [0], [1], 1", "5x1", "axis 0 of the operand has 4 elements"),
        ("[0], [1], [1], 1", "4x1", "index_vector_dim 1 is a batching axis"),
        ("[0], [2], [1], 1", "4x1", "batching axes of the indices"),
        ("[0], [], [1], 1", "4x1", "batching axes of the indices has 0 entries"),
        ("[0], [0], [0], 1", "4x1", "axes of the operand"),
    ],
)
def test_batching_axes_that_do_not_fit_are_refused(axes: str, indices: str, why: str) -> None:
    operand, places, starts, vector = axes.split(", ")
    body = f"""%0 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<
        offset_dims = [1], operand_batching_dims = {operand},
        start_indices_batching_dims = {places}, start_index_map = {starts},
        index_vector_dim = {vector}>, slice_sizes = array<i64: 1, 3>}}>
        : ({X}, tensor<{indices}xi32>) -> tensor<{indices[0]}x3xf32>\n""" + returned(
        ["0"], [f"tensor<{indices[0]}x3xf32>"], "func.return"
    )
    with pytest.raises(VerifyException, match=why):
        lowered(body, f"%x: {X}, %i: tensor<{indices}xi32>", f"tensor<{indices[0]}x3xf32>")
