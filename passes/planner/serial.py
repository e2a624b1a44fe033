"""Plans of one operator, in one step or, if no such plan fits, in several.

A step is an operator of its own, on a part of one dimension. Its splits are searched like those of
any operator (see `search`), and the whole plan is priced step by step (see `rotation`). This is the
entry point for callers that do not know how many steps a plan takes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import islice
from math import inf, prod

from ...dialects.abele import Plan
from ...ir.support.number_kinds import is_floating
from ..plans.derive import check_plan, is_legal_in_steps
from ..plans.steps import passes_of, takes_steps
from .candidates import splits
from .choice import Choice, fitting, rank
from .estimate import estimates, shortlist
from .problem import Problem
from .question import Question
from .rotation import MOST_STEPS, PRICED, priced_in_steps, search_in_steps
from .search import considered as considered_at_once
from .search import exact, finalists
from .search import sketched as sketched_at_once
from .search import traded as traded_at_once
from .spreads import over_chips

MOST_TRIED = 4_096
"""The most splits that are tried for steps that the user asks for.

Assumed: it bounds the time of planning one operator. No trial: it only counts where a user asks for
steps.
"""

TRIED = 2
"""The numbers of steps along a dimension that are priced: the fewest that fit, and the next.

More steps cost more. Chosen by trial on SqueezeNet on mk2:19, which fits in steps only. With 1:
1.5 % more cycles. With 4: 0.7 % fewer.
"""


def priced(question: Question, plan: Plan) -> Choice:
    """The price of a plan, in one step or several.

    Raises ValueError if it is not a plan of this operator.
    """
    if question.problem.moves and takes_steps(plan):
        raise ValueError(f"steps {list(plan.steps)}; a movement takes one step")
    if plan.steps or plan.ring:
        check_plan(question.structure, plan, question.problem.result_dtype)
    price = priced_in_steps if takes_steps(plan) else exact
    return price(question, plan)


@lru_cache(maxsize=4096)
def plans(question: Question, *, lean: bool = False, in_time: bool = True) -> tuple[Choice, ...]:
    """The most promising plans of an operator, in one step or several, fastest first.

    Several steps are tried where the terms ask for them, and, unless in_time is false, where no
    plan of one step fits the bound and the terms.

    Args:
        lean: as for `search.finalists`.
    """
    if question.terms.steps:
        return _as_asked(question)
    ways = over_chips(question, lean=lean)
    if ways != (question,):
        every = [c for way in ways for c in plans(way, lean=lean, in_time=in_time)]
        return tuple(sorted(fitting(every, question.bound, question.terms), key=rank))
    once = finalists(question, lean=lean)
    if not in_time or question.problem.moves or any(_fits(question, choice) for choice in once):
        return once
    found = [*once, *in_steps(question)]
    return tuple(sorted(fitting(found, question.bound, question.terms), key=rank))


def considered(question: Question) -> tuple[Choice, ...]:
    """Every plan on the shortlist with its full price, fastest first.

    `abele plan` shows them to explain a choice.
    """
    if question.terms.steps:
        return plans(question)
    found = [c for way in over_chips(question, lean=True) for c in considered_at_once(way)]
    return tuple(sorted(found, key=lambda c: c.cycles))


def traded(question: Question) -> tuple[Choice, ...]:
    """The plans of `considered`, and the cheapest plan for each amount of memory."""
    if question.terms.steps:
        return plans(question)
    found = [c for way in over_chips(question, lean=True) for c in traded_at_once(way)]
    return tuple(sorted(found, key=lambda c: c.cycles))


def sketched(question: Question) -> tuple[Choice, ...]:
    """Plans that trade cycles for bytes, the most promising first.

    The price of combining is an estimate; `priced` computes the real one.
    """
    if question.terms.steps:
        return plans(question)
    found = [c for way in over_chips(question, lean=True) for c in sketched_at_once(way)]
    return tuple(fitting(found, question.bound, question.terms))


@lru_cache(maxsize=4096)
def in_steps(question: Question) -> tuple[Choice, ...]:
    """Plans of several steps: along one dimension, or around a ring of tiles.

    Empty for a movement, and where the terms fix the split or the steps, or use several chips.
    """
    problem, terms, tiles = question.problem, question.terms, question.target.tiles_per_chip
    if problem.moves or terms.split or terms.steps or terms.ring or terms.across:
        return ()
    found: list[Choice] = []
    # After the last step, the results of all steps are on the tiles together.
    left = -(-prod(problem.structure.space.results[0].shape) // tiles)
    left *= problem.result_itemsize
    fits = left <= question.bound and terms.hold(left)
    for d in range(len(problem.structure.space.dims) if fits else 0):
        least = min((c.cycles for c in found if _fits(question, c)), default=inf)
        found += _along(question, d, least)
    most = terms.most_tiles(tiles)
    found += [choice for choice in search_in_steps(question) if choice.cells <= most]
    return tuple(found)


def _as_asked(question: Question) -> tuple[Choice, ...]:
    """The best plans with the steps that the terms require."""
    problem, terms, target = question.problem, question.terms, question.target
    free = replace(problem, terms=replace(terms, steps=(), ring=()))
    short = shortlist(free, target, question.bound)
    parts = splits(free, target.tiles_per_chip)
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
    found = [priced(question, plan) for plan in islice(legal, PRICED)]
    return tuple(sorted(fitting(found, question.bound, terms), key=rank))


def _adds_up(problem: Problem) -> bool:
    """Whether the partials between steps can be kept as floats, or as members."""
    members = problem.structure.body.tuple_combiner is not None
    return members or is_floating(problem.result_dtype)


def _fits(question: Question, choice: Choice) -> bool:
    whole = choice.resident_bytes + choice.temporary_bytes
    return whole <= question.bound and question.terms.hold(choice.temporary_bytes)


def _along(question: Question, dim: int, least: float) -> list[Choice]:
    """Plans whose steps are parts of one dimension, with the fewest steps that fit.

    Args:
        least: the cycles of the best plan along another dimension; slower plans are left out.
    """
    problem = question.problem
    each = problem.structure.space.dims[dim]
    merges = each.kind == "reduction" and problem.structure.body.combiner is not None
    if each.kind != "parallel" and not (merges and _adds_up(problem)):
        return []
    found: list[Choice] = []
    fit = 0
    for steps in range(2, min(each.size, MOST_STEPS) + 1):
        if each.size % steps:
            continue
        choice = _in_steps(question, dim, steps, least)
        if choice is None:
            continue
        found.append(choice)
        fit += _fits(question, choice)
        if fit == TRIED:
            break
    return found


def _in_steps(question: Question, dim: int, steps: int, least: float) -> Choice | None:
    """The best plan with one number of steps along a dimension, from the splits of its first step.

    None if it is not legal, does not fit, or is slower than `least`.
    """
    problem, target = question.problem, question.target
    rank = len(problem.structure.space.dims)
    along = tuple(steps if d == dim else 1 for d in range(rank))
    try:
        first = next(passes_of(problem.structure, Plan((1,) * rank, steps=along)))[0]
    except ValueError:
        return None
    # Meanwhile the results of the other steps are on the tiles, a share on each.
    made = prod(problem.structure.space.results[0].shape) - prod(
        first.structure.space.results[0].shape
    )
    held = -(-made * problem.result_itemsize // target.tiles_per_chip)
    most = problem.terms.temporary_bytes
    terms = replace(problem.terms, temporary_bytes=None if most is None else max(most - held, 0))
    # The search assumes that operands are where the step wants them. The whole plan is priced with
    # their real layouts afterwards.
    part = replace(problem, structure=first.structure, free=_free(question), terms=terms)
    nowhere = (None,) * len(question.have)
    best = finalists(Question(part, nowhere, target, max(question.bound - held, 0)))[0]
    plan = replace(best.plan, steps=along)
    legal = is_legal_in_steps(problem.structure, plan, problem.result_dtype)
    within = _fits(Question(part, nowhere, target, question.bound - held), best)
    # Each step copies its operands, and takes as long as the first step.
    if not legal or not within or steps * best.cycles >= least:
        return None
    return priced_in_steps(question, plan)


def _free(question: Question) -> tuple[bool, ...]:
    return tuple(
        layout is not None or question.problem.is_free(i) for i, layout in enumerate(question.have)
    )
