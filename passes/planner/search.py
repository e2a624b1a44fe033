"""The search for one operator's plan: the splits worth trying, by the exact traffic they cause.

All splits are priced by estimate first; the best of them, and those under which an operand stays
where it is, by the bytes that every tile receives and sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from itertools import islice
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...backends import cost
from ...backends.codelets.prices import number_dtype, partials_dtype
from ...backends.price import block_sizes, bus_bytes, sent_elements, shares_bus
from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import Overlap
from ...ir.geometry.space import Space
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
from .price import Integers, codelets
from .problem import Choice, Problem
from .terms import FREE, Terms, relaxed
from .traffic import traffic

COMBINE_FINALISTS = 1
"""Splits of a combining compute that are tried, beside the one that its partials have."""

COMBINED = 3
"""Splits whose combining is searched too."""


@lru_cache(maxsize=8192)
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
    (least,) = _at_least(problem, (plan,), have, target)
    return _combined(problem, _arrived(problem, least, have, target), have, target, bound)


def _at_least(
    problem: Problem, plans: tuple[Plan, ...], have: tuple[Layout | None, ...], target: Target
) -> list[Choice]:
    """Choices whose combining, where there is any, is not paid for yet, and of the arrival of whose
    operands only what no layout of them can save."""
    found: list[Choice] = []
    for plan, (cycles, method, workers) in zip(
        plans, _codelets(problem, plans, target), strict=True
    ):
        plan = replace(plan, method=method, workers=workers) if method or workers else plan
        sync = cost.sync_cycles(target)
        result = _left_elements(problem, plan) * _left_dtype(problem, plan).itemsize
        resident, copied, exchange, holds_result = _arriving(problem, plan, have, target)
        found.append(
            Choice(
                plan=plan,
                cycles=cycles + exchange + sync,
                compute_cycles=cycles,
                exchange_cycles=exchange,
                sync_cycles=sync,
                resident_bytes=resident,
                temporary_bytes=copied + (0 if holds_result else result),
                result_bytes=result,
                cells=prod(plan.split),
            )
        )
    return found


def _codelets(
    problem: Problem, plans: tuple[Plan, ...], target: Target
) -> list[tuple[float, str, tuple[int, ...]]]:
    """Cycles, method and workers of each plan's first superstep."""
    if problem.moves:
        return [(0.0, "", ())] * len(plans)
    structure = problem.structure
    types = number_dtype(problem.operand_dtypes), problem.result_dtype
    found: dict[Plan, tuple[float, str, tuple[int, ...]]] = {}
    for partial in (False, True):
        some = [plan for plan in plans if leaves_partials(structure, plan) == partial]
        cells = tuple(
            tuple(-(-n // p) for n, p in zip(structure.space.sizes, plan.split, strict=True))
            for plan in some
        )
        decided = tuple((plan.method, plan.workers) for plan in some)
        own = structure.unchained if partial else structure
        found |= zip(some, codelets(own, cells, *types, target, decided), strict=True)
    return [found[plan] for plan in plans]


def _arrived(
    problem: Problem, least: Choice, have: tuple[Layout | None, ...], target: Target
) -> Choice:
    """A choice with what the arrival of its operands really takes."""
    exchange, copying = _arrival(problem, least.plan, have, target)
    compute = least.compute_cycles + copying
    return replace(
        least,
        cycles=compute + exchange + least.sync_cycles,
        compute_cycles=compute,
        exchange_cycles=exchange,
    )


def _left_dtype(problem: Problem, plan: Plan) -> np.dtype[Any]:
    """The type of what the first superstep leaves: partials or the result."""
    merged = leaves_partials(problem.structure, plan)
    between = partials_dtype(problem.result_dtype, problem.structure.body)
    return between if merged else problem.result_dtype


def _left_elements(problem: Problem, plan: Plan) -> int:
    """Elements of the largest block that the first superstep leaves."""
    space = problem.structure.space
    return prod(-(-space.dims[d].size // plan.split[d]) for d in result_dims(space))


@lru_cache(maxsize=4096)
def _sources(
    problem: Problem, plan: Plan, have: tuple[Layout | None, ...], target: Target
) -> tuple[tuple[Layout | None, Layout, np.dtype[Any], Space | None], ...]:
    """Of each operand that a plan reads, where it lies, where it is wanted, its type and its move.

    It lies nowhere where it stays for good.
    """
    moves = problem.moves or (None,) * len(have)
    found: list[tuple[Layout | None, Layout, np.dtype[Any], Space | None]] = []
    for i, (layout, dtype) in enumerate(
        zip(_wanted(problem, plan), problem.operand_dtypes, strict=False)
    ):
        source = have[i]
        if source is None and problem.is_free(i):
            source = home_of_free(layout, dtype.itemsize, target.tiles)
        found.append((source, layout, dtype, moves[i]))
    return tuple(found)


def _arriving(
    problem: Problem, plan: Plan, have: tuple[Layout | None, ...], target: Target
) -> tuple[int, int, int, bool]:
    """Bytes that stay for good, bytes copied, the least cycles that they take to arrive, and
    whether the result may be written over what arrives.

    The first cell is a largest one. It holds no more of an operand than its own block shares with
    one of where that lies.
    """
    resident = copied = 0
    received, holds_result = 0.0, False
    sources = _sources(problem, plan, have, target)
    if problem.moves:
        _, layout, dtype, _ = sources[0]
        held = sum(source.block_elements for source, *_ in sources if source is not None)
        whole = sum(move.points for move in problem.moves) == prod(layout.shape)
        received = max(layout.block_elements - held, 0) * dtype.itemsize if whole else 0.0
        sources = ()
    for i, (source, layout, dtype, _) in enumerate(sources):
        size = layout.block_elements * dtype.itemsize
        if source is None:
            resident += size
        elif source != layout:
            copied += size
            holds_result = holds_result or _is_overwritten(problem, plan, i)
            missing = max(_wanted_by_first(layout) - _shared_at_most(source, layout), 0)
            missing *= dtype.itemsize
            shared = missing and shares_bus(layout)[0]
            received += missing / target.exchange.pair_factor if shared else missing
    return resident, copied, cost.exchange_cycles_of_one(received, 0, target), holds_result


def _is_overwritten(problem: Problem, plan: Plan, operand: int) -> bool:
    """Whether what a plan leaves may be written over its own copy of an operand."""
    return (
        not leaves_partials(problem.structure, plan)
        and problem.structure.reads_in_place(operand)
        and problem.operand_dtypes[operand].itemsize == problem.result_dtype.itemsize
    )


@lru_cache(maxsize=8192)
def _wanted_by_first(layout: Layout) -> int:
    """Elements of a tensor that the first cell of a layout holds, at least: padding left out."""
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
    """Elements that a block of where a tensor lies and one of where it is wanted have in common."""
    if source.shape != wanted.shape:
        return source.block_elements
    return prod(map(min, source.box, wanted.box))


def _arrival(
    problem: Problem, plan: Plan, have: tuple[Layout | None, ...], target: Target
) -> tuple[int, int]:
    """Cycles until the operands lie where a plan wants them: of the exchange, and for what a tile
    copies to itself, padding included, each on the tile that has most."""
    return _arriving_together(
        tuple(
            _Operand(source, layout, dtype.itemsize, move)
            for source, layout, dtype, move in _sources(problem, plan, have, target)
            if source is not None and (move is not None or source != layout)
        ),
        target,
    )


class _Operand(NamedTuple):
    """What is to arrive: where it lies, where it is wanted, bytes of an element, and its move."""

    source: Layout
    wanted: Layout
    itemsize: int
    move: Space | None


@lru_cache(maxsize=8192)
def _arriving_together(operands: tuple[_Operand, ...], target: Target) -> tuple[int, int]:
    """Cycles until some operands have arrived: of the exchange, and of copies within a tile."""
    each = [_brought(operand, target) for operand in operands]
    received = _most([(one.first_wanted, one.received) for one in each])
    exchange = cost.exchange_cycles_of_one(received, 0, target)
    sent_at_most = sum(one.sent_at_most for one in each)
    if cost.exchange_cycles_of_one(0, sent_at_most, target) > exchange:
        sent = _most([(one.first_source, one.sent) for one in each])
        exchange = cost.exchange_cycles_of_one(received, sent, target)
    if len(each) == 1 and each[0].padding is None:
        copying = int(cost.copy_cycles(each[0].copied.max(), target))
    else:
        copying = _most([(one.first_wanted, _copying(one, target)) for one in each])
    return exchange, copying


def _most(counts: list[tuple[int, Integers]]) -> int:
    """What the tile has that has most of all counts, each of which begins at some tile."""
    if len(counts) <= 1:
        return max((int(count.max()) for _, count in counts), default=0)
    total = np.zeros(max(first + len(count) for first, count in counts), np.int64)
    for first, count in counts:
        total[first : first + len(count)] += count
    return int(total.max())


@dataclass(frozen=True, eq=False)
class _Brought:
    """What an operand's arrival takes, in bytes, by each cell where it is wanted, from tile
    first_wanted on.

    received: as those of a tile's own bus. copied: that a tile has itself. padding: to be filled.
    """

    shared: Overlap
    itemsize: int
    received: Integers
    copied: Integers
    padding: Integers | None

    @property
    def first_source(self) -> int:
        return self.shared.source.first_tile

    @property
    def first_wanted(self) -> int:
        return self.shared.destination.first_tile

    @cached_property
    def sent(self) -> Integers:
        """By each cell where the operand lies, from tile first_source on."""
        return sent_elements(self.shared) * self.itemsize

    @cached_property
    def sent_at_most(self) -> int:
        """No cell sends more; found at once."""
        return self.itemsize * prod(int(group.sent.max()) for group in self.shared.groups)


@lru_cache(maxsize=1024)
def _brought(operand: _Operand, target: Target) -> _Brought:
    source, wanted, itemsize, move = operand
    shared = traffic(source, wanted, move)
    pads = move is None and any(a.outside != "none" or a.divisor > 1 for a in wanted.access.axes)
    return _Brought(
        shared,
        itemsize,
        bus_bytes(wanted, shared.received * itemsize, target),
        shared.local * itemsize,
        np.maximum(block_sizes(wanted) - shared.wanted, 0) * itemsize if pads else None,
    )


def _copying(one: _Brought, target: Target) -> Integers:
    """Cycles of each cell that an operand is wanted on, for what it copies and fills."""
    copying = cost.copy_cycles(one.copied, target)
    return copying if one.padding is None else copying + cost.fill_cycles(one.padding, target)


def relayout_cycles(source: Layout, wanted: Layout, itemsize: int, target: Target) -> int:
    """Cycles of a superstep that copies a tensor from one layout into another; 0 if it lies there
    already."""
    if source == wanted:
        return 0
    operand = _Operand(source, wanted, itemsize, None)
    return cost.sync_cycles(target) + sum(_arriving_together((operand,), target))


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
    plans = _worth_trying(problem, splits, have, target)
    hopeful = _by_promise(problem, plans, have, target, bound)
    found = [
        _combined(problem, choice, have, target, bound) for choice in islice(hopeful, COMBINED)
    ]
    if lean and short.lean:
        found += _priced(problem, short.lean, have, target, bound)
    if not any(problem.terms.hold(choice.temporary_bytes) for choice in found):
        # Partials take room too while they are combined.
        found += [_combined(problem, choice, have, target, bound) for choice in hopeful]
    return tuple(sorted(fitting(found, bound, problem.terms), key=rank))


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
    plans = _worth_trying(problem, splits, have, target)
    found = [
        _combined(problem, _arrived(problem, least, have, target), have, target, bound)
        for least in _at_least(problem, plans, have, target)
    ]
    return tuple(sorted(fitting(found, bound, problem.terms), key=lambda c: c.cycles))


@lru_cache(maxsize=4096)
def sketched(
    problem: Problem, have: tuple[Layout | None, ...], target: Target, bound: int
) -> tuple[Choice, ...]:
    """Plans that trade cycles for bytes, the most promising first; combining is estimated.

    have, bound: as for `search`. What a plan really costs, `exact` says.
    """
    short = shortlist(problem, target, bound)
    splits = tuple(dict.fromkeys(short.fast + short.lean))
    least = _at_least(problem, _worth_trying(problem, splits, have, target), have, target)
    found: list[Choice] = []
    for cycles, choice in sorted(
        zip(_merging(problem, least, target), least, strict=True),
        key=lambda pair: (pair[0] + pair[1].cycles, *rank(pair[1])),
    ):
        if not _beaten(choice, cycles, found):
            arrived = _arrived(problem, choice, have, target)
            found.append(replace(arrived, cycles=arrived.cycles + cycles))
    return tuple(fitting(found, bound, problem.terms))


def _beaten(choice: Choice, merging: float, found: Iterable[Choice]) -> bool:
    """Whether another choice takes no more cycles and bytes, so many cycles yet to come."""
    return any(
        other.cycles <= choice.cycles + merging
        and other.resident_bytes <= choice.resident_bytes
        and other.temporary_bytes <= choice.temporary_bytes
        for other in found
    )


def _merging(problem: Problem, choices: list[Choice], target: Target) -> list[float]:
    """Cycles to combine what choices leave, by estimate: every tile merges its share."""
    if not problem.merges or not choices:
        return [0.0] * len(choices)
    parts = np.array([choice.plan.split for choice in choices], np.int64)
    return [float(cycles) for cycles in combining_cycles(problem, parts, target)]


def _worth_trying(
    problem: Problem,
    splits: tuple[tuple[int, ...], ...],
    have: tuple[Layout | None, ...],
    target: Target,
) -> tuple[Plan, ...]:
    """The plans of some splits, and those that an operand already has."""
    plans = *_ordered(problem, splits, target), *inherited(problem, have, target)
    return tuple(dict.fromkeys(map(problem.terms.complete, plans)))


@lru_cache(maxsize=1024)
def _ordered(
    problem: Problem, splits: tuple[tuple[int, ...], ...], target: Target
) -> tuple[Plan, ...]:
    """The plans of some splits, in all orders worth trying."""
    return tuple(Plan(split, order) for split in splits for order in orders(problem, split, target))


def _by_promise(
    problem: Problem,
    plans: tuple[Plan, ...],
    have: tuple[Layout | None, ...],
    target: Target,
    bound: int,
) -> Iterator[Choice]:
    """The choices within the bound, combining still to be paid for, the most promising first.

    Combining is estimated here. What arrives is priced only once the least that it can take has
    made a choice the most promising one.
    """
    least = _at_least(problem, plans, have, target)
    merging = _merging(problem, least, target)
    fits = {id(choice) for choice in fitting(least, bound, problem.terms)}

    def entry(i: int, choice: Choice, priced: bool) -> _Entry:
        _, resident, temporary, cells = rank(choice)
        cycles = choice.cycles + merging[i]
        return cycles, resident, temporary, cells, i, priced, choice

    queue = [entry(i, choice, False) for i, choice in enumerate(least) if id(choice) in fits]
    heapify(queue)
    while queue:
        *_, i, priced, choice = heappop(queue)
        if priced:
            yield choice
        else:
            heappush(queue, entry(i, _arrived(problem, choice, have, target), True))


_Entry: TypeAlias = "tuple[float, int, int, int, int, bool, Choice]"


def pareto(choices: Iterable[Choice], bound: int, terms: Terms = FREE) -> tuple[Choice, ...]:
    """The choices within a memory bound that no other beats in cycles and resident bytes."""
    fits = fitting(choices, bound, terms)
    front: list[Choice] = []
    for c in sorted(fits, key=rank):
        if not front or c.resident_bytes < front[-1].resident_bytes:
            front.append(c)
    return tuple(front)


def rank(choice: Choice) -> tuple[float, int, int, int]:
    """What choices are sorted by: the fastest first, then the leanest."""
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
