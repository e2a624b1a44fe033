from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.ir.geometry import blocks as blocks_module
from abele.ir.geometry.blocks import (
    block_view,
    fill_of,
    gather,
    iteration_view,
    moved,
    scatter,
)
from abele.ir.geometry.grid import shape_classes
from abele.ir.geometry.layout import canonical, placement_order, raw_layout
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space

from .strategies import (
    FILL,
    MOST_TILES,
    Cutting,
    cell_block,
    cuttings,
    shapes,
    tensors_and_cuttings,
)

F32 = np.dtype(np.float32)


def memory() -> np.ndarray:
    return np.zeros((MOST_TILES, 4096), np.uint8)


@given(tensors_and_cuttings(), st.sampled_from([0, blocks_module.SMALL_BYTES]))
def test_scatter_gives_every_cell_its_block_with_padding(
    example: tuple[np.ndarray, Cutting], small_bytes: int
):
    dense, cutting = example
    for layout in (cutting.layout(), canonical(cutting.layout())):
        tiles = memory()
        with mock.patch.object(blocks_module, "SMALL_BYTES", small_bytes):
            scatter(dense, tiles, 64, layout)
        for cls in shape_classes(layout.grid):
            blocks = block_view(tiles, 64, layout, F32, cls)
            for part in np.ndindex(*blocks.shape[: len(cls)]):
                cell = sum((r.first + p) * w for r, p, w in zip(cls, part, layout.weights))
                assert np.array_equal(blocks[part], cell_block(layout, cell, dense))


@given(tensors_and_cuttings())
def test_iteration_views_read_the_elements_of_the_access_map(example: tuple[np.ndarray, Cutting]):
    dense, cutting = example
    layout = cutting.layout()
    tiles = memory()
    scatter(dense, tiles, 0, layout)
    order = placement_order(len(cutting.dims), cutting.order)
    for cls in shape_classes(layout.grid):
        view = iteration_view(tiles, 0, layout, F32, cls)
        rank = len(cls)
        for position in list(np.ndindex(*view.shape))[:64]:
            point = [0] * rank
            for g, run in enumerate(cls):
                point[order[g]] = run.start + position[g] * run.size + position[rank + g]
            element = tuple(
                int(a.resolve(np.array(a.offset + sum(c * point[d] for d, c in a.terms))))
                for a in cutting.axes
            )
            expected = dense[element] if min(element, default=0) >= 0 else FILL
            assert view[position] == expected


def test_a_backward_window_without_elements_reads_nothing():
    # As the gradient of a convolution by its input reads, whose kernel has no elements.
    dims = (Dim("x", 1), Dim("kx", 0, "reduction"))
    access = AccessMap((AxisMap(1, ((1, -1),), 1, 2, "exact", "fill"),))
    layout = raw_layout(dims, access, (1, 1))
    (cls,) = shape_classes(layout.grid)
    assert iteration_view(memory()[:1, :4], 0, layout, F32, cls).shape == (1, 1, 1, 0)


@given(tensors_and_cuttings(windows=False))
def test_gather_undoes_scatter(example: tuple[np.ndarray, Cutting]):
    dense, cutting = example
    layout = cutting.layout()
    assert layout.is_partition
    tiles = memory()
    scatter(dense, tiles, 8, layout)
    assert np.array_equal(gather(tiles, 8, layout, F32), dense)


@given(shapes, st.data())
def test_copies_between_layouts_keep_the_tensor(shape: tuple[int, ...], data: st.DataObject):
    dense = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    tiles = memory()
    for _ in range(3):
        layout = data.draw(cuttings(shape, windows=False)).layout()
        scatter(dense, tiles, 0, layout)
        assert np.array_equal(gather(tiles, 0, layout, F32), dense)


def test_moves_transpose_and_concatenate():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(4.0).reshape(2, 2)

    def move(rows: int, offset: int) -> Space:
        dims = (Dim("i", 2), Dim("j", rows))
        source = AccessMap((AxisMap(2, ((0, 1),)), AxisMap(rows, ((1, 1),))))
        target = AccessMap((AxisMap(5, ((1, 1),), offset), AxisMap(2, ((0, 1),))))
        return Space(dims, (source,), (target,))

    result = moved((a, b), (move(3, 0), move(2, 3)))
    assert np.array_equal(result, np.concatenate([a.T, b.T]))


@settings(max_examples=50)
@given(st.integers(1, 9), st.integers(1, 3), st.sampled_from(["edge", "reflect", "wrap"]))
def test_moves_pad_as_numpy_does(n: int, pad: int, mode: str):
    if mode == "reflect" and pad >= n:
        pad = n - 1
    dense = np.arange(float(n))
    space = Space(
        (Dim("i", n + 2 * pad),),
        (AccessMap((AxisMap(n, ((0, 1),), -pad, outside=mode),)),),  # pyright: ignore
        (AccessMap((AxisMap(n + 2 * pad, ((0, 1),)),)),),
    )
    assert np.array_equal(moved((dense,), (space,)), np.pad(dense, pad, mode=mode))  # pyright: ignore


@pytest.mark.parametrize(
    ("fill", "dtype", "value"),
    [
        (300.0, np.uint8, 255),
        (-3.0, np.uint8, 0),
        (-300.0, np.int8, -128),
        (-1.0, np.uint64, 0),
        (float("inf"), np.int64, 2**63 - 1),
        (float("-inf"), np.int32, -(2**31)),
        (2.7, np.int32, 2),
        (-2.7, np.int32, -2),
        (float("-inf"), np.bool_, False),
        (2.5, np.float16, 2.5),
    ],
)
def test_a_fill_value_is_converted_to_the_dtype(fill: float, dtype: type, value: float):
    found = fill_of(fill, np.dtype(dtype))
    assert found == value
    assert found.dtype == dtype
