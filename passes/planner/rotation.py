"""Plans of several steps for one operator: their price, and the search for the best.

A tile that cannot hold its part of an operand takes it one step at a time. Where many tiles need
the same part, each begins with a different step of it, and the steps rotate among the tiles (see
`plans.steps`). A weight is then stored once instead of once per tile.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ...backends.prices import cost
from ...backends.prices.codelets import elements
from ...backends.prices.workload import Workload, roles
from ...backends.target import Target
from ...dialects.abele import Plan
from ...dialects.structured import Structure
from ...ir.geometry.layout import Layout
from ..plans.derive import (
    combine_structure,
    compute_layouts,
    home_of_free,
    is_legal_in_steps,
    leaves_partials,
    operand_layouts,
    refined,
    result_layout,
)
from ..plans.steps import PlanStep, adding, passes_of
from . import candidates
from .charges import Charges, Cycles, target_charges
from .choice import Choice, pareto, pareto_rows
from .estimate import result_dims
from .price import Integers, block_elements, codelet
from .problem import Problem
from .question import Question
from .search import exact, fastest

MOST_STEPS = 32
"""The most steps of a plan.

Each step adds operations to the program. Chosen by trial on SqueezeNet on mk2:19 (same with half
and double), and on a 4096 x 4096 x 4096 product of float16 in 40 % of a tile's memory on mk2.
There, no plan of several steps fits with half; double: same.
"""

PRICED = 4
"""The number of plans whose exchange is computed exactly.

