"""Plans in one step, and where none of them fits, those that take the work a part at a time.

A step is an operator of its own, of a part of one dimension: its splits are searched like those of
any other (see search), and the whole is priced step by step (see rotation).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf, prod

from ...backends.codelets.scalar import is_floating
from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout
from .derive import is_legal_in_steps
from .problem import Choice, Problem
from .rotation import MOST_STEPS, priced_in_steps
from .search import finalists, fitting
from .steps import passes_of

TRIED = 2
"""Numbers of steps along a dimension that are priced: the fewest that fit, and the next."""


@lru_cache(maxsize=4096)
def plans(
    problem: Problem,
    have: tuple[Layout | None, ...],
    target: Target,
    bound: int,
    *,
    lean: bool = False,
) -> tuple[Choice, ...]:
    """The most promising plans of an operator, of one step or several, fastest first.

    have, bound, lean: as for `search.finalists`. Several steps are tried where no plan of one step
    fits the bound and the terms, and nobody has decided on steps.
    """
    once = finalists(problem, have, target, bound, lean=lean)
    if any(_fits(problem, choice, bound) for choice in once) or problem.moves:
        return once
    if problem.terms.steps or problem.terms.split or problem.terms.ring:
        return once
    found: list[Choice] = []
    for d in range(len(problem.structure.space.dims)):
        least = min((c.cycles for c in found if _fits(problem, c, bound)), default=inf)
        found += _along(problem, d, have, target, bound, least)
    found = fitting([*once, *found], bound, problem.terms)
    return tuple(sorted(found, key=lambda c: (c.cycles, c.resident_bytes, c.temporary_bytes)))


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
