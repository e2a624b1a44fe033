from collections import Counter
from dataclasses import replace
from itertools import product
from math import prod
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry import overlap as overlap_module
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout, canonical, linear_layout
from abele.ir.geometry.overlap import (
    FEW_PAIRS,
    Overlap,
    SharedElements,
    linear_groups,
    overlap,
)
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

from .strategies import cell_indices, cuttings, shapes


def elements(layout: Layout, cell: int) -> list[int]:
    """Row-major numbers of the elements in a cell's block, repeats included, padding left out."""
    if not layout.shape:
        return [0]
    indices = cell_indices(layout, cell)
    grid = np.stack(np.meshgrid(*indices, indexing="ij"), -1).reshape(-1, len(indices))
    inside = grid[(grid >= 0).all(1)]
    return [int(np.ravel_multi_index(tuple(e), layout.shape)) for e in inside]


def shared_by_brute_force(
    source: Layout, destination: Layout, names: np.ndarray
) -> tuple[Counter[tuple[int, int]], list[int], list[int]]:
    """Elements that pairs of cells share; names[e] is the source's element behind e, or -1."""
    owner: dict[int, int] = {}
    for cell in range(source.cells):
        for element in elements(source, cell):
            owner.setdefault(element, cell)
    pairs: Counter[tuple[int, int]] = Counter()
    spoken: dict[int, set[int]] = {cell: set() for cell in range(source.cells)}
    wanted: list[int] = []
    for cell in range(destination.cells):
        behind = [int(names[e]) for e in elements(destination, cell)]
        wanted.append(sum(e >= 0 for e in behind))
        pairs.update((owner[e], cell) for e in behind if e >= 0)
        for e in behind:
            if e >= 0:
                spoken[owner[e]].add(e)
    return pairs, wanted, [len(spoken[cell]) for cell in range(source.cells)]


def held_by_brute_force(source: Layout, destination: Layout, names: np.ndarray, cell: int) -> int:
    """Elements of a destination cell that its own tile has in the source, replica or not."""
    tile = destination.tiles.of(cell)
    if tile not in source.tiles:
        return 0
    there = set(elements(source, source.tiles.cell_on(tile)))
    return sum(int(names[e]) in there for e in elements(destination, cell))


def check(source: Layout, destination: Layout, names: np.ndarray, move: Space | None = None):
    """Check an overlap that is computed from runs, and one that is computed from elements."""
    for long, few in product((1, 1 << 30), (0, FEW_PAIRS)):
        overlap.cache_clear()
        with (
            patch.object(overlap_module, "LONG", long),
            patch.object(overlap_module, "FEW_PAIRS", few),
        ):
            check_overlap(overlap(source, destination, move), names)


def check_overlap(found: Overlap, names: np.ndarray):
    source, destination = found.source, found.destination
    pairs, wanted, sent = shared_by_brute_force(source, destination, names)
    assert list(found.wanted) == wanted
    sources, destinations, shared = found.pairs()
    listed = zip(sources.tolist(), destinations.tolist(), shared.tolist(), strict=True)
    assert {(s, d): n for s, d, n in listed} == dict(pairs)
    assert len(sources) == len(pairs)
    held = [
        held_by_brute_force(source, destination, names, cell) for cell in range(destination.cells)
    ]
    assert list(found.local) == held
    assert list(found.sent) == sent


@given(shapes, st.data())
def test_overlap_counts_the_elements_that_pairs_of_cells_share(
    shape: tuple[int, ...], data: st.DataObject
):
    source = canonical(data.draw(cuttings(shape, windows=False)).layout())
    destination = canonical(data.draw(cuttings(shape)).layout())
    check(source, destination, np.arange(prod(shape)))


@given(st.sampled_from([((4, 6, 5), (12, 10)), ((24,), (2, 3, 4)), ((6, 1, 4), (3, 8))]), st.data())
def test_overlap_follows_a_reshape(pair: tuple[tuple[int, ...], ...], data: st.DataObject):
    a, b = pair
    source = canonical(data.draw(cuttings(a, windows=False)).layout())
    destination = canonical(data.draw(cuttings(b, windows=False)).layout())
    check(source, destination, np.arange(prod(a)))


