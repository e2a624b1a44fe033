"""Plans in one step, and where none of them fits, those that take the work a part at a time.

A step is an operator of its own, of a part of one dimension: its splits are searched like those of
any other (see search), and the whole is priced step by step (see rotation). Whoever looks for a
plan, or for the price of one, and does not know how many steps it takes, asks here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import islice
from math import inf, prod

from ...backends.codelets.scalar import is_floating
from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout
from .candidates import splits
from .derive import is_legal_in_steps
from .estimate import estimates, shortlist
from .problem import Choice, Problem
from .rotation import MOST_STEPS, PRICED, priced_in_steps, search_in_steps
from .search import exact, finalists, fitting, rank
from .steps import passes_of, takes_steps

MOST_TRIED = 4_096
"""Splits that are looked at for the steps that somebody asks for."""

TRIED = 2
"""Numbers of steps along a dimension that are priced: the fewest that fit, and the next."""


def priced(
    problem: Problem, plan: Plan, have: tuple[Layout | None, ...], target: Target, bound: int
) -> Choice:
    """The price of a plan, of one step or several.

    have, bound: as of `search`. Raises ValueError where the plan is none of this operator.
    """
    price = priced_in_steps if takes_steps(plan) else exact
    return price(problem, plan, have, target, bound)


@lru_cache(maxsize=4096)
def plans(
    problem: Problem,
    have: tuple[Layout | None, ...],
    target: Target,
    bound: int,
    *,
    lean: bool = False,
    in_time: bool = True,
) -> tuple[Choice, ...]:
    """The most promising plans of an operator, of one step or several, fastest first.

    have, bound, lean: as for `search.finalists`. Several steps are tried where no plan of one step
    fits the bound and the terms, unless in_time says no, and where the terms ask for them.
    """
    if problem.terms.steps:
        return _as_asked(problem, have, target, bound)
    once = finalists(problem, have, target, bound, lean=lean)
    if not in_time or problem.moves or any(_fits(problem, choice, bound) for choice in once):
        return once
    found = [*once, *in_steps(problem, have, target, bound)]
    return tuple(sorted(fitting(found, bound, problem.terms), key=rank))


@lru_cache(maxsize=4096)
def in_steps(
    problem: Problem, have: tuple[Layout | None, ...], target: Target, bound: int
) -> tuple[Choice, ...]:
    """Plans of several steps: along one dimension, or round a ring of tiles.

    have, bound: as for `search`. None for a movement, and where parts or steps are given.
    """
    if problem.moves or problem.terms.split or problem.terms.steps or problem.terms.ring:
        return ()
    found: list[Choice] = []
    # What all steps leave together is on the tiles after the last one.
    left = -(-prod(problem.structure.space.results[0].shape) // target.tiles)
    left *= problem.result_dtype.itemsize
    fits = left <= bound and problem.terms.hold(left)
    for d in range(len(problem.structure.space.dims) if fits else 0):
        least = min((c.cycles for c in found if _fits(problem, c, bound)), default=inf)
        found += _along(problem, d, have, target, bound, least)
    round_a_ring = search_in_steps(problem, have, target, bound)
    most = problem.terms.most_tiles(target.tiles)
    found += [choice for choice in round_a_ring if choice.cells <= most]
    return tuple(found)


def _as_asked(
    problem: Problem, have: tuple[Layout | None, ...], target: Target, bound: int
) -> tuple[Choice, ...]:
    """The best plans with the steps that the terms ask for."""
    terms = problem.terms
    free = replace(problem, terms=replace(terms, steps=(), ring=()))
    short = shortlist(free, target, bound)
    parts = splits(free, target.tiles)
    order = estimates(free, parts, target, quick=True).cycles.argsort(kind="stable")
    rest = (tuple(int(n) for n in parts[i]) for i in order)
    least = terms.least_parts(len(problem.structure.space.dims))
    tried = dict.fromkeys((*short.fast, *short.lean, *islice(rest, MOST_TRIED), least))
    legal = (
        plan
        for split in tried
        if terms.allow(split)
        and is_legal_in_steps(
            problem.structure, plan := terms.complete(Plan(split)), problem.result_dtype
        )
    )
    found = [priced(problem, plan, have, target, bound) for plan in islice(legal, PRICED)]
    return tuple(sorted(fitting(found, bound, terms), key=rank))


def _fits(problem: Problem, choice: Choice, bound: int) -> bool:
    whole = choice.resident_bytes + choice.temporary_bytes
    return whole <= bound and problem.terms.hold(choice.temporary_bytes)


def _along(
    problem: Problem,
    dim: int,
    have: tuple[Layout | None, ...],
    target: Target,
    bound: int,
    least: float,
) -> list[Choice]:
    """Plans whose steps are parts of one dimension, of the fewest numbers of steps that fit.

    least: cycles that a plan along another dimension takes, so that slower ones are of no use.
    """
    each = problem.structure.space.dims[dim]
    merges = each.kind == "reduction" and problem.structure.body.combiner is not None
    if each.kind != "parallel" and not (merges and is_floating(problem.result_dtype)):
        return []
    found: list[Choice] = []
    fit = 0
    for steps in range(2, min(each.size, MOST_STEPS) + 1):
        if each.size % steps:
            continue
        choice = _in_steps(problem, dim, steps, have, target, bound, least)
        if choice is None:
            continue
        found.append(choice)
        fit += _fits(problem, choice, bound)
        if fit == TRIED:
            break
    return found


def _in_steps(
    problem: Problem,
    dim: int,
    steps: int,
    have: tuple[Layout | None, ...],
    target: Target,
    bound: int,
    least: float,
) -> Choice | None:
    """The best plan of one number of steps along a dimension, by the splits of its first step."""
    rank = len(problem.structure.space.dims)
    along = tuple(steps if d == dim else 1 for d in range(rank))
    try:
        first = next(passes_of(problem.structure, Plan((1,) * rank, steps=along)))[0]
    except ValueError:
        return None
    # What other steps make of the result is there meanwhile, a share of it on every tile.
    made = prod(problem.structure.space.results[0].shape) - prod(
        first.structure.space.results[0].shape
    )
    held = -(-made * problem.result_dtype.itemsize // target.tiles)
    most = problem.terms.temporary_bytes
    terms = replace(problem.terms, temporary_bytes=None if most is None else max(most - held, 0))
    # A step begins with operands that it likes: where they really lie is priced after.
    part = replace(problem, structure=first.structure, free=_free(problem, have), terms=terms)
    best = finalists(part, (None,) * len(have), target, max(bound - held, 0))[0]
    plan = replace(best.plan, steps=along)
    legal = is_legal_in_steps(problem.structure, plan, problem.result_dtype)
    # Each step brings what it reads, and takes as long as the first one.
    if not legal or not _fits(part, best, bound - held) or steps * best.cycles >= least:
        return None
    return priced_in_steps(problem, plan, have, target, bound)


def _free(problem: Problem, have: tuple[Layout | None, ...]) -> tuple[bool, ...]:
    return tuple(layout is not None or problem.is_free(i) for i, layout in enumerate(have))
