from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from abele.dialects.abele import Plan
from abele.dialects.structured import Structure
from abele.ir.geometry.layout import Layout, linear_layout
from abele.ir.geometry.overlap import overlap
from abele.ir.geometry.space import Space
from abele.passes.planner import cell_runs
from abele.passes.planner.candidates import splits
from abele.passes.planner.cell_runs import elements_of_cells
from abele.passes.plans.derive import compute_layouts, movement_result_layout

from .some_operators import problem, structures
from .test_traffic import TILES, shifts


def _cut(data: st.DataObject, shape: tuple[int, ...]) -> Layout:
    cut = [data.draw(st.integers(1, min(n, 4))) for n in shape]
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    return movement_result_layout(shape, Plan(tuple(cut), order, data.draw(st.integers(0, 9))))


def _check(source: Layout, wanted: Layout, move: Space | None) -> None:
    found, whole = elements_of_cells(source, wanted, move), overlap(source, wanted, move)
    np.testing.assert_array_equal(found.wanted, whole.wanted)
    np.testing.assert_array_equal(found.local, whole.local)


@given(structures(), st.data())
def test_the_elements_of_cells_are_those_of_the_overlap(structure: Structure, data: st.DataObject):
    parts = splits(problem(structure), TILES)
    plan = Plan(tuple(data.draw(st.sampled_from(parts.tolist()))))
    layouts = compute_layouts(structure, plan)
    wanted = layouts[data.draw(st.integers(0, len(layouts) - 1))]
    assume(0 not in wanted.shape)
    linear = linear_layout(wanted.shape, 4, TILES, grain_bytes=8)
    source = linear if data.draw(st.booleans()) else _cut(data, wanted.shape)
    _check(source, replace(wanted, first_tile=data.draw(st.integers(0, 5))), None)


@given(shifts(), st.data())
def test_the_elements_through_a_move_are_those_of_its_overlap(move: Space, data: st.DataObject):
    source, wanted = (_cut(data, each.shape) for each in (move.operands[0], move.results[0]))
    _check(source, wanted, move)


def test_blocks_that_are_runs_need_no_table_of_pairs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cell_runs, "traffic", lambda *_: pytest.fail("a table of pairs"))
    rows, columns = (movement_result_layout((8, 12), Plan(cut)) for cut in ((4, 1), (1, 3)))
    found = elements_of_cells(rows, columns, None)
    assert found.wanted.tolist() == [32, 32, 32]
    assert found.local.tolist() == [8, 8, 8]
