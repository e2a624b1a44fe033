"""The search for one operator's plan: the splits worth trying, by the exact traffic they cause.

All splits are priced by estimate first; the best of them, and those under which an operand stays
where it is, by the bytes that every tile receives and sends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...backends import cost
from ...backends.codelets.prices import number_dtype, partials_dtype
from ...backends.price import block_sizes, bus_bytes, sent_elements
from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout
from .candidates import inherited
from .derive import (
    combine_structure,
    compute_layouts,
    home_of_free,
    leaves_partials,
    movement_result_layout,
    result_layout,
)
from .estimate import combining_cycles, result_dims, shortlist, trade_offs
from .orders import orders
from .price import codelet
from .problem import Choice, Problem
from .terms import FREE, Terms, relaxed
from .traffic import traffic

COMBINE_FINALISTS = 1
"""Splits of a combining compute that are tried, beside the one that its partials have."""

COMBINED = 3
"""Splits whose combining is searched too."""


def exact(
    problem: Problem,
    plan: Plan,
    have: tuple[Layout | None, ...],
    target: Target,
    bound: int,
) -> Choice:
    """A plan's price, with the bytes that every tile really receives and sends.

    The plan is completed: its method, its workers and, where it leaves partials without
    saying how they combine, the best way to combine them.
    """
    (first,) = _first_supersteps(problem, (plan,), have, target)
    return _combined(problem, first, have, target, bound)


def _first_supersteps(
    problem: Problem, plans: tuple[Plan, ...], have: tuple[Layout | None, ...], target: Target
) -> list[Choice]:
    """Choices whose combining, where there is any, is not paid for yet."""
    found: list[Choice] = []
    for plan in plans:
        cycles = 0.0
        if not problem.moves:
            sizes = zip(problem.structure.space.sizes, plan.split, strict=True)
            partial = leaves_partials(problem.structure, plan)
            cycles, method, workers = codelet(
                problem.structure.unchained if partial else problem.structure,
                tuple(-(-n // p) for n, p in sizes),
                number_dtype(problem.operand_dtypes),
                problem.result_dtype,
                target,
                plan.method,
                plan.workers,
            )
            plan = replace(plan, method=method, workers=workers)
        arrival = _arrival(problem, plan, have, target)
        sync = cost.sync_cycles(target)
        result = _left_elements(problem, plan) * _left_dtype(problem, plan).itemsize
        found.append(
            Choice(
                plan=plan,
                cycles=cycles + arrival.copy_cycles + arrival.exchange_cycles + sync,
                compute_cycles=cycles + arrival.copy_cycles,
                exchange_cycles=arrival.exchange_cycles,
                sync_cycles=sync,
                resident_bytes=arrival.resident_bytes,
                temporary_bytes=arrival.copied_bytes + result,
                result_bytes=result,
                cells=prod(plan.split),
            )
        )
    return found


def _left_dtype(problem: Problem, plan: Plan) -> np.dtype[Any]:
    """The type of what the first superstep leaves: partials or the result."""
    merged = leaves_partials(problem.structure, plan)
    between = partials_dtype(problem.result_dtype, problem.structure.body)
    return between if merged else problem.result_dtype


def _left_elements(problem: Problem, plan: Plan) -> int:
    """Elements of the largest block that the first superstep leaves."""
    space = problem.structure.space
    return prod(-(-space.dims[d].size // plan.split[d]) for d in result_dims(space))


@dataclass(frozen=True)
class _Arrival:
    """What it takes until the operands lie where a plan wants them, on the tile that has most.

    copy_cycles: for what a tile copies to itself, and padding. resident_bytes: of operands that
    stay for good. copied_bytes: of those that are copied here.
    """

    exchange_cycles: int
    copy_cycles: int
    resident_bytes: int
    copied_bytes: int


def _arrival(
    problem: Problem, plan: Plan, have: tuple[Layout | None, ...], target: Target
) -> _Arrival:
    received = np.zeros(target.tiles, np.int64)
    sent = np.zeros(target.tiles, np.int64)
    copying = np.zeros(target.tiles, np.int64)
    resident = copied = 0
    for i, (layout, dtype) in enumerate(
        zip(_wanted(problem, plan), problem.operand_dtypes, strict=False)
    ):
        source = have[i]
        if source is None and problem.is_free(i):
            source = home_of_free(layout, dtype.itemsize, target.tiles)
        move = problem.moves[i] if problem.moves else None
        size = layout.block_elements * dtype.itemsize
        if source is None:
            resident += size
            continue
        if move is None and source == layout:
            continue
        shared = traffic(source, layout, move)
        here = slice(layout.first_tile, layout.first_tile + layout.cells)
        there = slice(source.first_tile, source.first_tile + source.cells)
        received[here] += bus_bytes(layout, shared.received * dtype.itemsize, target)
        sent[there] += sent_elements(shared) * dtype.itemsize
        copying[here] += cost.copy_cycles(shared.local * dtype.itemsize, target)
        if move is None:
            copied += size
            if any(axis.outside != "none" or axis.divisor > 1 for axis in layout.access.axes):
                padding = np.maximum(block_sizes(layout) - shared.wanted, 0)
                copying[here] += cost.fill_cycles(padding * dtype.itemsize, target)
    return _Arrival(
        int(cost.exchange_cycles(received.max(), sent.max(), target)),
        int(copying.max()),
        resident,
        copied,
    )


def relayout_cycles(source: Layout, wanted: Layout, itemsize: int, target: Target) -> int:
    """Cycles of a superstep that copies a tensor from one layout into another; 0 if it lies there
    already."""
    if source == wanted:
        return 0
    shared = traffic(source, wanted)
    arriving = bus_bytes(wanted, shared.received * itemsize, target)
    sent = sent_elements(shared) * itemsize
    copying = cost.copy_cycles(shared.local * itemsize, target)
    exchange = cost.exchange_cycles(arriving.max(), sent.max(), target)
    return cost.sync_cycles(target) + int(exchange) + int(copying.max())


def _combine_problem(problem: Problem, plan: Plan) -> Problem | None:
    combine = combine_structure(problem.structure, plan)
    if combine is None:
        return None
    own = problem.structure.body.own_arity
    return Problem(
        combine,
        (
            partials_dtype(problem.result_dtype, problem.structure.body),
            *problem.operand_dtypes[own:],
        ),
        problem.result_dtype,
        (False, *problem.resident[own:]),
        merges=False,
        terms=Terms(tiles=problem.terms.tiles),
    )


def _combined(
    problem: Problem, first: Choice, have: tuple[Layout | None, ...], target: Target, bound: int
) -> Choice:
    """A choice with its combining chosen, unless its plan says how, and paid for."""
    rest = _combine_problem(problem, first.plan)
    if rest is None:
        return first
    partials = result_layout(problem.structure, first.plan)
    further = (partials, *have[problem.structure.body.own_arity :])
    if first.plan.combine is None:
        merge = fastest(rest, further, target, bound)
    else:
        merge = exact(rest, first.plan.combine, further, target, bound)
    copies = first.temporary_bytes - first.result_bytes
    return replace(
        first,
        plan=replace(first.plan, combine=merge.plan),
        cycles=first.cycles + merge.cycles,
        compute_cycles=first.compute_cycles + merge.compute_cycles,
        exchange_cycles=first.exchange_cycles + merge.exchange_cycles,
        sync_cycles=first.sync_cycles + merge.sync_cycles,
        resident_bytes=first.resident_bytes + merge.resident_bytes,
        temporary_bytes=first.result_bytes + max(copies, merge.temporary_bytes),
        result_bytes=merge.result_bytes,
        merge=merge,
    )


@lru_cache(maxsize=4096)
def _wanted(problem: Problem, plan: Plan) -> tuple[Layout, ...]:
    """The layouts that the first superstep reads; of a movement, the one that all arrive in."""
    if not problem.moves:
        return compute_layouts(problem.structure, plan)
    shape = problem.structure.space.results[0].shape
    return (movement_result_layout(shape, plan),) * len(problem.moves)


@lru_cache(maxsize=16384)
def finalists(
    problem: Problem,
    have: tuple[Layout | None, ...],
    target: Target,
    bound: int,
    *,
    lean: bool = False,
) -> tuple[Choice, ...]:
    """The most promising plans of an operator, fastest first.

    have, bound: as for `search`. lean: also those that trade cycles for less resident memory.
    """
    short = shortlist(problem, target, bound)
    splits = short.fast if problem.merges else short.fast[:COMBINE_FINALISTS]
    tried = _hopeful(problem, _tried(problem, splits, have, target), target, bound)
    hopeful, others = tried[:COMBINED], tried[COMBINED:]
    if lean and short.lean:
        hopeful += _tried(problem, short.lean, have, target)
    found = [_combined(problem, choice, have, target, bound) for choice in hopeful]
    if not any(problem.terms.hold(choice.temporary_bytes) for choice in found):
        # Partials take room too while they are combined.
        found += [_combined(problem, choice, have, target, bound) for choice in others]
    return tuple(sorted(fitting(found, bound, problem.terms), key=_rank))


def fastest(
    problem: Problem, have: tuple[Layout | None, ...], target: Target, bound: int
) -> Choice:
    """The fastest plan of an operator, whatever it leaves resident within the bound.

    have, bound: as for `search`.
    """
    return finalists(problem, have, target, bound)[0]


@lru_cache(maxsize=4096)
def search(
    problem: Problem, have: tuple[Layout | None, ...], target: Target, bound: int
) -> tuple[Choice, ...]:
    """The best plans of an operator: none is both slower and larger in resident memory.

    have: the layout that every operand is in, None for resident ones. bound: bytes of a tile
    for the resident operands and temporaries. Fastest first. Where no plan keeps the bound,
    the one with least memory is returned.
    """
    return pareto(finalists(problem, have, target, bound, lean=True), bound, problem.terms)


@lru_cache(maxsize=1024)
def considered(
    problem: Problem, have: tuple[Layout | None, ...], target: Target, bound: int
) -> tuple[Choice, ...]:
    """All plans that are priced in full where none is left out for time, fastest first.

    have, bound: as for `search`, whose plans are among them. For people who ask why.
    """
    short = shortlist(problem, target, bound)
    every = tuple(dict.fromkeys(short.fast + short.lean))
    return _priced(problem, every, have, target, bound)


def traded(
    problem: Problem, have: tuple[Layout | None, ...], target: Target, bound: int
) -> tuple[Choice, ...]:
    """As considered, with the cheapest plans for every amount of memory."""
    more = _priced(problem, trade_offs(problem, target, bound), have, target, bound)
    found = {c.plan: c for c in (*considered(problem, have, target, bound), *more)}
    return tuple(sorted(found.values(), key=lambda c: c.cycles))


def _priced(
    problem: Problem,
    splits: tuple[tuple[int, ...], ...],
    have: tuple[Layout | None, ...],
    target: Target,
    bound: int,
) -> tuple[Choice, ...]:
    first = _tried(problem, splits, have, target)
    found = [_combined(problem, choice, have, target, bound) for choice in first]
    return tuple(sorted(fitting(found, bound, problem.terms), key=lambda c: c.cycles))


def _tried(
    problem: Problem,
    splits: tuple[tuple[int, ...], ...],
    have: tuple[Layout | None, ...],
    target: Target,
) -> list[Choice]:
    """The first supersteps of some splits, and of those that an operand already has."""
    placed = (Plan(split, order) for split in splits for order in orders(problem, split, target))
    plans = [*placed, *inherited(problem, have, target)]
    own = map(problem.terms.complete, plans)
    return _first_supersteps(problem, tuple(dict.fromkeys(own)), have, target)


def _hopeful(problem: Problem, choices: list[Choice], target: Target, bound: int) -> list[Choice]:
    """The choices within the bound, combining still to be paid for, the most promising first.

    Combining is estimated here: every tile merges its share.
    """
    parts = np.array([choice.plan.split for choice in choices], np.int64)
    merging = combining_cycles(problem, parts, target) if problem.merges else np.zeros(len(parts))
    total = {id(c): c.cycles + float(m) for c, m in zip(choices, merging, strict=True)}
    fits = fitting(choices, bound, problem.terms)
    return sorted(fits, key=lambda c: (total[id(c)], c.resident_bytes, c.temporary_bytes, c.cells))


def pareto(choices: Iterable[Choice], bound: int, terms: Terms = FREE) -> tuple[Choice, ...]:
    """The choices within a memory bound that no other beats in cycles and resident bytes."""
    fits = fitting(choices, bound, terms)
    front: list[Choice] = []
    for c in sorted(fits, key=_rank):
        if not front or c.resident_bytes < front[-1].resident_bytes:
            front.append(c)
    return tuple(front)


def _rank(choice: Choice) -> tuple[float, int, int, int]:
    return choice.cycles, choice.resident_bytes, choice.temporary_bytes, choice.cells


def fitting(choices: Iterable[Choice], bound: int, terms: Terms = FREE) -> list[Choice]:
    """The choices within a memory bound, and the terms' own as far as it can be kept; where there
    are none, those of least memory."""
    every = list(choices)
    least = min(c.resident_bytes + c.temporary_bytes for c in every)
    fits = [c for c in every if c.resident_bytes + c.temporary_bytes <= max(bound, least)]
    most = relaxed(terms.temporary_bytes, min(c.temporary_bytes for c in fits))
    return [c for c in fits if c.temporary_bytes <= most]


def best(choices: tuple[Choice, ...], byte_price: float) -> Choice:
    """The choice that is cheapest when a resident byte costs so many cycles."""
    return min(choices, key=lambda c: c.cycles + byte_price * c.resident_bytes)