@given(st.data())
def test_overlap_follows_a_transposition_into_a_part(data: st.DataObject):
    dims = (Dim("i", 4), Dim("j", 3))
    target = AccessMap((AxisMap(5, ((1, 1),), 2), AxisMap(4, ((0, 1),))))
    move = Space(dims, (identity_map((0, 1), (4, 3)),), (target,))
    source = canonical(data.draw(cuttings((12,), windows=False)).layout())
    destination = canonical(data.draw(cuttings((5, 4))).layout())
    names = np.full((5, 4), -1)
    names[2:] = np.arange(12).reshape(4, 3).T
    check(source, destination, names.ravel(), move)


@pytest.mark.parametrize(
    ("a", "b", "groups"),
    [
        ((2, 12), (2, 3, 4), [([0], [0]), ([1], [1, 2])]),
        ((), (1, 1), [([], [0]), ([], [1])]),
        ((1, 4, 6), (3, 8), [([0, 1, 2], [0, 1])]),
        ((64, 1, 1), (64,), [([0], [0]), ([1], []), ([2], [])]),
    ],
)
def test_shapes_agree_on_groups_of_axes(
    a: tuple[int, ...], b: tuple[int, ...], groups: list[tuple[list[int], list[int]]]
):
    assert linear_groups(a, b) == groups


def test_linear_layouts_spread_a_tensor_evenly():
    layout = linear_layout((1, 3, 224, 224), 4, 1472)
    assert layout.is_partition
    assert layout.cells == 1472
    assert layout.box == (104,)


def test_cells_share_no_elements_of_an_empty_tensor():
    nothing = linear_layout((0, 4), 4, 4)
    whole = Layout((Cut(3, 3), Cut(4)), identity_map((0, 1), (3, 4)))
    dims = (Dim("d0", 0), Dim("d1", 4))
    part = AccessMap((AxisMap(3, ((0, 1),)), AxisMap(4, ((1, 1),))))
    move = Space(dims, (identity_map((0, 1), (0, 4)),), (part,))
    found = overlap(nothing, whole, move)
    assert not len(found.pairs()[0])
    for elements_of_cells in (found.wanted, found.local, found.received):
        assert list(elements_of_cells) == [0, 0, 0]
    assert list(found.sent) == [0]


def slice_of(rows: int, first: int, size: int, columns: int) -> Space:
    """A move that takes rows out of a matrix."""
    read = AccessMap((AxisMap(rows, ((0, 1),), first), AxisMap(columns, ((1, 1),))))
    dims = (Dim("d0", size), Dim("d1", columns))
    return Space(dims, (read,), (identity_map((0, 1), (size, columns)),))


def test_an_overlap_takes_bytes_in_proportion_to_pairs_not_to_the_square_of_tiles():
    source = linear_layout((6400, 64), 4, 1472)
    part = linear_layout((64, 64), 4, 1472)
    found = overlap(source, part, slice_of(6400, 640, 64, 64))
    assert found.wanted.sum() == 64 * 64
    pairs = len(found.pairs()[0])
    assert pairs <= 64 * 64
    kept = [group.shared for group in found.groups]
    tables = [each.table.nbytes for each in kept if each.table is not None]
    listed = [
        array.nbytes for each in kept for array in (each.destination, each.source, each.count)
    ]
    assert sum(listed) + sum(tables) <= 24 * pairs + 8 * FEW_PAIRS


def test_pairs_that_share_nothing_count_0_elements():
    table = np.array([[0, 3], [2, 0], [0, 0]])
    to, of = np.divmod(np.arange(6), 2)
    listed = *(np.repeat(each, table.ravel()) for each in (to, of)), np.arange(5), np.ones(5, int)
    small, large = SharedElements.from_runs(*listed, (3, 2)), SharedElements.from_table(table)
    sparse = replace(large, table=None)
    for each in (small, large, sparse):
        assert each.at(to, of).tolist() == table.ravel().tolist()
        assert each.count.tolist() == [3, 2]


def test_many_parts_give_the_same_counts_as_few(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    to, of = rng.integers(0, 7, 100), rng.integers(0, 9, 100)
    index, one = rng.permutation(100), np.ones(100, int)
    few = SharedElements.from_runs(to, of, index, one, (7, 9))
    monkeypatch.setattr(overlap_module, "FEW_PAIRS", 0)
    many = SharedElements.from_runs(to, of, index, one, (7, 9))
    assert many.table is None
    for name in ("destination", "source", "count", "pieces"):
        assert getattr(few, name).tolist() == getattr(many, name).tolist()
