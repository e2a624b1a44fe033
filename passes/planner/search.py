"""The search for the plan of one operator that takes a single step.

All splits are priced by estimate first. The best of them, and the splits under which an operand
stays on its tiles, are priced by the bytes that every tile receives and sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from heapq import merge as merged
from itertools import islice
from typing import TypeAlias

import numpy as np

from ...backends.target import Target
from ...dialects.abele import Plan
from ...dialects.combiners import MEMBERS
from ...ir.geometry.tiles import Tiles
from ..plans.derive import combine_structure, result_layout
from .candidates import inherited
from .choice import Choice, fitting, pareto, rank
from .estimate import Splits, combining_cycles, shortlist, trade_offs
from .orders import orders
from .problem import Problem
from .question import Question
from .spreads import over_chips
from .superstep import arrived, lower_bounds, received
from .terms import Terms

COMBINE_FINALISTS = 1
"""The number of splits of a combining compute that are tried, besides the split of its partials.

Chosen by trial, roomy. With 2: at most 0.05 % fewer cycles, 13 % more planning time.
"""

COMBINED = 3
"""The number of plans, the most promising ones, for which the best combining is searched.

Chosen by trial, roomy. With 1: up to 0.77 % more cycles, 14 % less planning time. With 6: up to
0.44 % fewer cycles, 23 % more time.
"""


@lru_cache(maxsize=8192)
def exact(question: Question, plan: Plan) -> Choice:
    """A plan's price, with the bytes that every tile really receives and sends.

    The plan is completed with its method, its workers and, if it leaves partials and has no
    combine, the best way to combine them.
    """
    (least,) = lower_bounds(question, (plan,))
    return _combined(question, arrived(question, least))


def _combined(question: Question, first: Choice) -> Choice:
    """A choice with the price of combining its partials.

    The best way to combine them is searched for unless the plan has one.
    """
    rest = _combining(question, first.plan)
    if rest is None:
        return first
    combine = first.plan.combine
    merge = _fastest_merge(rest, first.plan.tiles) if combine is None else exact(rest, combine)
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


CLEARLY = 0.9
"""A merge aside is taken if it needs at most this share of the cycles of a merge on the tiles that
have the partials. Its price leaves out that its result, and the other operands of functions behind
it, travel further."""


def _fastest_merge(question: Question, tiles: Tiles) -> Choice:
    """The fastest way to combine partials, in one compute or, if the problem may be cut, in two.

    Args:
        tiles: those that have the partials.
    """
    found: list[Choice] = []
    for way in over_chips(question):
        found.append(fastest(replace(way, problem=replace(way.problem, merges=False))))
        if way.problem.merges:
            found.append(fastest(way))
    best = min(found, key=lambda choice: choice.cycles)
    aside = _aside(question, best.plan, tiles)
    return best if aside is None or aside.cycles > CLEARLY * best.cycles else aside


def _aside(question: Question, plan: Plan, tiles: Tiles) -> Choice | None:
    """A way to combine partials on tiles of the same chip that have none, where none is copied
    within a tile; None if there is no such tile.

    Args:
        plan: the fastest way on any tiles.
        tiles: those that have the partials.
    """
    each = question.target.tiles_per_chip
    if tiles.apart or plan.across:
        return None
    before, after = tiles.first % each, -tiles.end % each
    first, room = (tiles.end, after) if after >= before else (tiles.first - before, before)
    if not room:
        return None
    if plan.tiles.count > room:
        few = replace(question.problem.terms, tiles=room, across=(), apart=0)
        plan = fastest(replace(question, problem=_once(question.problem, few))).plan
    return exact(question, replace(plan, first_tile=first, combine=None))


def _once(problem: Problem, terms: Terms) -> Problem:
    """A problem under other terms, whose partials are combined in one compute."""
    return replace(problem, terms=terms, merges=False)


def _combining(question: Question, plan: Plan) -> Question | None:
    """The question of the best way to combine a plan's partials; None if it leaves none."""
    problem = question.problem
    combine = combine_structure(problem.structure, plan)
    if combine is None:
        return None
    own, body = problem.structure.own_operands, problem.structure.body
    merging = Problem(
        combine,
        (*problem.left_dtypes, *problem.operand_dtypes[own:]),
        problem.result_dtype,
        (False,) * len(problem.left_dtypes) + problem.resident[own:],
        # Merging members takes long, so it may be split as well, but only once.
        merges=bool(body.member_kinds) and body.function != MEMBERS,
        terms=Terms(tiles=problem.terms.tiles),
        further_dtypes=problem.further_dtypes,
    )
    partials = (result_layout(problem.structure, plan),) * len(problem.left_dtypes)
    have = (*partials, *question.have[own:])
    return replace(question, problem=merging, have=have)


