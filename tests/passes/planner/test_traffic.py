import tracemalloc

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from abele.dialects.abele import Plan
from abele.dialects.structured import Structure
from abele.ir.geometry.blocks import gather, scatter
from abele.ir.geometry.fragments import fragments
from abele.ir.geometry.layout import Layout, linear_layout
from abele.ir.geometry.overlap import overlap, sent_elements
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.passes.planner.candidates import splits
from abele.passes.planner.traffic import traffic
from abele.passes.plans.derive import compute_layouts, movement_result_layout

from .some_operators import problem, structures

TILES = 24


def _blocks(layout: Layout, dense: np.ndarray) -> np.ndarray:
    """The elements of every tile's block, 0 for padding: (tiles, bytes of a row as int32)."""
    memory = np.zeros((TILES, layout.block_elements * 4), np.uint8)
    scatter(dense, memory, 0, layout)
    return memory.view(np.int32)


def _received(source: Layout, destination: Layout) -> np.ndarray:
    """By brute force: numbered elements, and which of them every tile has."""
    count = int(np.prod(source.shape))
    plain = np.arange(1, count + 1, dtype=np.int32)
    have, want = _blocks(source, plain), _blocks(destination, plain)
    # Of replicas, the one that a gather reads owns the element.
    owner = np.zeros(count + 1, np.int64)
    for tile in range(TILES):
        mine = np.full_like(have, -1)
        mine[tile] = tile
        assert gather(mine.view(np.uint8), 0, source, np.dtype(np.int32)).size == count
        owner[1:][gather(mine.view(np.uint8), 0, source, np.dtype(np.int32)).ravel() == tile] = tile
    return np.array(
        [sum(owner[e] != tile for e in set(want[tile].tolist()) - {0}) for tile in range(TILES)]
    )


@given(structures(), st.data())
def test_traffic_equals_a_brute_force_count(structure: Structure, data: st.DataObject):
    parts = splits(problem(structure), TILES)
    plan = Plan(tuple(data.draw(st.sampled_from(parts.tolist()))))
    layouts = compute_layouts(structure, plan)
    operand = data.draw(st.integers(0, len(layouts) - 1))
    access = structure.space.operands[operand]
    assume(access.fill == 0)
    wanted = layouts[operand]
    if data.draw(st.booleans()):
        source = linear_layout(access.shape, 4, TILES, grain_bytes=8)
    else:
        cut = [data.draw(st.integers(1, min(n, 3))) for n in access.shape]
        first = TILES - int(np.prod(cut))
        assume(first >= 0)
        source = movement_result_layout(
            access.shape, Plan(tuple(cut), (), data.draw(st.integers(0, first)))
        )
    found = traffic(source, wanted)
    here = slice(wanted.first_tile, wanted.first_tile + wanted.cells)
    np.testing.assert_array_equal(found.received, _received(source, wanted)[here])
    whole = overlap(source, wanted)
    np.testing.assert_array_equal(found.sent, whole.sent)
    np.testing.assert_array_equal(found.wanted, whole.wanted)
    np.testing.assert_array_equal(found.local, whole.local)


@st.composite
def shifts(draw: st.DrawFn) -> Space:
    """A move that cuts each axis out of a larger one, permutes them, and puts them into another."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    order = draw(st.permutations(range(len(sizes))))
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(sizes))

    def axis(d: int, padded: bool) -> AxisMap:
        before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        if padded and draw(st.booleans()):
            return AxisMap(sizes[d], ((d, 1),), draw(st.integers(-2, 2)), outside="fill")
        return AxisMap(before + sizes[d] + after, ((d, 1),), before)

    read = AccessMap(tuple(axis(d, True) for d in range(len(sizes))))
    written = AccessMap(tuple(axis(d, False) for d in order))
    return Space(dims, (read,), (written,))


@given(shifts(), st.data())
def test_traffic_through_a_move_is_that_of_its_overlap(move: Space, data: st.DataObject):
    def layout(shape: tuple[int, ...]) -> Layout:
        cut = [data.draw(st.integers(1, min(n, 3))) for n in shape]
        return movement_result_layout(shape, Plan(tuple(cut), (), data.draw(st.integers(0, 4))))

    source, wanted = layout(move.operands[0].shape), layout(move.results[0].shape)
    found, whole = traffic(source, wanted, move), overlap(source, wanted, move)
    for each in ("wanted", "local", "sent"):
        np.testing.assert_array_equal(getattr(found, each), getattr(whole, each))
    np.testing.assert_array_equal(sent_elements(found), sent_elements(whole))
    for each in ("received", "places", "sent"):
        pieces = (getattr(fragments(shared), each) for shared in (found, whole))
        np.testing.assert_array_equal(*pieces)


def test_traffic_of_a_long_axis_takes_no_memory_for_its_elements():
    n = 200_000_000
    source, wanted = linear_layout((n,), 4, TILES, grain_bytes=8), _in_parts(n, TILES - 1)
    tracemalloc.start()
    try:
        found = traffic(source, wanted)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert found.sent.sum() == n


def _in_parts(n: int, parts: int) -> Layout:
    return movement_result_layout((n,), Plan((parts,)))
