"""The ways in which an operator may use the chips of a machine.

A plan is searched on two levels. First the planner decides over which chips an operator's
dimensions are cut: on one chip, or one or two dimensions across some or all of the chips. Within a
way, splits are searched as on one chip.

There may be hundreds of ways, and a search takes long. So each way gets a bound that costs almost
nothing, and closer prices only while it leads. Few ways are searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import combinations, islice
from math import prod

from ...backends.prices import cost
from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout
from ..plans.padding import can_pad
from .candidates import inherited
from .crossing import crossing_cycles, least_crossing_cycles, on_chips
from .estimate import shortlist
from .problem import Problem
from .question import Question
from .superstep import sources

FASTEST = 1
"""The ways that are searched because their estimated cycles are few, besides those in which
operands already lie.

Chosen by trial on AlexNet, ResNet-50, VGG-19 and a layer of BERT on mk2x4, mk1x4 and bow-pod16.
With 2: 20 to 40 % more planning time, and up to 11 % fewer cycles (AlexNet, bow-pod16), but also up
to 2.7 times as many (VGG-19, mk1x4): what is best for an operator may suit its readers less.
"""

NOT_FITTING = 2.0**50
"""Cycles that are added to those of plans that do not fit: more than any program takes."""

Way = tuple[int, ...]
"""The number of chips for each dimension."""


@lru_cache(maxsize=4096)
def over_chips(question: Question, *, lean: bool = False) -> tuple[Question, ...]:
    """The question, once for each way to use chips that is worth a search.

    The question itself where the machine has one chip, or where the way is already decided.

    Args:
        lean: also include the way that leaves the fewest weights on a chip.
    """
    target, terms = question.target, question.terms
    if target.chips == 1 or terms.across is not None:
        return (question,)
    problems = _problems(question.problem, target)
    chosen = list(islice(_by_price(question, problems), FASTEST))
    chosen += [way for way in _known(question) if way in problems]
    if lean and any(question.problem.resident):
        chosen.append(min(problems, key=lambda way: _bytes_that_stay(question.problem, way)))
    return tuple(replace(question, problem=problems[way]) for way in dict.fromkeys(chosen))


def ways_of(problem: Problem, target: Target) -> list[Way]:
    """The ways that the terms allow: one chip, or one or two dimensions cut across several.

    Each number of chips divides the number of all chips. Of ways with equal prices, the first is
    taken: the one with the most chips, then with the fewest dimensions, then with the outermost.

    If replicas share a batch, its dimension is cut across them in every way. A replica of several
    chips may cut a further dimension, or leave all chips but one idle.
    """
    rank, chips = len(problem.structure.space.dims), target.chips
    shared = _of_replicas(problem, target)
    if shared:
        return shared
    counts = [n for n in range(2, chips + 1) if chips % n == 0]
    cut = [(d, n) for d in range(rank) for n in counts if _can_cut(problem, d, n)]
    pairs = (
        (one, other)
        for one, other in combinations(cut, 2)
        if one[0] != other[0] and chips % (one[1] * other[1]) == 0
    )
    every = ((), *((each,) for each in cut), *pairs)
    ways = (tuple(dict(each).get(d, 1) for d in range(rank)) for each in every)
    found = [way for way in ways if _has_room(problem, way, target)]
    found.sort(key=lambda way: (-prod(way), sum(n > 1 for n in way), [-n for n in way]))
    if not problem.terms.every:
        return found
    kept = problem.structure.space.of_kind("parallel")
    return [way for way in found if prod(way[d] for d in kept) == chips] or found


def _of_replicas(problem: Problem, target: Target) -> list[Way]:
    """The ways in which replicas share a batch; none if they do not, or cannot."""
    rank, chips = len(problem.structure.space.dims), target.chips
    batch, replicas = problem.terms.batch or (0, 0)
    # A function that lies on fewer chips than there are replicas is not shared by them.
    if not replicas or chips % replicas:
        return []
    own = chips // replicas
    ways = [_cut((1,) * rank, batch, replicas)]
    if own > 1:
        # Chips are numbered by dimensions in order, so the batch has to come first.
        ways += [_cut(ways[0], d, own) for d in range(batch, rank)]
    return [way for way in ways if can_spread(problem, way, target)]


def _cut(way: Way, dim: int, chips: int) -> Way:
    """A way in which a dimension is cut across so many times as many chips."""
    return tuple(n * chips if d == dim else n for d, n in enumerate(way))


def can_spread(problem: Problem, across: Way, target: Target) -> bool:
    """Whether an operator can be cut over so many chips along each dimension, as its terms ask."""
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


def _has_room(problem: Problem, way: Way, target: Target) -> bool:
    """Whether the chips have tiles for all cells that the terms require."""
    least = prod(problem.terms.parts(d) or n for d, n in enumerate(way))
    return least <= problem.terms.most_tiles(target.tiles_per_chip * prod(way))


@lru_cache(maxsize=1024)
def _problems(problem: Problem, target: Target) -> dict[Way, Problem]:
    """The problem, once for each way to use chips."""
    return {way: _with(problem, way, target) for way in ways_of(problem, target)}


def _with(problem: Problem, way: Way, target: Target) -> Problem:
    """The problem with a way to use chips."""
    several = prod(way) > 1
    # Replicas of which each uses one chip of several are further apart.
    _, replicas = problem.terms.batch or (0, 0)
    own = target.chips // replicas if prod(way) == replicas else 1
    terms = replace(
        problem.terms,
        across=way if several else (),
        apart=own * target.tiles_per_chip if several else 0,
    )
    return replace(problem, terms=terms)


def _known(question: Question) -> list[Way]:
    """The ways in which operands already lie."""
    one = (1,) * len(question.structure.space.dims)
    plans = inherited(question.problem, question.have, question.target)
    return list(dict.fromkeys(plan.across or one for plan in plans))


# Prices of ways


def _by_price(question: Question, problems: dict[Way, Problem]) -> Iterator[Way]:
    """The ways, that with the fewest estimated cycles first.

    A way's first price is a share of what one chip takes, with a guess of what crosses between
    chips; its second one has the bytes that cross; its third one has the estimate of its own
    fastest split. A closer price is computed only when a way leads by the one before.

    Most ways take more than their share. The first estimate shows by what factor, and the shares of
    all other ways are multiplied by its square root.
    """
    ways = [*problems]
    sync = cost.sync_cycles(question.target)
    one = problems.get((1,) * len(question.structure.space.dims))
    short = shortlist(one, question.target, question.bound) if one is not None else None
    alone = short.cycles - sync if short is not None else 0.0
    share = [sync + alone / prod(way) for way in ways]
    # Of equal prices, the first way's leads.
    queue: list[tuple[float, int, int]] = [
        (share[i] + _least_crossing(question, way), i, 0) for i, way in enumerate(ways)
    ]
    heapify(queue)
    crossing: dict[int, int] = {}
    more = 0.0
    while queue:
        _, i, grade = heappop(queue)
        if grade == 2:
            yield ways[i]
        elif grade == 1:
            estimated = _estimated(problems[ways[i]], question)
            heappush(queue, (estimated + crossing[i], i, 2))
            if not more and estimated < NOT_FITTING:
                more = max(estimated / share[i], 1.0) ** 0.5
                queue = [(c if g == 2 else c + (more - 1) * share[k], k, g) for c, k, g in queue]
                heapify(queue)
        else:
            crossing[i] = _crossing(question, ways[i], problems[ways[i]])
            heappush(queue, ((more or 1.0) * share[i] + crossing[i], i, 1))


def _estimated(problem: Problem, question: Question) -> float:
    """The estimated cycles of the fastest split of a problem whose way is decided.

    More than those of any way that fits the bound, if no split does.
    """
    short = shortlist(problem, question.target, question.bound)
    return short.cycles if short.fits else short.cycles + NOT_FITTING


def _crossing(question: Question, way: Way, problem: Problem) -> int:
    """The cycles until the operands have crossed the links of their chips."""
    read = sources(replace(question, problem=problem), problem.terms.complete(Plan(way)))
    return crossing_cycles(
        [(each.lies, each.wanted, each.dtype.itemsize, each.move) for each in read if each.lies],
        question.target,
    )


def _least_crossing(question: Question, way: Way) -> float:
    """A low guess of the cycles until the operands have crossed links."""
    problem = question.problem
    if problem.moves:
        return 0.0
    received = 0.0
    for layout, access, dtype, cuts in zip(
        question.have,
        problem.structure.space.operands,
        problem.operand_dtypes,
        _cuts_of_operands(problem, way),
        strict=False,
    ):
        if layout is not None and prod(access.shape):
            received += dtype.itemsize * _missing(layout, access.shape, cuts, question.target)
    return least_crossing_cycles(received, question.target) if received else 0.0


@lru_cache(maxsize=4096)
def _cuts_of_operands(problem: Problem, way: Way) -> tuple[tuple[int, ...], ...]:
    """For each operand, the number of chips over which a way cuts each axis, and then the number of
    chips that hold a copy."""
    found: list[tuple[int, ...]] = []
    for access in problem.structure.space.operands:
        cuts = tuple(prod(way[d] for d, _ in axis.terms) for axis in access.axes)
        found.append((*cuts, prod(way[d] for d in range(len(way)) if d not in access.dims())))
    return tuple(found)


@lru_cache(maxsize=8192)
def _missing(
    layout: Layout, shape: tuple[int, ...], cuts: tuple[int, ...], target: Target
) -> float:
    """The elements of an operand that a chip surely lacks, if they lie in a layout; 0 if that is
    not clear.

    Args:
        cuts: as in _cuts_of_operands.
    """
    if layout.shape != shape or layout.replicas > 1:
        return 0.0
    chips = on_chips(layout, target)
    lie = [prod(chips.parts[d] for d, _ in axis.terms) for axis in chips.access.axes]
    *own, copies = cuts
    # No chip has more of its elements than those that both cuts give to it.
    here = prod(map(max, lie, own))
    elsewhere = copies > 1 or chips.first_tile > 0
    return prod(shape) * (1 / prod(own) - (0.5 if elsewhere and here == prod(own) else 1) / here)


def _bytes_that_stay(problem: Problem, way: Way) -> tuple[float, int]:
    """The sort key of ways by the bytes of weights that stay on a chip, and then by chips."""
    stay = 0.0
    for access, dtype, resident in zip(
        problem.structure.space.operands, problem.operand_dtypes, problem.resident, strict=False
    ):
        if resident:
            stay += prod(access.shape) * dtype.itemsize / prod(way[d] for d in access.dims())
    return stay, prod(way)
