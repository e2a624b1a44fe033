from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.dialects.structured import Structure
from abele.ir.geometry.space import Dim, Space, identity_map
from abele.passes.planner.choice import best, pareto
from abele.passes.planner.problem import final_layouts_of, movement_problem
from abele.passes.planner.question import Question
from abele.passes.planner.search import exact, fastest, finalists, search, sketched
from abele.passes.plans.derive import (
    final_layout,
    movement_result_layout,
    operand_layouts,
    result_layout,
)

from .some_operators import (
    F16,
    F32,
    add,
    chained,
    conv,
    every_split,
    matmul,
    pool,
    problem,
    question_of,
    structures,
    total,
)

TINY = resolve_target("tiny:8")
MK2 = resolve_target("mk2")


@given(structures(), st.sampled_from((1, 2, 5, 8)), st.data())
@settings(max_examples=60)
def test_every_plan_is_legal(structure: Structure, tiles: int, data: st.DataObject):
    target = resolve_target(f"tiny:{tiles}")
    resident = tuple(data.draw(st.booleans()) for _ in structure.space.operands)
    asked = problem(structure, resident=resident)
    for choice in search(question_of(asked, target)):
        plan = choice.plan
        assert plan.first_tile + prod(plan.split) <= tiles
        for layout in (*operand_layouts(structure, plan), final_layout(structure, plan)):
            assert layout.first_tile + layout.cells <= tiles
        if plan.workers:
            assert prod(plan.workers) <= target.workers
            for parts, cut, dim in zip(plan.workers, plan.split, structure.space.dims, strict=True):
                assert parts == 1 or (dim.kind == "parallel" and parts <= -(-dim.size // cut))


@given(structures(), st.sampled_from((2, 5, 8)), st.booleans(), st.sampled_from((1 << 10, 1 << 30)))
@settings(max_examples=60)
def test_the_fastest_plan_is_the_first_finalist(
    structure: Structure, tiles: int, merges: bool, bound: int
):
    question = question_of(problem(structure), resolve_target(f"tiny:{tiles}"), bound)
    question = replace(question, problem=replace(question.problem, merges=merges))
    assert fastest(question) == finalists(question)[0]


@given(structures(), st.sampled_from((2, 5, 8)))
@settings(max_examples=60)
def test_a_sketch_with_another_price_than_its_own_is_never_the_best(
    structure: Structure, tiles: int
):
    question = question_of(problem(structure), resolve_target(f"tiny:{tiles}"))
    question = replace(question, problem=replace(question.problem, merges=False))
    found = sketched(question)
    for i, sketch in enumerate(found):
        price = exact(question, sketch.plan).cycles
        assert sketch.cycles <= price
        assert sketch.cycles == price or any(
            other.cycles <= sketch.cycles
            and other.resident_bytes <= sketch.resident_bytes
            and other.temporary_bytes <= sketch.temporary_bytes
            for other in found[:i]
        )


@given(structures())
@settings(max_examples=30)
def test_one_tile_takes_everything_whole(structure: Structure):
    target = resolve_target("tiny:1")
    asked = problem(structure)
    choice = fastest(question_of(asked, target))
    assert choice.plan.split == (1,) * len(structure.space.dims)
    assert choice.exchange_cycles == 0


@pytest.mark.parametrize(
    "structure",
    [
        matmul(12, 16, 10),
        matmul(1, 24, 16),
        matmul(3, 64, 3),
        conv(4, 8, 4, 3, pad=1),
        conv(3, 12, 4, 5, stride=2),
        pool(4, 9, 3, 2),
        add(12, 10),
    ],
)
def test_nothing_that_an_exhaustive_search_finds_is_faster(structure: Structure):
    asked = problem(structure)
    question = question_of(asked, TINY)
    found = fastest(question)
    cheapest = min(exact(question, plan).cycles for plan in every_split(structure, 8))
    assert found.cycles <= cheapest


@pytest.mark.parametrize("structure", [conv(16, 14, 32, 3, pad=1), matmul(32, 128, 64)])
def test_more_memory_never_costs_cycles(structure: Structure):
    asked = problem(structure, resident=(False, True))
    bounds = (500, 1_000, 4_000, 600_000)
    cycles = [fastest(question_of(asked, MK2, bound)).cycles for bound in bounds]
    assert cycles == sorted(cycles, reverse=True)


def test_a_bound_on_bytes_is_kept_if_possible():
    asked = problem(conv(64, 28, 64, 3, pad=1), F16, (False, True))
    for bound in (3_400, 4_000, 8_000):
        choice = fastest(question_of(asked, MK2, bound))
        assert choice.resident_bytes + choice.temporary_bytes <= bound


def test_the_front_trades_cycles_for_resident_memory():
    asked = problem(conv(64, 28, 64, 3, pad=1), F16, (False, True))
    front = search(question_of(asked, MK2))
    assert len(front) > 2
    assert [c.cycles for c in front] == sorted(c.cycles for c in front)
    memory = [c.resident_bytes for c in front]
    assert memory == sorted(set(memory), reverse=True)
    assert best(front, 0) == front[0]
    assert best(front, 1e9) == front[-1]
    assert pareto(reversed(front), MK2.usable_bytes_per_tile) == front


def test_an_elementwise_operator_stays_where_its_operand_is():
    made = result_layout(add(64, 48), Plan((8, 24), (1, 0), 100))
    choice = fastest(Question(problem(add(64, 48)), (made, made), MK2, MK2.usable_bytes_per_tile))
    assert choice.exchange_cycles == 0
    assert operand_layouts(add(64, 48), choice.plan) == (made, made)


def test_a_convolution_with_few_images_splits_its_channels():
    asked = problem(conv(512, 7, 512, 3, pad=1), F16, (False, True))
    plan = fastest(question_of(asked, MK2)).plan
    assert prod(plan.split[3:]) > 1
    assert plan.combine is not None
    assert plan.combine.split[3:] == (1,) * (len(plan.combine.split) - 3)


def test_a_given_plan_for_combining_is_kept():
    asked, plan = problem(matmul(8, 32, 8)), Plan((2, 2, 2), combine=Plan((4, 1, 1)))
    choice = exact(question_of(asked, TINY), plan)
    assert choice.plan.combine is not None
    assert choice.plan.combine.split == (4, 1, 1)
    assert choice.sync_cycles == 2 * TINY.exchange.sync_cycles


def test_partials_are_combined_on_tiles_that_have_none():
    # A tile that had a part itself would have to copy it next to the others.
    asked = problem(total(1, 4096), F32, (False,))
    chosen = exact(question_of(asked, MK2), Plan((1, 64)))
    assert chosen.plan.combine is not None
    assert chosen.plan.combine.first_tile == 64
    here = exact(question_of(asked, MK2), Plan((1, 64), combine=Plan((1, 1))))
    assert here.cycles - chosen.cycles > MK2.copy.call_cycles // 2
    # Where only few tiles are left, they combine several results each.
    chosen = exact(question_of(problem(total(184, 768)), MK2), Plan((184, 7)))
    assert chosen.plan.combine is not None
    assert (chosen.plan.combine.first_tile, chosen.plan.combine.split[0]) == (1288, 184)
    everywhere = exact(question_of(problem(total(1, 1472)), MK2), Plan((1, 1472)))
    assert everywhere.plan.combine is not None
    assert everywhere.plan.combine.first_tile == 0


def test_figures_add_up():
    asked = problem(conv(16, 14, 32, 3, pad=1), F16, (False, True))
    choice = fastest(question_of(asked, MK2))
    assert choice.cycles == choice.compute_cycles + choice.exchange_cycles + choice.sync_cycles
    weights = operand_layouts(asked.structure, choice.plan)[1]
    assert choice.resident_bytes == weights.block_elements * 2


def test_a_movement_inherits_the_split_of_its_operand():
    # Small blocks are as fast to copy from another tile as from their own.
    rows, columns = 120, 200
    dims = (Dim("a", rows), Dim("b", columns))
    read, written = identity_map((0, 1), (rows, columns)), identity_map((1, 0), (columns, rows))
    transpose = Space(dims, (read,), (written,))
    source = result_layout(add(rows, columns), Plan((4, 5)))
    asked = movement_problem((transpose,), F32)
    choice = fastest(Question(asked, (source,), resolve_target("tiny:20"), 200_000))
    assert choice.exchange_cycles == 0
    layout = final_layouts_of(asked, choice.plan)[0]
    assert (layout.shape, layout.parts) == ((columns, rows), (4, 5))


def test_a_slower_exchange_costs_more():
    slow = replace(MK2, exchange=replace(MK2.exchange, receive_bytes_per_cycle=0.5))
    asked = problem(matmul(64, 128, 64))
    bound = MK2.usable_bytes_per_tile
    assert (
        fastest(question_of(asked, slow, bound)).cycles
        > fastest(question_of(asked, MK2, bound)).cycles
    )


def test_a_chains_operands_are_moved_to_where_they_are_read():
    structure = chained(conv(8, 8, 8, 3), True)
    asked = problem(structure)
    one_tile = movement_result_layout((8, 6, 6), Plan((1, 1, 1)))
    linear = question_of(asked, TINY)
    have = linear.have[:2]
    for plan in (Plan((1, 6, 1, 1, 1, 1)), Plan((2, 1, 1, 4, 1, 1))):
        far = exact(replace(linear, have=(*have, one_tile)), plan)
        near_it = (*have, final_layout(structure, far.plan))
        near = exact(replace(linear, have=near_it), far.plan)
        alone = exact(replace(linear, problem=problem(structure.unchained), have=have), far.plan)
        assert far.cycles > near.cycles > alone.cycles
        assert near.exchange_cycles == alone.exchange_cycles
        assert near.compute_cycles > alone.compute_cycles
        assert near.sync_cycles == alone.sync_cycles


def test_resident_operands_of_a_chain_are_counted_once():
    structure = chained(conv(8, 8, 8, 3), False)
    asked = problem(structure, resident=(False, True, True))
    plan = Plan((2, 1, 1, 4, 1, 1), combine=Plan((8, 1, 1, 1)))
    choice = exact(question_of(asked, TINY), plan)
    weights, bias = operand_layouts(structure, plan)[1:]
    assert choice.resident_bytes == 4 * (weights.block_elements + bias.block_elements)
