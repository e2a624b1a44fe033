import itertools
from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.target import Target, resolve_target
from abele.dialects.abele import Plan
from abele.dialects.structured import Structure
from abele.ir.geometry.layout import Layout, linear_layout
from abele.ir.geometry.space import Dim, Space, identity_map
from abele.passes.planner import search as searching
from abele.passes.planner.derive import (
    can_pad,
    compute_layouts,
    final_layout,
    movement_result_layout,
    operand_layouts,
    result_layout,
)
from abele.passes.planner.problem import Problem, final_layout_of, movement_problem
from abele.passes.planner.search import best, exact, fastest, pareto, search

from .some_operators import F16, F32, add, chained, conv, matmul, pool, problem, structures

TINY = resolve_target("tiny:8")
MK2 = resolve_target("mk2")


def linear(asked: Problem, target: Target) -> tuple[Layout | None, ...]:
    """Operands in linear order, but for resident ones."""
    return tuple(
        None if stays else linear_layout(access.shape, dtype.itemsize, target.tiles)
        for access, dtype, stays in zip(
            asked.structure.space.operands, asked.operand_dtypes, asked.resident, strict=True
        )
    )


def every_split(structure: Structure, tiles: int) -> list[Plan]:
    """All legal splits, by definition."""
    counts = []
    for d, dim in enumerate(structure.space.dims):
        free = dim.kind == "parallel" or can_pad(structure, d)
        counts.append(
            [
                k
                for k in range(1, min(dim.size, tiles) + 1)
                if (free and (k - 1) * -(-dim.size // k) < dim.size) or dim.size % k == 0
            ]
        )
    return [Plan(parts) for parts in itertools.product(*counts) if prod(parts) <= tiles]


@given(structures(), st.sampled_from((1, 2, 5, 8)), st.data())
@settings(max_examples=200)
def test_a_plan_takes_no_less_than_the_least_that_is_said(
    structure: Structure, tiles: int, data: st.DataObject
):
    target = resolve_target(f"tiny:{tiles}")
    plans = st.sampled_from(every_split(structure, tiles))
    asked = problem(structure, resident=(False,) * len(structure.space.operands))
    have = list(linear(asked, target))
    for i, layout in enumerate(compute_layouts(structure, data.draw(plans))):
        have[i] = layout if layout.is_partition else have[i]
    (least,) = searching._at_least(asked, (data.draw(plans),), tuple(have), target)
    arrived = searching._arrived(asked, least, tuple(have), target)
    assert least.exchange_cycles <= arrived.exchange_cycles
    assert least.cycles <= arrived.cycles


@given(structures(), st.sampled_from((1, 2, 5, 8)), st.data())
@settings(max_examples=60)
def test_every_plan_is_legal(structure: Structure, tiles: int, data: st.DataObject):
    target = resolve_target(f"tiny:{tiles}")
    resident = tuple(data.draw(st.booleans()) for _ in structure.space.operands)
    asked = problem(structure, resident=resident)
    for choice in search(asked, linear(asked, target), target, target.usable_bytes_per_tile):
        plan = choice.plan
        assert plan.first_tile + prod(plan.split) <= tiles
        for layout in (*operand_layouts(structure, plan), final_layout(structure, plan)):
            assert layout.first_tile + layout.cells <= tiles
        if plan.workers:
            assert prod(plan.workers) <= target.workers
            for parts, cut, dim in zip(plan.workers, plan.split, structure.space.dims, strict=True):
                assert parts == 1 or (dim.kind == "parallel" and parts <= -(-dim.size // cut))


@given(structures())
@settings(max_examples=30)
def test_one_tile_takes_everything_whole(structure: Structure):
    target = resolve_target("tiny:1")
    asked = problem(structure)
    choice = fastest(asked, linear(asked, target), target, target.usable_bytes_per_tile)
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
    have = linear(asked, TINY)
    bound = TINY.usable_bytes_per_tile
    found = fastest(asked, have, TINY, bound)
    cheapest = min(
        exact(asked, plan, have, TINY, bound).cycles for plan in every_split(structure, 8)
    )
    assert found.cycles <= cheapest


@pytest.mark.parametrize("structure", [conv(16, 14, 32, 3, pad=1), matmul(32, 128, 64)])
def test_more_memory_never_costs_cycles(structure: Structure):
    asked = problem(structure, resident=(False, True))
    have = linear(asked, MK2)
    cycles = [fastest(asked, have, MK2, bound).cycles for bound in (500, 1_000, 4_000, 600_000)]
    assert cycles == sorted(cycles, reverse=True)


def test_a_bound_is_kept_where_that_is_possible():
    asked = problem(conv(64, 28, 64, 3, pad=1), F16, (False, True))
    for bound in (3_400, 4_000, 8_000):
        choice = fastest(asked, linear(asked, MK2), MK2, bound)
        assert choice.resident_bytes + choice.temporary_bytes <= bound


def test_the_front_trades_cycles_for_resident_memory():
    asked = problem(conv(64, 28, 64, 3, pad=1), F16, (False, True))
    front = search(asked, linear(asked, MK2), MK2, MK2.usable_bytes_per_tile)
    assert len(front) > 2
    assert [c.cycles for c in front] == sorted(c.cycles for c in front)
    memory = [c.resident_bytes for c in front]
    assert memory == sorted(set(memory), reverse=True)
    assert best(front, 0) == front[0]
    assert best(front, 1e9) == front[-1]
    assert pareto(reversed(front), MK2.usable_bytes_per_tile) == front


def test_an_elementwise_operator_stays_where_its_operand_is():
    made = result_layout(add(64, 48), Plan((8, 24), (1, 0), 100))
    choice = fastest(problem(add(64, 48)), (made, made), MK2, MK2.usable_bytes_per_tile)
    assert choice.exchange_cycles == 0
    assert operand_layouts(add(64, 48), choice.plan) == (made, made)


def test_a_convolution_with_few_images_splits_its_channels():
    asked = problem(conv(512, 7, 512, 3, pad=1), F16, (False, True))
    plan = fastest(asked, linear(asked, MK2), MK2, MK2.usable_bytes_per_tile).plan
    assert prod(plan.split[3:]) > 1
    assert plan.combine is not None
    assert plan.combine.split[3:] == (1,) * (len(plan.combine.split) - 3)


def test_combining_that_is_given_is_kept():
    asked, plan = problem(matmul(8, 32, 8)), Plan((2, 2, 2), combine=Plan((4, 1, 1)))
    choice = exact(asked, plan, linear(asked, TINY), TINY, TINY.usable_bytes_per_tile)
    assert choice.plan.combine is not None
    assert choice.plan.combine.split == (4, 1, 1)
    assert choice.sync_cycles == 2 * TINY.exchange.sync_cycles


def test_figures_add_up():
    asked = problem(conv(16, 14, 32, 3, pad=1), F16, (False, True))
    choice = fastest(asked, linear(asked, MK2), MK2, MK2.usable_bytes_per_tile)
    assert choice.cycles == choice.compute_cycles + choice.exchange_cycles + choice.sync_cycles
    weights = operand_layouts(asked.structure, choice.plan)[1]
    assert choice.resident_bytes == weights.block_elements * 2


def test_a_movement_goes_to_the_cuts_of_its_operand():
    dims = (Dim("a", 12), Dim("b", 20))
    transpose = Space(dims, (identity_map((0, 1), (12, 20)),), (identity_map((1, 0), (20, 12)),))
    source = result_layout(add(12, 20), Plan((4, 5)))
    asked = movement_problem((transpose,), F32)
    choice = fastest(asked, (source,), resolve_target("tiny:20"), 200_000)
    assert choice.exchange_cycles == 0
    layout = final_layout_of(asked, choice.plan)
    assert (layout.shape, layout.parts) == ((20, 12), (4, 5))


def test_a_slower_exchange_costs_more():
    slow = replace(MK2, exchange=replace(MK2.exchange, receive_bytes_per_cycle=0.5))
    asked = problem(matmul(64, 128, 64))
    bound = MK2.usable_bytes_per_tile
    assert (
        fastest(asked, linear(asked, slow), slow, bound).cycles
        > fastest(asked, linear(asked, MK2), MK2, bound).cycles
    )


def test_a_chains_operands_are_moved_to_where_they_are_read():
    structure = chained(conv(8, 8, 8, 3), True)
    asked = problem(structure)
    one_tile = movement_result_layout((8, 6, 6), Plan((1, 1, 1)))
    have = (*linear(asked, TINY)[:2], one_tile)
    bound = TINY.usable_bytes_per_tile
    for plan in (Plan((1, 6, 1, 1, 1, 1)), Plan((2, 1, 1, 4, 1, 1))):
        far = exact(asked, plan, have, TINY, bound)
        near = exact(asked, far.plan, (*have[:2], final_layout(structure, far.plan)), TINY, bound)
        alone = exact(problem(structure.unchained), far.plan, have[:2], TINY, bound)
        assert far.exchange_cycles > near.exchange_cycles == alone.exchange_cycles
        assert near.compute_cycles > alone.compute_cycles
        assert near.sync_cycles == alone.sync_cycles


def test_resident_operands_of_a_chain_are_counted_once():
    structure = chained(conv(8, 8, 8, 3), False)
    asked = problem(structure, resident=(False, True, True))
    have = linear(asked, TINY)
    plan = Plan((2, 1, 1, 4, 1, 1), combine=Plan((8, 1, 1, 1)))
    choice = exact(asked, plan, have, TINY, TINY.usable_bytes_per_tile)
    weights, bias = operand_layouts(structure, plan)[1:]
    assert choice.resident_bytes == 4 * (weights.block_elements + bias.block_elements)
