from hypothesis import given
from hypothesis import strategies as st

from abele.backends.graph import vertex_count, vertex_parts
from abele.backends.graph.parts import dim_parts
from abele.dialects.abele import Plan
from abele.ir.geometry.space import Dim, Space

from ...element_flow import parts_of


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 9))
def test_parts_are_those_of_cells_cut_evenly(size: int, split: int, workers: int):
    split = max(min(split, size), 1)
    (found,) = dim_parts(Space((Dim("i", size),), (), ()), Plan((split,), workers=(workers,)))
    wanted = [
        (cell.start + part.start, cell.start + part.stop, c, t)
        for c, cell in enumerate(parts_of(size, split))
        for t, part in enumerate(p for p in parts_of(len(cell), workers) if p)
    ]
    columns = (found.first, found.last, found.cell, found.thread)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == wanted
    for cell, threads in zip(found.cell.tolist(), found.threads.tolist(), strict=True):
        assert threads == sum(c == cell for *_, c, _ in wanted)


def test_a_plan_without_workers_has_one_vertex_per_cell():
    space = Space((Dim("i", 5), Dim("j", 4)), (), ())
    (first, last), (whole, end) = vertex_parts(space, Plan((2, 1)))
    assert (first.tolist(), last.tolist()) == ([0, 3], [3, 5])
    assert (whole.tolist(), end.tolist()) == ([0], [4])


def test_many_vertices_are_counted_without_listing_them():
    space = Space((Dim("i", 10**6), Dim("j", 10**6)), (), ())
    assert vertex_count(space, Plan((10**5, 10), workers=(6, 1))) == 6 * 10**6
    assert vertex_count(space, Plan((3, 2))) == 6
