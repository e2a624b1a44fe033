"""Routes write the bytes that copies through a staging tensor write."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_programs import cases

from abele.backends.codelets.calls import Scratch, run_calls
from abele.backends.codelets.numerics import Placed
from abele.backends.evaluate.blocks import Blocks, bind_copy, read_blocks
from abele.backends.host import copies as host_copies
from abele.backends.host.copies import HostScratch
from abele.backends.host.routes import bind_routes
from abele.ir.geometry.blocks import gather
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

pytestmark = pytest.mark.each_form

ROW = 1 << 16
TILES = 40


@dataclass(frozen=True)
class Copy:
    """Sources with their moves, what they are copied to, and the dtype."""

    sources: tuple[Layout, ...]
    moves: tuple[Space, ...] | None
    target: Layout
    dtype: str


@st.composite
def held(draw: st.DrawFn, shape: tuple[int, ...]) -> Layout:
    """A layout in which each element has one owner, perhaps with replicas.

    Along some axes, it is a ring: the first block begins anywhere, and the last one goes on with
    the first elements.
    """
    order = draw(st.permutations(range(len(shape))))
    left = 12
    cuts = []
    for d in order:
        grain = draw(st.integers(1, 2))
        parts = draw(st.integers(1, max(1, min(left, -(-shape[d] // grain)))))
        cuts.append(Cut(shape[d], parts, grain if parts > 1 else 1))
        left //= parts
    access = identity_map(tuple(order.index(d) for d in range(len(shape))), shape)
    rings = [draw(st.sampled_from((0, 0, 0, n // 2, n - 1, -1))) for n in shape]
    access = AccessMap(
        tuple(
            replace(axis, offset=first, outside="wrap") if first else axis
            for axis, first in zip(access.axes, rings, strict=True)
        )
    )
    if draw(st.booleans()):
        cuts.insert(0, Cut(2, 2))
        access = access.renamed({i: i + 1 for i in range(len(shape))})
    return Layout(tuple(cuts), access, draw(st.integers(0, 4)))


@st.composite
def moves(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[Layout, ...], tuple[Space, ...]]:
    """Tensors, permuted, sliced, repeated, padded, put side by side along an axis."""
    joined = draw(st.integers(0, len(shape) - 1))
    first = draw(st.integers(1, shape[joined]))
    pieces = [(0, first)] + ([(first, shape[joined] - first)] if first < shape[joined] else [])
    sources, spaces = [], []
    fill = draw(st.sampled_from([0.0, 0.0, 1.0]))
    for offset, length in pieces:
        sizes = tuple(length if d == joined else n for d, n in enumerate(shape))
        order = draw(st.permutations(range(len(shape))))
        axes = []
        for d in order:
            step = draw(st.sampled_from([1, 1, 2, -1]))
            reach = abs(step) * (sizes[d] - 1) + 1
            begin = draw(st.integers(-1, 2))
            outside = draw(st.sampled_from(["fill", "edge", "wrap"]))
            size = max(int(outside != "fill"), reach + draw(st.integers(-1, 2)))
            if draw(st.integers(0, 4)) == 0 and sizes[d] == 1:
                axes.append(AxisMap(2, (), 1))
                continue
            at = begin if step > 0 else reach - 1 + begin
            axes.append(AxisMap(size, ((d, step),), at, outside=outside))
        operand = AccessMap(tuple(axes), fill)
        result = AccessMap(
            tuple(AxisMap(n, ((d, 1),), offset if d == joined else 0) for d, n in enumerate(shape))
        )
        dims = tuple(Dim(f"d{d}", n) for d, n in enumerate(sizes))
        sources.append(draw(held(operand.shape)))
        spaces.append(Space(dims, (operand,), (result,)))
    return tuple(sources), tuple(spaces)


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    """To an operand or a result of a generated program."""
    case = draw(cases(dtypes=("float32", "float32", "float16", "int8", "float64")))
    target = draw(st.sampled_from([*case.layouts()]))
    dtype = case.dtypes[0].name
    shape = target.shape
    if len(shape) > 1 and draw(st.booleans()):
        shape = (shape[0] * shape[1], *shape[2:])
    if shape and draw(st.booleans()):
        return Copy(*draw(moves(shape)), target, dtype)
    return Copy((draw(held(shape)),), None, target, dtype)


def written(copy: Copy, fast: bool) -> np.ndarray | None:
    """The bytes of all tiles after a copy; None if it does not fit."""
    memory = np.random.default_rng(0).integers(0, 256, (TILES, ROW), np.uint8)
    address = 8
    found = []
    for layout in (*copy.sources, copy.target):
        found.append(Blocks(Placed(memory, address, np.dtype(copy.dtype)), layout))
        address += -(-layout.block_elements * np.dtype(copy.dtype).itemsize // 8) * 8
        assert layout.first_tile + layout.cells <= TILES
    assert address <= ROW
    *sources, target = found
    if fast:
        run_calls(host_copies.bind_copy(sources, copy.moves, target, HostScratch()))
    else:
        run_calls(bind_copy(sources, copy.moves, target, Scratch()))
    return memory


@settings(max_examples=150, deadline=None)
@given(copies())
def test_routes_write_the_same_bytes_as_copies(copy: Copy):
    plain, quick = (written(copy, fast) for fast in (False, True))
    assert (plain == quick).all()


@pytest.mark.parametrize("fast", [False, True])
def test_a_ring_gives_each_reader_the_elements_that_it_names(fast: bool):
    ring = AccessMap((AxisMap(8, ((0, 2), (1, 1)), 2, outside="wrap"),))
    source = Layout((Cut(4, 4), Cut(2)), ring)
    target = Layout((Cut(8),), identity_map((0,), (8,)))
    memory = np.zeros((4, 64), np.uint8)
    held, filled = (
        Blocks(Placed(memory, address, np.dtype(np.float32)), layout)
        for address, layout in ((0, source), (8, target))
    )
    # Element 2 is the first of tile 0; tile 3 has elements 0 and 1.
    memory[:, :8] = np.array([[2, 3], [4, 5], [6, 7], [0, 1]], np.float32).view(np.uint8)
    bind, scratch = (host_copies.bind_copy, HostScratch()) if fast else (bind_copy, Scratch())
    run_calls(bind([held], None, filled, scratch))
    assert memory[0, 8:40].view(np.float32).tolist() == [*range(8)]
    assert read_blocks(held).tolist() == [*range(8)]
    assert gather(memory, 0, source, np.dtype(np.float32)).tolist() == [*range(8)]


def test_a_copy_too_large_for_lists_of_routes_is_staged(monkeypatch: pytest.MonkeyPatch):
    source = Layout((Cut(6, 3), Cut(4)), identity_map((0, 1), (6, 4)))
    target = Layout((Cut(6), Cut(4, 2)), identity_map((0, 1), (6, 4)))
    copy = Copy((source,), None, target, "float32")
    routed = written(copy, True)
    monkeypatch.setattr(host_copies, "MOST_ROUTED", 23)
    monkeypatch.setattr(host_copies, "bind_routes", None)
    assert (written(copy, True) == routed).all()


def test_pieces_are_joined_in_a_view_with_more_axes():
    row = Layout((Cut(2),), identity_map((0,), (2,)))
    target = Layout((Cut(2), Cut(2)), AccessMap((AxisMap(1), *identity_map((0, 1), (2, 2)).axes)))
    spaces = [
        Space(
            (Dim("i", 2),),
            (AccessMap((AxisMap(2, ((0, 1),)),)),),
            (AccessMap((AxisMap(4, ((0, 1),), at),)),),
        )
        for at in (0, 2)
    ]
    copy = Copy((row, row), tuple(spaces), target, "int32")
    assert (written(copy, False) == written(copy, True)).all()


def bound(source: Layout, target: Layout) -> bool:
    """Whether there are routes."""
    memory = np.zeros((TILES, ROW), np.uint8)
    there = Placed(memory, 0, np.dtype(np.float32))
    return bind_routes([(there, source)], None, (there, target)) is not None


def test_axes_may_be_split_and_merged_where_parts_keep_to_them():
    grid = (Cut(12, 3), Cut(5))
    flat = Layout(grid, identity_map((0, 1), (12, 5)))
    split = Layout((Cut(3, 3), Cut(4), Cut(5)), identity_map((0, 1, 2), (3, 4, 5)))
    assert bound(flat, split)
    assert bound(split, flat)


def test_without_sums_of_offsets_there_are_no_routes():
    flat = Layout((Cut(12, 5),), identity_map((0,), (12,)))
    split = Layout((Cut(3, 3), Cut(4)), identity_map((0, 1), (3, 4)))
    assert not bound(flat, split)
    diagonal = AccessMap((AxisMap(3, ((0, 1),)), AxisMap(3, ((0, 1),))))
    square = Layout((Cut(3), Cut(3)), identity_map((0, 1), (3, 3)))
    assert not bound(square, Layout((Cut(3, 3),), diagonal))
