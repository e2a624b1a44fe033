"""The fragments of a copy, against every element of every block followed."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry.blocks import moved
from abele.ir.geometry.fragments import Fragments, fragments, most_fragments
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout, block_layout, linear_layout
from abele.ir.geometry.overlap import overlap
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

from .strategies import cell_indices, shapes


def places(layout: Layout, cell: int) -> dict[int, int]:
    """The place in a cell's block of each element of the tensor, row-major numbers both."""
    axes = cell_indices(layout, cell)
    found: dict[int, int] = {}
    for at in np.ndindex(*(len(each) for each in axes)):
        index = [each[k] for each, k in zip(axes, at, strict=True)]
        if min(index, default=0) >= 0:
            element = int(np.ravel_multi_index(index, layout.shape))
            found[element] = sum(k * s for k, s in zip(at, layout.strides, strict=True))
    return found


def runs(pairs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Pairs of places (in the block that is filled, in the block that is read) as runs on both
    sides."""
    found: list[list[tuple[int, int]]] = []
    for pair in sorted(pairs):
        follows = found and all(b - a == 1 for a, b in zip(found[-1][-1], pair, strict=True))
        found[-1:] = [[*found[-1], pair]] if follows else [*found[-1:], [pair]]
    return found


def by_brute_force(source: Layout, destination: Layout, names: np.ndarray) -> Fragments:
    """names[e]: the source's element behind element e of the destination, or -1."""
    held = [places(source, cell) for cell in range(source.cells)]
    owner = {e: cell for cell in reversed(range(source.cells)) for e in held[cell]}
    received = np.zeros(destination.cells, np.int64)
    moves = np.zeros_like(received)
    sent: set[tuple[int, tuple[int, ...]]] = set()
    for cell in range(destination.cells):
        tile = destination.tiles.of(cell)
        here = held[source.tiles.cell_on(tile)] if tile in source.tiles else {}
        of_sender: dict[int, list[tuple[int, int]]] = {}
        for e, place in places(destination, cell).items():
            name = int(names[e])
            if name >= 0 and name not in here:
                of_sender.setdefault(owner[name], []).append((place, held[owner[name]][name]))
        filled: list[tuple[int, int]] = []
        for sender, pairs in of_sender.items():
            for run in runs(pairs):
                filled.append((run[0][0], run[-1][0]))
                sent.add((sender, tuple(read for _, read in run)))
        filled.sort()
        received[cell] = len(filled)
        moves[cell] = bool(filled) + sum(a[1] + 1 != b[0] for a, b in pairwise(filled))
    counts = np.bincount([cell for cell, _ in sent], minlength=source.cells)
    return Fragments(received, moves, counts)


def check(source: Layout, destination: Layout, names: np.ndarray, move: Space | None = None):
    shared = overlap(source, destination, move)
    found, expected = fragments(shared), by_brute_force(source, destination, names)
    assert found.received.tolist() == expected.received.tolist()
    most_received, most_sent = most_fragments(shared)
    assert (found.received <= most_received).all()
    assert (found.sent <= most_sent).all()
    return found, expected


@st.composite
def blocks(draw: st.DrawFn, shape: tuple[int, ...], *, halo: bool = False) -> Layout:
    """A tensor cut along its axes, with windows that overlap if halo, and perhaps replicas."""
    parts = tuple(draw(st.integers(1, min(n, 3))) for n in shape)
    copies = draw(st.sampled_from((1, 1, 2)))
    wide = [draw(st.integers(0, 1)) if halo else 0 for _ in shape]
    axes = tuple(
        AxisMap(n, ((i, 1), (len(shape) + i, 1)), -w, outside="fill")
        if w
        else AxisMap(n, ((i, 1),))
        for i, (n, w) in enumerate(zip(shape, wide, strict=True))
    )
    grid = (
        *(Cut(n, p) for n, p in zip(shape, parts, strict=True)),
        *(Cut(2 * w + 1) for w in wide),
        Cut(copies, copies),
    )
    return Layout(grid, AccessMap(axes), draw(st.integers(0, 3)))


@given(shapes, st.data())
def test_a_block_arrives_in_runs_on_both_sides(shape: tuple[int, ...], data: st.DataObject):
    source = data.draw(blocks(shape))
    destination = data.draw(blocks(shape, halo=True))
    found, expected = check(source, destination, np.arange(prod(shape)))
    assert (found.places <= found.received).all()
    assert (found.places >= expected.places).all()
    assert (found.sent >= 1)[expected.sent > 0].all()
    if not source.replica_dims and all(axis.outside == "none" for axis in destination.access.axes):
        assert found.sent.tolist() == expected.sent.tolist()


@pytest.mark.parametrize(("cut", "count"), [((1, 2), 8), ((2, 1), 2)])
def test_a_cut_along_the_rows_breaks_every_row(cut: tuple[int, int], count: int):
    source = block_layout((4, 6), cut, first_tile=1)
    found = fragments(overlap(source, block_layout((4, 6), (1, 1))))
    assert found.received.tolist() == [count]
    assert found.sent.tolist() == [count // 2] * 2
    # Whatever its fragments are, the block fills up from its beginning to its end.
    assert found.places.tolist() == [1]


def test_a_transposed_block_arrives_element_by_element():
    dims = (Dim("i", 4), Dim("j", 6))
    turn = Space(dims, (identity_map((0, 1), (4, 6)),), (identity_map((1, 0), (6, 4)),))
    source, destination = block_layout((4, 6), (1, 1), first_tile=2), block_layout((6, 4), (2, 1))
    names = moved((np.arange(24).reshape(4, 6),), (turn,)).ravel()
    found, expected = check(source, destination, names, turn)
    assert found.received.tolist() == [12, 12]
    assert found.sent.tolist() == expected.sent.tolist() == [24]


def test_axes_of_one_element_have_no_order():
    dims = (Dim("i", 1), Dim("j", 6))
    turn = Space(dims, (identity_map((0, 1), (1, 6)),), (identity_map((1, 0), (6, 1)),))
    source, destination = block_layout((1, 6), (1, 1), first_tile=1), block_layout((6, 1), (1, 1))
    assert fragments(overlap(source, destination, turn)).received.tolist() == [1]


def test_a_block_of_whole_rows_is_one_fragment_of_a_tensor_spread_in_row_major_order():
    spread = linear_layout((6, 8), 4, 3, grain_bytes=64)
    assert spread.cells == 3
    rows = block_layout((6, 8), (3, 1), first_tile=3)
    found = fragments(overlap(spread, rows))
    assert (found.received.tolist(), found.sent.tolist()) == ([1, 1, 1], [1, 1, 1])
    columns = block_layout((6, 8), (1, 2), first_tile=3)
    check(spread, columns, np.arange(48))


def test_tiles_that_want_the_same_hear_one_send():
    source = block_layout((8,), (1,))
    everybody = Layout((Cut(8), Cut(4, 4)), identity_map((0,), (8,)), first_tile=1)
    found = fragments(overlap(source, everybody))
    assert (found.received.tolist(), found.sent.tolist()) == ([1] * 4, [1])
