from dataclasses import replace
from math import ceil, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from some_models import convolutions
from some_prices import busiest_tile_cycles

from abele.backends.counts import counts
from abele.backends.graph import graph_of, vertex_count
from abele.backends.prices.price import operands_of, variables_of
from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.steps import Vertices
from abele.dialects.structured import Body, Structure, Structured
from abele.ir.errors import InputError
from abele.ir.geometry.space import Dim, Space, identity_map
from abele.ir.pass_manager import parse_pipeline
from abele.passes.pipelines import PASSES
from abele.passes.planner.fineness import MOST_VERTICES, check_vertices, with_vertices
from abele.tools.debug.run_check import check_run
from abele.tools.driver.arrays import seeded
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE, Executable

from ...strategies import Program, planned_programs
from ...tile_graphs import DOWN


def relu(*shape: int) -> Structure:
    access = identity_map(tuple(range(len(shape))), shape)
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))
    return Structure(Space(dims, (access,), (access,)), Body("relu"))


@given(st.lists(st.integers(1, 12), min_size=1, max_size=3), st.integers(1, 40), st.data())
def test_a_cell_has_as_many_vertices_as_requested(
    sizes: list[int], vertices: int, data: st.DataObject
):
    split = tuple(data.draw(st.integers(1, n)) for n in sizes)
    found = with_vertices(relu(*sizes), Plan(split, workers=(1,) * len(sizes)), vertices)
    cell = [ceil(n / k) for n, k in zip(sizes, split, strict=True)]
    assert prod(found.workers) <= vertices
    assert all(w <= n for w, n in zip(found.workers, cell, strict=True))
    if vertices >= prod(cell):
        assert found.workers == tuple(cell)
        assert vertex_count(relu(*sizes).space, found) == prod(sizes)


def test_a_supervisor_codelet_stays_one_vertex():
    plan = Plan((2, 4))
    assert with_vertices(relu(8, 64), plan, 100) == plan


@pytest.mark.parametrize("vertices", [0, -3, MOST_VERTICES + 1])
def test_numbers_that_make_no_sense_are_refused(vertices: int):
    with pytest.raises(InputError, match=f"{vertices} vertices per tile; need 1..{MOST_VERTICES}"):
        check_vertices(vertices)


def compiled(vertices: int | None) -> Executable:
    return compile_model(convolutions(), target="tiny:8", vertices_per_tile=vertices)


def test_the_program_computes_the_same_and_is_priced_higher():
    coarse, fine = compiled(None), compiled(64)
    values = seeded(fine.inputs, 3)
    results = fine.run(values)
    assert check_run(fine, values, results, MACHINE).passed
    for name, result in coarse.run(values).items():
        assert (results[name] == result).all()
    assert fine.profile["vertices"] > coarse.profile["vertices"]
    assert fine.profile["edges"] > coarse.profile["edges"]
    assert fine.profile["compute_cycles"] > coarse.profile["compute_cycles"]
    assert fine.profile["exchange_bytes"] == coarse.profile["exchange_bytes"]


@settings(max_examples=6, deadline=None)
@given(st.sampled_from([1, 5, 6, 7, 23, 200]))
def test_a_tile_takes_as_long_as_the_vertices_of_its_busiest_worker(vertices: int):
    exe = compiled(vertices)
    module = exe.module_at(MACHINE)
    graph = graph_of(module, exe.target)
    assert graph.vertex_count == counts(module).vertices
    columns = graph.vertices()
    sets = [op for op in module.walk() if isinstance(op, Vertices)]
    variables = variables_of(module)
    reached = 0
    for each, op in zip(graph.sets, sets, strict=True):
        here = slice(each.first, each.first + each.count)
        plan = op.plan.data
        assert max(plan.workers, default=1) <= vertices
        busy: dict[tuple[int, int], int] = {}
        keys = zip(columns["tile"][here].tolist(), columns["worker"][here].tolist(), strict=True)
        for key, cycles in zip(keys, columns["cycles"][here].tolist(), strict=True):
            busy[key] = busy.get(key, 0) + cycles
        # A price takes the largest vertex for all of them: reached where a cell is cut evenly.
        dtypes = [v.dtype for v in operands_of(op, variables)]
        most = busiest_tile_cycles(op.structure(), plan, dtypes, exe.target)
        assert max(busy.values()) <= most
        reached += max(busy.values()) == most
    assert reached > len(graph.sets) / 3


def with_workers(plan: Plan) -> Plan:
    """The plan with one worker, and so its combines."""
    combine = None if plan.combine is None else with_workers(plan.combine)
    return replace(plan, workers=(1,) * len(plan.split), combine=combine)


@settings(max_examples=40)
@given(planned_programs(), st.integers(1, 50))
def test_plans_stay_legal_and_how_partials_combine_is_finer_too(program: Program, vertices: int):
    for op in program.module.walk():
        if isinstance(op, Structured):
            plan = with_workers(op.attributes["plan"].data)
            op.attributes["plan"] = PlanAttr(with_vertices(op.structure(), plan, vertices))
    for each in parse_pipeline(DOWN, PASSES):
        each.apply(program.context, program.module)
    program.module.verify()
    for op in program.module.walk():
        if isinstance(op, Vertices):
            space, plan = op.space.data, op.plan.data
            on_a_tile = vertex_count(space, plan) / prod(plan.split)
            assert on_a_tile <= vertices
            cell = prod(
                ceil(d.size / k)
                for d, k in zip(space.dims, plan.split, strict=True)
                if d.kind == "parallel"
            )
            if cell <= vertices:
                assert prod(plan.workers) == cell