@lru_cache(maxsize=16384)
def finalists(question: Question, *, lean: bool = False) -> tuple[Choice, ...]:
    """The most promising plans of an operator, fastest first.

    Args:
        lean: also include plans that trade cycles for less resident memory.
    """
    problem = question.problem
    short = shortlist(problem, question.target, question.bound)
    splits = short.fast if problem.merges else short.fast[:COMBINE_FINALISTS]
    hopeful = _by_promise(question, _worth_trying(question, splits))
    found = [_combined(question, choice) for choice in islice(hopeful, COMBINED)]
    if lean and short.lean:
        found += _priced(question, short.lean)
    if not any(problem.terms.hold(choice.temporary_bytes) for choice in found):
        # Partials also take memory while they are combined.
        found += [_combined(question, choice) for choice in hopeful]
    return tuple(sorted(fitting(found, question.bound, problem.terms), key=rank))


@lru_cache(maxsize=16384)
def fastest(question: Question) -> Choice:
    """The fastest plan of an operator within the bound, independent of its resident bytes."""
    if not question.problem.merges:
        # Where nothing is combined, the most promising plan is the fastest.
        first = next(_by_promise(question, _worth_trying(question, _hopeful(question))))
        if _combining(question, first.plan) is None:
            return first
    return finalists(question)[0]


def _hopeful(question: Question) -> Splits:
    """The splits among which the fastest plan is expected."""
    short = shortlist(question.problem, question.target, question.bound)
    return short.fast if question.problem.merges else short.fast[:COMBINE_FINALISTS]


@lru_cache(maxsize=4096)
def search(question: Question) -> tuple[Choice, ...]:
    """The best plans of an operator, fastest first.

    None is both slower and larger in resident memory than another. If no plan keeps the bound, the
    plan that needs the least memory is returned.
    """
    return pareto(finalists(question, lean=True), question.bound, question.terms)


@lru_cache(maxsize=1024)
def considered(question: Question) -> tuple[Choice, ...]:
    """Every plan on the shortlist with its full price, fastest first.

    The plans of `search` are among them. `abele plan` shows the others to explain a choice.
    """
    short = shortlist(question.problem, question.target, question.bound)
    return _priced(question, tuple(dict.fromkeys(short.fast + short.lean)))


def traded(question: Question) -> tuple[Choice, ...]:
    """The plans of `considered`, and the cheapest plan for each amount of memory."""
    more = _priced(question, trade_offs(question.problem, question.target, question.bound))
    found = {c.plan: c for c in (*considered(question), *more)}
    return tuple(sorted(found.values(), key=lambda c: c.cycles))


def _priced(question: Question, splits: Splits) -> tuple[Choice, ...]:
    found = [
        _combined(question, arrived(question, least))
        for least in lower_bounds(question, _worth_trying(question, splits))
    ]
    return tuple(sorted(fitting(found, question.bound, question.terms), key=lambda c: c.cycles))


