"""The first superstep of a plan: the arrival of operands, the computation, and its results.

If a plan leaves partials, further supersteps combine them; `search` adds their price.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...backends.prices import cost
from ...backends.prices.price import first_shares_bus
from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from ..plans.derive import (
    compute_layouts,
    home_of_free,
    leaves_partials,
    movement_result_layout,
)
from .arrival import Arrival, Operand, arrival_at_least, arrival_of
from .choice import Choice
from .estimate import result_dims
from .price import codelets
from .problem import Problem
from .question import Question


def lower_bounds(question: Question, plans: tuple[Plan, ...]) -> list[Choice]:
    """Each plan with a lower bound of its price.

    The cost of combining partials is left out, and the arrival of operands is priced with the bytes
    that must move whatever their layout. `arrived` replaces the second by the exact price.
    """
    problem, target = question.problem, question.target
    found: list[Choice] = []
    for plan, (cycles, method, workers) in zip(
        plans, _codelets(problem, plans, target), strict=True
    ):
        plan = _with_codelet(plan, method, workers) if method or workers else plan
        sync = cost.sync_cycles(target)
        left = left_elements(problem, plan) * left_itemsize(problem, plan)
        arriving = _least_arrival(question, plan)
        found.append(
            Choice(
                plan=plan,
                cycles=cycles + arriving.exchange_cycles + sync,
                compute_cycles=cycles,
                exchange_cycles=arriving.exchange_cycles,
                sync_cycles=sync,
                resident_bytes=arriving.resident_bytes,
                temporary_bytes=arriving.copied_bytes + (0 if arriving.holds_result else left),
                result_bytes=left,
                cells=prod(plan.split),
            )
        )
    return found


def _with_codelet(plan: Plan, method: str, workers: tuple[int, ...]) -> Plan:
    # Runs for every plan; calling the constructor is several times as fast as replace().
    return Plan(
        *(plan.split, plan.order, plan.first_tile, method, workers),
        *(plan.combine, plan.steps, plan.ring, plan.across, plan.apart),
    )


def arrived(question: Question, least: Choice) -> Choice:
    """A lower bound with the exact price of the arrival of its operands."""
    return _with_arrival(least, arrival_of(_arriving(question, least), question.target))


def received(question: Question, least: Choice) -> Choice:
    """A lower bound with a closer lower bound of the arrival of its operands."""
    return _with_arrival(least, arrival_at_least(_arriving(question, least), question.target))


def _arriving(question: Question, choice: Choice) -> tuple[Operand, ...]:
    """The operands that have to arrive under a plan."""
    return tuple(
        Operand(each.lies, each.wanted, each.dtype.itemsize, each.move)
        for each in sources(question, choice.plan)
        if each.lies is not None and (each.move is not None or each.lies != each.wanted)
    )


def _with_arrival(least: Choice, arrival: Arrival) -> Choice:
    """A choice with this arrival in place of the lower bound of its arrival."""
    exchange, compute = arrival.then(least.compute_cycles)
    # Runs for most plans; calling the constructor is several times as fast as replace().
    return Choice(
        plan=least.plan,
        cycles=compute + exchange + least.sync_cycles,
        compute_cycles=compute,
        exchange_cycles=exchange,
        sync_cycles=least.sync_cycles,
        resident_bytes=least.resident_bytes,
        temporary_bytes=least.temporary_bytes,
        result_bytes=least.result_bytes,
        cells=least.cells,
        merge=least.merge,
    )


def left_itemsize(problem: Problem, plan: Plan) -> int:
    """The bytes of an element of the first superstep's results: of all partials or of all
    results."""
    merged = leaves_partials(problem.structure, plan)
    return problem.left_itemsize if merged else problem.result_itemsize


def left_elements(problem: Problem, plan: Plan) -> int:
    """The elements of the largest block that the first superstep writes."""
    space = problem.structure.space
    return prod(-(-space.dims[d].size // plan.split[d]) for d in result_dims(space))


def _codelets(
    problem: Problem, plans: tuple[Plan, ...], target: Target
) -> list[tuple[float, str, tuple[int, ...]]]:
    """Cycles, method and workers of each plan's first superstep."""
    if problem.moves:
        return [(0.0, "", ())] * len(plans)
    structure = problem.structure
    found: dict[Plan, tuple[float, str, tuple[int, ...]]] = {}
    for partial in (False, True):
        some = [plan for plan in plans if leaves_partials(structure, plan) == partial]
        cells = tuple(
            tuple(-(-n // p) for n, p in zip(structure.space.sizes, plan.split, strict=True))
            for plan in some
        )
        decided = tuple((plan.method, plan.workers) for plan in some)
        work = problem.workload(target)
        prices = codelets(work.unchained if partial else work, cells, decided)
        found |= zip(some, prices, strict=True)
    return [found[plan] for plan in plans]


class Source(NamedTuple):
    """An operand that a plan reads.

    Attributes:
        operand: its index.
        lies: its present layout; None if it is resident where it is wanted.
        wanted: the layout that the plan reads.
        move: the space of the movement that it passes through, or None.
    """

    operand: int
    lies: Layout | None
    wanted: Layout
    dtype: np.dtype[Any]
    move: Space | None


@lru_cache(maxsize=4096)
def sources(question: Question, plan: Plan) -> tuple[Source, ...]:
    """The operands that the first superstep of a plan reads."""
    problem = question.problem
    moves = problem.moves or (None,) * len(question.have)
    found: list[Source] = []
    for i, (wanted, dtype) in enumerate(
        zip(_wanted(problem, plan), problem.operand_dtypes, strict=False)
    ):
        if i in problem.again:
            continue
        lies = question.have[i]
        if lies is None and problem.is_free(i):
            target = question.target
            lies = home_of_free(wanted, dtype.itemsize, target.tiles, target.chips)
        found.append(Source(i, lies, wanted, dtype, moves[i]))
    return tuple(found)


@lru_cache(maxsize=4096)
def _wanted(problem: Problem, plan: Plan) -> tuple[Layout, ...]:
    """The layouts that the first superstep reads. A movement reads all operands in one layout."""
    if not problem.moves:
        return compute_layouts(problem.structure, plan)
    shape = problem.structure.space.results[0].shape
    return (movement_result_layout(shape, plan),) * len(problem.moves)


class _LeastArrival(NamedTuple):
    """A lower bound of the arrival of a plan's operands.

    Attributes:
        resident_bytes: operands that stay on the tile.
        copied_bytes: copies of other operands.
        exchange_cycles: a lower bound of the cycles of their arrival.
        holds_result: whether the result may be written over a copied operand.
    """

    resident_bytes: int
    copied_bytes: int
    exchange_cycles: int
    holds_result: bool


def _least_arrival(question: Question, plan: Plan) -> _LeastArrival:
    """A lower bound of the arrival of a plan's operands.

    The first cell is one of the largest. It already holds at most the elements that its own block
    shares with one block of the operand's present layout.
    """
    problem, target = question.problem, question.target
    resident = copied = 0
    received, holds_result = 0.0, False
    read = sources(question, plan)
    if problem.moves:
        wanted, dtype = read[0].wanted, read[0].dtype
        held = sum(s.lies.block_elements for s in read if s.lies is not None)
        whole = sum(move.points for move in problem.moves) == prod(wanted.shape)
        received = max(wanted.block_elements - held, 0) * dtype.itemsize if whole else 0.0
        read = ()
    for i, lies, wanted, dtype, _ in read:
        size = wanted.block_elements * dtype.itemsize
        if i in problem.replaced and (lies is None or lies == wanted):
            holds_result = holds_result or not leaves_partials(problem.structure, plan)
        if lies is None:
            resident += size
        elif lies != wanted:
            copied += size
            holds_result = holds_result or _is_overwritten(problem, plan, i)
            missing = max(_wanted_by_first(wanted) - _shared_at_most(lies, wanted), 0)
            missing *= dtype.itemsize
            shared = missing and first_shares_bus(wanted)
            received += missing / target.exchange.pair_factor if shared else missing
    exchange = cost.least_exchange_cycles_of_one(received, 0, target)
    return _LeastArrival(resident, copied, exchange, holds_result)


def _is_overwritten(problem: Problem, plan: Plan, operand: int) -> bool:
    """Whether a plan may write its result over its own copy of an operand."""
    return (
        not leaves_partials(problem.structure, plan)
        and problem.structure.reads_in_place(operand)
        and problem.operand_dtypes[operand].itemsize == problem.result_dtype.itemsize
    )


@lru_cache(maxsize=8192)
def _wanted_by_first(layout: Layout) -> int:
    """A lower bound of the tensor elements in the first cell of a layout; padding does not
    count."""
    count = 1
    for axis, size, step in zip(layout.access.axes, layout.box, layout.steps, strict=True):
        if axis.divisor > 1 or axis.outside not in ("none", "fill"):
            return 0
        first, last = axis.offset, axis.offset + (size - 1) * step
        if any(a < 0 for _, a in axis.terms):
            return 0
        low = max(-(first // step), 0)
        high = min((axis.size - 1 - first) // step, size - 1) if last >= axis.size else size - 1
        count *= max(high - low + 1, 0)
    return count


def _shared_at_most(source: Layout, wanted: Layout) -> int:
    """An upper bound of the elements that one block of each of two layouts share."""
    if source.shape != wanted.shape:
        return source.block_elements
    return prod(map(min, source.box, wanted.box))