Chosen by trial on the same product: same with 2 and 8.
"""


def priced_in_steps(question: Question, plan: Plan) -> Choice:
    """The price of a plan of several steps, one after another.

    The plan is completed with its method, its workers and the combining of its partials. In a row
    of steps that add up, each step between the second and the last is charged like the second,
    because it moves and computes as much. Resident operands are stored where the plan wants all
    their parts, and each step copies its own part from there.
    Raises ValueError if it is not a plan of this operator.
    """
    problem = question.problem
    plan = _completed(question, plan)
    rows = tuple(passes_of(problem.structure, plan))
    homes = operand_layouts(problem.structure, plan)
    steps = _Steps(question, rows, _sources(question, homes))
    paid: list[tuple[Choice, int]] = []
    results: list[int] = []
    for row in rows:
        paid += steps.paid(row, sum(results))
        results.append(paid[-1][0].result_bytes)
    if len(rows) > 1:
        paid.append((_join(paid[-1][0], results, question.target), 1))
    stay = zip(homes, problem.operand_dtypes, problem.resident, strict=False)
    return Choice(
        plan=plan,
        cycles=sum(each.cycles * times for each, times in paid),
        compute_cycles=sum(each.compute_cycles * times for each, times in paid),
        exchange_cycles=sum(each.exchange_cycles * times for each, times in paid),
        sync_cycles=sum(each.sync_cycles * times for each, times in paid),
        resident_bytes=sum(h.block_elements * dtype.itemsize for h, dtype, s in stay if s),
        temporary_bytes=max(each.temporary_bytes for each, _ in paid),
        result_bytes=sum(results),
        cells=prod(plan.split),
    )


def _completed(question: Question, plan: Plan) -> Plan:
    """A plan completed with the combining of its partials, if any, its method and its workers."""
    problem = question.problem
    rows = tuple(passes_of(problem.structure, plan))
    last = rows[-1][-1]
    if plan.combine is None and leaves_partials(last.structure, last.plan):
        merge = _Steps(question, (), (None,) * len(question.have)).merged(last)
        plan = replace(plan, combine=merge.plan)
    if plan.method or plan.workers:
        return plan
    first = rows[0][0]
    structure, cells = refined(first.structure, first.plan)
    dtypes = problem.number_dtype, problem.partials_dtype
    _, method, workers = codelet(
        Workload(structure.unchained, *dtypes, question.target),
        tuple(-(-n // p) for n, p in zip(structure.space.sizes, cells.split, strict=True)),
    )
    return replace(plan, method=method, workers=workers[: len(plan.split)])


def _sources(question: Question, homes: tuple[Layout, ...]) -> tuple[Layout, ...]:
    """The layouts in which operands are stored.

    Operands without a layout are at home; free operands are near it.
    """
    problem, target = question.problem, question.target
    tiles, chips = target.tiles, target.chips
    return tuple(
        layout or (home_of_free(home, dtype.itemsize, tiles, chips) if problem.is_free(i) else home)
        for i, (layout, home, dtype) in enumerate(
            zip(question.have, homes, problem.operand_dtypes, strict=True)
        )
    )


def _join(last: Choice, results: list[int], target: Target) -> Choice:
    """The price of joining the parts of results side by side.

    Args:
        results: bytes of each on a tile.
    """
    copying = float(cost.copy_cycles(np.array(results), target).sum())
    sync = cost.sync_cycles(target)
    return replace(
        last,
        cycles=copying + sync,
        compute_cycles=copying,
        exchange_cycles=0.0,
        sync_cycles=sync,
        temporary_bytes=2 * sum(results),
    )


def _wanted(step: PlanStep) -> tuple[Layout, ...]:
    """The blocks that a step reads, without the operands of its chain."""
    return compute_layouts(step.structure.unchained, step.plan)


@dataclass
class _Steps:
    """The prices of an operator's steps, which depend on the blocks that earlier steps have
    fetched.

    Attributes:
        sources: the layouts of the operands.
        fetched: (operand, block) pairs that are on the tiles.
        to_come: for each pair, the number of later steps that want it.
    """

    question: Question
    rows: tuple[tuple[PlanStep, ...], ...]
    sources: tuple[Layout | None, ...]
    fetched: set[tuple[int, Layout]] = field(default_factory=set)
    to_come: Counter[tuple[int, Layout]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for row in self.rows:
            for step in row:
                self.to_come.update(enumerate(_wanted(step)))

    @property
    def problem(self) -> Problem:
        """The operator to be planned."""
        return self.question.problem

    @property
    def between(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the partial sums, or members, that a step leaves to the next step."""
        return self.problem.left_dtypes

    def paid(self, row: tuple[PlanStep, ...], held: int) -> list[tuple[Choice, int]]:
        """The prices of a row of steps, each with the number of times that it is paid.

        Args:
            held: bytes of a tile that hold the results of earlier rows.
        """
        last = len(row) - 1
        found: list[tuple[Choice, int]] = []
        for number in dict.fromkeys((0, min(1, last), last)):
            choice = self.priced(row, number)
            # The sums of earlier steps are on the tile in addition to those that this step makes.
            left = found[-1][0].result_bytes if found else 0
            more = replace(choice, temporary_bytes=choice.temporary_bytes + held + left)
            found.append((more, last - 1 if 0 < number < last else 1))
        if leaves_partials(row[-1].structure, row[-1].plan):
            choice = self.merged(row[-1])
            left = found[-1][0].result_bytes
            more = replace(choice, temporary_bytes=choice.temporary_bytes + held + left)
            found.append((more, 1))
        return found

    def priced(self, row: tuple[PlanStep, ...], number: int) -> Choice:
        """The price of one step of a row, without combining its partials."""
        step, own = row[number], self.problem.structure.own_operands
        ends = number == len(row) - 1 and not leaves_partials(step.structure, step.plan)
        structure, cells = refined(step.structure, step.plan)
        dtypes, kept = self.problem.operand_dtypes[:own], self._kept_bytes()
        have = self._at_hand(step)
        if number:
            structure = adding(structure, chain=ends)
            dtypes += self.between
            before = result_layout(row[number - 1].structure, step.plan)
            have += (before,) * len(self.between)
        elif not ends:
            structure = structure.partial
        if ends:
            dtypes += self.problem.operand_dtypes[own:]
            have += self.sources[own:]
        workers = step.plan.workers
        if workers:
            workers += (1,) * (len(cells.split) - len(workers))
        cut = replace(cells, method=step.plan.method, workers=workers)
        choice = self._exact(structure, dtypes, self.between if not ends else (), have, cut)
        return replace(choice, temporary_bytes=choice.temporary_bytes + kept)

    def merged(self, step: PlanStep) -> Choice:
        """The price of combining the partials of a row's last step."""
        own = self.problem.structure.own_operands
        structure = combine_structure(step.structure, step.plan)
        assert structure is not None
        dtypes = *self.between, *self.problem.operand_dtypes[own:]
        partials = (result_layout(step.structure, step.plan),) * len(self.between)
        have = *partials, *self.sources[own:]
        return self._exact(structure, dtypes, (), have, step.plan.combine)

    def _at_hand(self, step: PlanStep) -> tuple[Layout | None, ...]:
        """The layout of each operand of a step: the wanted block if an earlier step has fetched
        it."""
        found: list[Layout | None] = []
        for i, wanted in enumerate(_wanted(step)):
            there = (i, wanted) in self.fetched
            found.append(wanted if there else self.sources[i])
            self.fetched.add((i, wanted))
            self.to_come[i, wanted] -= 1
        return tuple(found)

    def _kept_bytes(self) -> int:
        """Bytes of fetched blocks that later steps want."""
        dtypes = self.problem.operand_dtypes
        return sum(
            block.block_elements * dtypes[i].itemsize
            for i, block in self.fetched
            if self.to_come[i, block] > 0
        )

    def _exact(
        self,
        structure: Structure,
        dtypes: tuple[np.dtype[Any], ...],
        results: tuple[np.dtype[Any], ...],
        have: tuple[Layout | None, ...],
        plan: Plan | None,
    ) -> Choice:
        """The exact price of a structure.

        Args:
            results: the dtypes of its results; () for the operator's own.
        """
        problem = self.problem
        made, *further = results or (problem.result_dtype, *problem.further_dtypes)
        part = Problem(
            *(structure, dtypes, made, (False,) * len(dtypes)),
            merges=False,
            further_dtypes=tuple(further),
        )
        question = replace(self.question, problem=part, have=have)
        return fastest(question) if plan is None else exact(question, plan)


