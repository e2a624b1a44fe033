"""Pairs of cells, compared with a brute-force search over all points of both grids."""

import tracemalloc
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry import pairs as pairs_file
from abele.ir.geometry.pairs import NONE, ONE, Factor, Pairs, Side, pairs, runs
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map


def side(access: AccessMap, *edges: list[int]) -> Side:
    """edges: of the parts of each dimension, from 0 on."""
    bounds = tuple((np.array(e[:-1], np.int64), np.array(e[1:], np.int64)) for e in edges)
    return Side(access, bounds)


def touched(of: Side) -> dict[int, set[int]]:
    """The elements, row-major, that each cell touches."""
    found: dict[int, set[int]] = {}
    parts = [list(zip(first.tolist(), last.tolist())) for first, last in of.bounds]
    for cell, chosen in enumerate(product(*parts)):
        found[cell] = set()
        for point in product(*(range(a, b) for a, b in chosen)):
            index = [
                int(axis.resolve(np.array(axis.offset + sum(a * point[d] for d, a in axis.terms))))
                for axis in of.access.axes
            ]
            if min(index, default=0) >= 0:
                shape = of.access.shape
                found[cell].add(int(np.ravel_multi_index(index, shape)) if shape else 0)
    return found


def brute(source: Side, destination: Side) -> Counter[tuple[int, int]]:
    made, read = touched(source), touched(destination)
    return Counter(
        {(s, d): len(made[s] & read[d]) for s, d in product(made, read) if made[s] & read[d]}
    )


def check(source: Side, destination: Side) -> None:
    wanted = brute(source, destination)
    found = pairs(source, destination)
    assert found.count == len(wanted)
    assert found.shared_elements == sum(wanted.values())
    for most in (1, 3, 1000):
        blocks = list(found.blocks(most))
        assert all(0 < len(s) <= most for s, _, _ in blocks)
        listed = [t for b in blocks for t in zip(*(c.tolist() for c in b), strict=True)]
        assert Counter({(s, d): n for s, d, n in listed}) == wanted
        assert len(listed) == len(wanted)


@st.composite
def edges(draw: st.DrawFn, size: int) -> list[int]:
    cuts = draw(st.sets(st.integers(1, max(size - 1, 1)), max_size=4))
    return sorted({0, size, *(c for c in cuts if c < size)})


@st.composite
def axes(draw: st.DrawFn, size: int, dims: list[int]) -> AxisMap:
    """Any map of some dimensions onto an axis: what lies outside follows a rule."""
    named = draw(st.sets(st.sampled_from(range(len(dims))), max_size=2))
    terms = tuple((d, draw(st.sampled_from((1, 2, 3, -1)))) for d in sorted(named))
    return AxisMap(
        size,
        terms,
        draw(st.integers(-3, 3)),
        draw(st.sampled_from((1, 1, 2))),
        draw(st.sampled_from(("floor", "exact"))),
        draw(st.sampled_from(("fill", "edge", "reflect", "wrap"))),
    )


@given(st.data())
def test_pairs_are_those_that_touch_a_common_element(data: st.DataObject):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    source = side(
        identity_map(tuple(range(len(shape))), tuple(shape)),
        *(data.draw(edges(n)) for n in shape),
    )
    dims = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    access = AccessMap(tuple(data.draw(axes(n, dims)) for n in shape))
    check(source, side(access, *(data.draw(edges(n)) for n in dims)))


def test_holes_and_diagonals_are_not_elements():
    source = side(identity_map((0,), (12,)), list(range(13)))
    check(source, side(AccessMap((AxisMap(12, ((0, 6), (1, 1))),)), [0, 1, 2], [0, 2]))
    square = side(identity_map((0, 1), (4, 4)), [0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    diagonal = AccessMap((AxisMap(4, ((0, 1),)), AxisMap(4, ((0, 1),))))
    check(square, side(diagonal, [0, 2, 4]))
    assert pairs(square, side(diagonal, [0, 2, 4])).count == 4


def test_dimensions_that_a_tensor_does_not_have_repeat_its_pairs():
    source = side(identity_map((0,), (6,)), [0, 2, 6], [0, 1, 4])
    check(source, side(identity_map((1,), (6,)), [0, 3, 5], [0, 5, 6]))


def test_moves_are_followed():
    reverse = Space(
        (Dim("i", 6),),
        (AccessMap((AxisMap(6, ((0, -1),), 5),)),),
        (identity_map((0,), (6,)),),
    )
    three = side(identity_map((0,), (6,)), [0, 1, 4, 6])
    found = pairs(three, three, (reverse,)).listed()
    assert dict(
        zip(zip(found.source.tolist(), found.destination.tolist()), found.shared.tolist())
    ) == {(0, 2): 1, (1, 2): 1, (1, 1): 2, (2, 0): 1, (2, 1): 1}


def test_a_tensor_without_elements_has_no_pairs():
    empty = side(identity_map((0,), (0,)), [0])
    assert pairs(empty, empty).count == 0
    assert list(pairs(empty, empty).blocks(10)) == []


def test_the_longest_factor_is_innermost_and_short_ones_join_it(
    monkeypatch: pytest.MonkeyPatch,
):
    def factor(n: int, weight: int) -> Factor:
        return Factor(np.arange(n) * weight, np.arange(n), np.full(n, 2))

    found = Pairs((factor(2, 1000), factor(5, 1), factor(3, 10)))
    for least in (1, 6, 100):
        monkeypatch.setattr(pairs_file, "INNER", least)
        fresh = Pairs(found.factors)
        source = np.concatenate([block[0] for block in fresh.blocks(4)])
        assert sorted(source.tolist()) == sorted(fresh.listed().source.tolist())
        assert len(fresh.blocks(100).__next__()[0]) == 30
    assert Pairs((found.factors[0], NONE)).count == 0
    assert len(ONE) == 1


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20), st.integers(1, 30))
def test_rectangles_cover_a_range_once_and_in_order(first: int, n: int, row: int, most: int):
    found: list[int] = []
    for rows, columns in runs(first, first + n, row, most):
        assert 0 < (rows.stop - rows.start) * (columns.stop - columns.start) <= most
        found += [r * row + c for r in range(rows.start, rows.stop) for c in range(row)[columns]]
    assert found == list(range(first, first + n))


def test_long_axes_in_runs_are_paired_without_listing_their_elements():
    n = 200_000_000
    access = identity_map((0,), (n,))
    cuts = [np.arange(k + 1) * n // k for k in (1472, 1000)]
    sides = [Side(access, ((cut[:-1], cut[1:]),)) for cut in cuts]
    tracemalloc.start()
    try:
        found = pairs(*sides)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert found.shared_elements == n
    assert found.count == len(np.union1d(*cuts)) - 1
