"""The ways in which an operator may use the chips of a machine.

A plan is searched on two levels. First the planner decides over which chips an operator's
dimensions are cut: on one chip, or one dimension across all chips. Within each way, splits are
searched as on one chip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from ...backends.target import Target
from ...dialects.abele import Plan
from ..plans.padding import can_pad
from .candidates import inherited
from .crossing import crossing_cycles
from .estimate import estimates, shortlist
from .problem import Problem
from .question import Question
from .superstep import sources

FASTEST = 2
"""The number of ways that are searched besides one chip and the ways that operands have: those with
the fewest estimated cycles.

Chosen by judgement. Each way takes as long as the search on one chip.
"""


@lru_cache(maxsize=4096)
def over_chips(question: Question) -> tuple[Question, ...]:
    """The question, once for each way to use chips that is worth a search.

    The question itself where the machine has one chip, or where the way is already decided.
    """
    target, terms = question.target, question.terms
    if target.chips == 1 or terms.across is not None:
        return (question,)
    every = ways_of(question.problem, target)
    one = (1,) * len(question.structure.space.dims)
    ways = [way for way in every if way != one]
    known = {plan.across or one for plan in inherited(question.problem, question.have, target)}
    priced = [(_price(question, _with(question.problem, way, target)), way) for way in ways]
    fast = sorted(priced, key=lambda pair: pair[0].cycles)[:FASTEST]
    lean = sorted(priced, key=lambda pair: (pair[0].resident, pair[0].cycles))[:1]
    chosen = [way for way in every if way == one]
    chosen += [*(way for _, way in fast + lean), *(way for way in ways if way in known)]
    found = (_with(question.problem, way, target) for way in dict.fromkeys(chosen))
    return tuple(replace(question, problem=problem) for problem in found)


def ways_of(problem: Problem, target: Target) -> list[tuple[int, ...]]:
    """The ways that the terms allow: one chip, and one dimension cut across all chips.

    If replicas share a batch, its dimension is cut across them in every way. A replica of several
    chips may cut a further dimension, or leave all chips but one idle. Each way is the number of
    chips for each dimension.
    """
    rank, chips = len(problem.structure.space.dims), target.chips
    one = (1,) * rank
    batch, replicas = problem.terms.batch or (0, 0)
    # A function that lies on fewer chips than there are replicas is not shared by them.
    if replicas and chips % replicas == 0:
        own = chips // replicas
        ways = [_cut(one, batch, replicas)]
        if own > 1:
            # Chips are numbered by dimensions in order, so the batch has to come first.
            ways += [_cut(ways[0], d, own) for d in range(batch, rank)]
        shared = [way for way in ways if can_spread(problem, way, target)]
        if shared:
            return shared
    every = [one, *(_cut(one, d, chips) for d in range(rank))]
    found = [way for way in every if can_spread(problem, way, target)]
    if not problem.terms.every:
        return found
    kept = problem.structure.space.of_kind("parallel")
    return [way for way in found if any(way[d] > 1 for d in kept)] or found


def _cut(way: tuple[int, ...], dim: int, chips: int) -> tuple[int, ...]:
    """A way in which a dimension is cut across so many times as many chips."""
    return tuple(n * chips if d == dim else n for d, n in enumerate(way))


def can_spread(problem: Problem, across: tuple[int, ...], target: Target) -> bool:
    """Whether an operator can be cut over so many chips along each dimension, as its terms ask.

    Args:
        across: for each dimension.
    """
    cut = (d for d, n in enumerate(across) if n > 1)
    return all(_can_cut(problem, d, across[d]) for d in cut) and _has_room(problem, across, target)


def _can_cut(problem: Problem, d: int, chips: int) -> bool:
    """Whether a dimension can be cut over so many chips, in equally many parts each."""
    dim = problem.structure.space.dims[d]
    if dim.size < chips or problem.structure.is_never_cut(d) or problem.terms.parts(d) % chips:
        return False
    if dim.kind != "reduction":
        return True
    # Partials have parts of one size, and none may be empty.
    even = dim.size % chips == 0
    full = (chips - 1) * -(-dim.size // chips) < dim.size
    return problem.merges and (even or (full and can_pad(problem.structure, d)))


def _has_room(problem: Problem, across: tuple[int, ...], target: Target) -> bool:
    """Whether the chips have tiles for all cells that the terms require."""
    chips = prod(across)
    least = prod(problem.terms.parts(d) or n for d, n in enumerate(across))
    return least <= problem.terms.most_tiles(target.tiles_per_chip * chips)


def _with(problem: Problem, across: tuple[int, ...], target: Target) -> Problem:
    """The problem with a way to use chips."""
    several = any(n > 1 for n in across)
    # Replicas of which each uses one chip of several are further apart.
    _, replicas = problem.terms.batch or (0, 0)
    own = target.chips // replicas if prod(across) == replicas else 1
    terms = replace(
        problem.terms,
        across=across if several else (),
        apart=own * target.tiles_per_chip if several else 0,
    )
    return replace(problem, terms=terms)


@dataclass(frozen=True)
class _Price:
    """The estimated price of the fastest plan of one way."""

    cycles: float
    resident: int


def _price(question: Question, problem: Problem) -> _Price:
    target, terms = question.target, problem.terms
    (split, *_) = shortlist(problem, target, question.bound).fast
    found = estimates(problem, np.array([split], np.int64), target, quick=False)
    plan = terms.complete(Plan(terms.across or split))
    read = sources(replace(question, problem=problem), plan)
    crossing = crossing_cycles(
        [(each.lies, each.wanted, each.dtype.itemsize, each.move) for each in read if each.lies],
        target,
    )
    return _Price(float(found.cycles[0]) + crossing, int(found.resident[0]))