@dataclass(frozen=True)
class _Found:
    """Plans with one number of steps around one ring, with prices estimated from block sizes.

    Attributes:
        parts: (candidates, dimensions).
        ring: the dimension, or -1.
    """

    parts: Integers
    steps: int
    ring: int
    cycles: Cycles
    bytes: Integers


@lru_cache(maxsize=1024)
def search_in_steps(question: Question) -> tuple[Choice, ...]:
    """The best plans of several steps for a matrix product, in the form that `search` returns.

    Empty if the operator is not a matrix product.
    """
    problem, bound = question.problem, question.bound
    depth = _depth(problem.structure)
    if depth is None:
        return ()
    found = _candidates(problem, depth, question.target)
    if not found:
        return ()
    cycles = np.concatenate([each.cycles for each in found])
    size = np.concatenate([each.bytes for each in found])
    fits = np.flatnonzero(size <= max(bound, size.min()))
    rows = fits[pareto_rows(cycles[fits], size[fits])]
    if len(rows) > PRICED:
        rows = rows[np.linspace(0, len(rows) - 1, PRICED).round().astype(np.int64)]
    starts = [0, *accumulate(len(each.cycles) for each in found)]
    choices: list[Choice] = []
    for row in rows.tolist():
        group = bisect(starts, row) - 1
        plan = _plan(found[group], row - starts[group], depth)
        if is_legal_in_steps(problem.structure, plan, problem.result_dtype):
            choices.append(priced_in_steps(question, plan))
    return pareto(choices, bound) if choices else ()


def _depth(structure: Structure) -> int | None:
    """The dimension over which a matrix product sums; None for other operators."""
    found = roles(structure)
    if found is None or found.kernel or found.groups:
        return None
    long = [d for d in found.in_channels if structure.space.dims[d].size > 1]
    return long[0] if len(long) == 1 else None


def _plan(found: _Found, row: int, depth: int) -> Plan:
    split = tuple(found.parts[row].tolist())
    steps = tuple(found.steps if d == depth else 1 for d in range(len(split)))
    ring = tuple(found.ring if d == depth else -1 for d in range(len(split)))
    return Plan(split, steps=steps, ring=ring if found.ring >= 0 else ())


def _candidates(problem: Problem, depth: int, target: Target) -> list[_Found]:
    """All plans that cut only the depth in time, without a ring and around each possible ring."""
    space = problem.structure.space
    parts = candidates.splits(problem, target.tiles_per_chip)
    parts = parts[parts[:, depth] == 1]
    charges = target_charges(target, problem.number_dtype, problem.partials_dtype)
    size = space.dims[depth].size
    whole = [access.dims() for access in space.operands[: problem.structure.own_operands]]
    rings = [
        r
        for r in space.of_kind("parallel")
        if any(depth in dims and r not in dims for dims in whole)
    ]
    found: list[_Found] = []
    for steps in range(2, min(size, MOST_STEPS) + 1):
        if size % steps:
            continue
        for ring in (-1, *rings):
            some = parts
            if ring >= 0:
                equal = space.dims[ring].size % parts[:, ring] == 0
                some = parts[equal & (parts[:, ring] % steps == 0)]
            if len(some):
                found.append(_estimated(problem, depth, some, steps, ring, charges))
    return found


def _estimated(
    problem: Problem, depth: int, parts: Integers, steps: int, ring: int, charges: Charges
) -> _Found:
    """Prices estimated from block sizes, independent of the operands' layouts."""
    structure = problem.structure
    space, found = structure.space, roles(structure)
    assert found is not None
    sizes = np.array(space.sizes, np.int64)
    sizes[depth] //= steps
    cells = -(-sizes // parts)
    points = elements(cells, result_dims(space))
    multiplying = charges.multiply_cycles(
        elements(cells, found.field),
        elements(cells, found.in_channels),
        elements(cells, found.out_channels),
    )
    resident = np.zeros(len(parts), np.int64)
    step, once = np.zeros_like(resident), np.zeros_like(resident)
    operands = zip(space.operands, problem.operand_dtypes, problem.resident, strict=False)
    for access, dtype, stays in list(operands)[: structure.own_operands]:
        block = block_elements(access, cells) * dtype.itemsize
        goes = depth in access.dims()
        if goes:
            step += block
        elif not stays:
            once += block
        if stays:
            round_ring = ring >= 0 and ring not in access.dims()
            resident += block if round_ring or not goes else block * steps
    each = multiplying + charges.receive_cycles(step) + charges.sync_cycles
    cycles = steps * each + (steps - 1) * charges.pair_cycles(points)
    cycles = cycles + charges.receive_cycles(once)
    held = resident + step + once + 2 * points * charges.partial_bytes
    return _Found(parts, steps, ring, np.asarray(cycles, np.float64), held)