@lru_cache(maxsize=4096)
def sketched(question: Question) -> tuple[Choice, ...]:
    """Plans that trade cycles for bytes, the most promising first.

    The price of combining is an estimate; `exact` computes the real one. A plan that cannot be
    better than an earlier one may have a lower bound of its price. It only tells which amounts of
    memory there are.
    """
    short = shortlist(question.problem, question.target, question.bound)
    splits = tuple(dict.fromkeys(short.fast + short.lean))
    least = lower_bounds(question, _worth_trying(question, splits))
    found: list[Choice] = []
    for cycles, choice in sorted(
        zip(_merging(question, least), least, strict=True),
        key=lambda pair: (pair[0] + pair[1].cycles, *rank(pair[1])),
    ):
        if not _beaten(choice, cycles, found):
            closer = received(question, choice)
            if not _beaten(closer, cycles, found):
                closer = arrived(question, choice)
            found.append(replace(closer, cycles=closer.cycles + cycles))
    return tuple(fitting(found, question.bound, question.terms))


def by_promise(question: Question) -> Iterator[Plan]:
    """The plans on the shortlist, the most promising first, without combining plans."""
    each = (_promising(way) for way in over_chips(question, lean=True))
    return (choice.plan for choice in merged(*each, key=lambda choice: choice.cycles))


def _promising(question: Question) -> Iterator[Choice]:
    short = shortlist(question.problem, question.target, question.bound)
    splits = tuple(dict.fromkeys(short.fast + short.lean))
    return _by_promise(question, _worth_trying(question, splits))


def _beaten(choice: Choice, merging: float, found: Iterable[Choice]) -> bool:
    """Whether another choice needs no more cycles and no more bytes.

    Args:
        merging: the cycles that combining adds to the choice.
    """
    return any(
        other.cycles <= choice.cycles + merging
        and other.resident_bytes <= choice.resident_bytes
        and other.temporary_bytes <= choice.temporary_bytes
        for other in found
    )


def _merging(question: Question, choices: list[Choice]) -> list[float]:
    """The estimated cycles to combine the partials of each choice, if every tile merges its
    share."""
    if not question.problem.merges or not choices:
        return [0.0] * len(choices)
    parts = np.array([choice.plan.split for choice in choices], np.int64)
    return [float(each) for each in combining_cycles(question.problem, parts, question.target)]


def _worth_trying(question: Question, splits: Splits) -> tuple[Plan, ...]:
    """The plans of some splits, and the plans under which an operand stays on its tiles."""
    problem, target = question.problem, question.target
    across = problem.terms.across or ()
    stay = [p for p in inherited(problem, question.have, target) if p.across == across]
    plans = *_ordered(problem, splits, target), *stay
    return tuple(dict.fromkeys(map(problem.terms.complete, plans)))


@lru_cache(maxsize=1024)
def _ordered(problem: Problem, splits: Splits, target: Target) -> tuple[Plan, ...]:
    """The plans of some splits, each in every order worth trying."""
    return tuple(Plan(split, order) for split in splits for order in orders(problem, split, target))


def _by_promise(question: Question, plans: tuple[Plan, ...]) -> Iterator[Choice]:
    """The choices within the bound, the most promising first; the price of combining is left out.

    A choice is promising if its cycles and the estimated cycles of combining are few. Each closer
    price of the arrival of operands is computed only when a choice leads by the one before.
    """
    least = lower_bounds(question, plans)
    merging = _merging(question, least)
    fits = {id(choice) for choice in fitting(least, question.bound, question.terms)}

    def entry(i: int, bound: Choice, steps: int) -> _Entry:
        _, resident, temporary, cells = rank(bound)
        return bound.cycles + merging[i], resident, temporary, cells, i, steps, bound

    queue = [entry(i, choice, 0) for i, choice in enumerate(least) if id(choice) in fits]
    heapify(queue)
    while queue:
        *_, i, steps, choice = heappop(queue)
        if steps == len(CLOSER):
            yield choice
        else:
            heappush(queue, entry(i, CLOSER[steps](question, least[i]), steps + 1))


CLOSER = (received, arrived)
"""What makes a lower bound of a choice closer, one after the other. The last gives the price."""

_Entry: TypeAlias = "tuple[float, int, int, int, int, int, Choice]"
