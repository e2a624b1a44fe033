"""Plans that keep a weight at its required home, and the price of plans that do not.

A state or constant may have a home (see dialects/home.py): another program holds the same value in
that layout. A plan that wants it there costs nothing extra. Any other plan either copies it from
its home in every run, or, if the home is a wish, has it loaded again when programs change. The
price of a plan includes the cheaper of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from ...backends.target import Target
from ...dialects.abele import Plan
from ...dialects.home import Home
from ...dialects.variable import bytes_per_tile
from ...ir.geometry.layout import Layout, placement
from ..plans.derive import compute_layouts, operand_layouts
from .arrival import relayout_cycles
from .candidates import is_legal
from .choice import Choice
from .estimate import estimates
from .problem import Problem
from .question import Question
from .serial import priced

Pins = tuple[tuple[int, Home], ...]
"""The homes of the states and constants that an operator places, by operand."""

TRIED = 6
"""The number of splits that keep a layout and are priced exactly: those with the fewest estimated
cycles.

Chosen by trial, on second programs of ResNet-50, BERT and SqueezeNet (tools/workshop/switching.py),
with 10 runs between two changes. Half: up to 0.01 % more cycles. Double: same.
"""


Place = tuple[tuple[int, int], ...]
"""Dimensions of an operator that together make one cut dimension of a placement, each with its
parts. A single dimension makes the parts of an axis; several may make replicas.
"""

OperandCut = tuple[Place, ...]
"""A way to cut an operator so that an operand has a given placement: the place of each cut
dimension.
"""


@lru_cache(maxsize=4096)
def kept(question: Question, pins: Pins) -> tuple[Choice, ...]:
    """The most promising plans under which the largest pinned operand stays at its home."""
    problem = question.problem
    own = [pin for pin in pins if pin[0] < problem.structure.own_operands]
    if problem.moves or not own:
        return ()
    sizes = {i: prod(home.layout.shape) * problem.operand_dtypes[i].itemsize for i, home in own}
    operand, home = max(own, key=lambda pin: sizes[pin[0]])
    return tuple(
        priced(question, plan)
        for plan in keeping(problem, operand, placement(home.layout), question.target)
    )


@lru_cache(maxsize=4096)
def at_home(question: Question, pins: Pins, times: int, plan: Plan) -> Choice:
    """A plan with its price, including the cost of operands that are not at home where it wants
    them.

    Args:
        question: the operands in `pins` have no layout yet.
        times: the number of executions per run.
    """
    choice = priced(question, plan)
    brought, reload = _elsewhere(question, pins, times, choice.plan)
    if brought:
        problem, have = question.problem, list(question.have)
        resident = list(problem.resident)
        for i, home in brought:
            have[i], resident[i] = home.layout, False
        copying = replace(
            question, problem=replace(problem, resident=tuple(resident)), have=tuple(have)
        )
        choice = priced(copying, choice.plan)
        stays = sum(
            bytes_per_tile(home.layout, problem.operand_dtypes[i].itemsize) for i, home in brought
        )
        choice = replace(choice, resident_bytes=choice.resident_bytes + stays)
    if not reload:
        return choice
    return replace(choice, cycles=choice.cycles + reload, reload_cycles=reload)


def brought_from_home(question: Question, pins: Pins, times: int, plan: Plan) -> dict[int, Layout]:
    """The homes of the operands that a plan copies from their homes in every run, by operand."""
    return {i: home.layout for i, home in _elsewhere(question, pins, times, plan)[0]}


@lru_cache(maxsize=8192)
def _elsewhere(question: Question, pins: Pins, times: int, plan: Plan) -> tuple[Pins, float]:
    """The operands that are copied from their homes, and the price of giving up the other homes.

    The price is in cycles per execution of the operator.
    """
    wanted = operand_layouts(question.structure, plan)
    brought: list[tuple[int, Home]] = []
    reload = 0.0
    for i, home in pins:
        if placement(wanted[i]) == placement(home.layout):
            continue
        size = question.problem.operand_dtypes[i].itemsize
        copying = times * relayout_cycles(home.layout, wanted[i], size, question.target)
        if home.reload is None or copying < home.reload:
            brought.append((i, home))
        else:
            reload += home.reload / times
    return tuple(brought), reload


@lru_cache(maxsize=4096)
def keeping(problem: Problem, operand: int, wanted: Layout, target: Target) -> tuple[Plan, ...]:
    """The most promising plans under which an operand has a placement."""
    rank = len(problem.structure.space.dims)
    every = _ways(problem, operand, wanted)
    ways = [way for way in every if problem.terms.allow(_split_of(way, rank))]
    if not ways:
        return ()
    parts = np.array([_split_of(way, rank) for way in ways], np.int64)
    price = estimates(problem, parts, target, quick=False)
    best: list[int] = np.argsort(price.cycles, kind="stable")[:TRIED].tolist()
    tried: dict[Plan, None] = {}
    for way in (ways[i] for i in best):
        for step in (1, -1):
            order = [d for place in way for d, _ in place[::step]]
            plain = () if order == sorted(order) else tuple(order)
            across = _across_of(way, wanted, rank)
            plan = Plan(_split_of(way, rank), plain, wanted.first_tile)
            if any(n % k for n, k in zip(plan.split, across, strict=False)):
                continue
            tried[replace(problem.terms.complete(plan), across=across, apart=wanted.apart)] = None
    return tuple(
        plan
        for plan in tried
        if is_legal(problem, plan, target)
        and placement(compute_layouts(problem.structure, plan)[operand]) == wanted
    )


def _split_of(way: OperandCut, rank: int) -> tuple[int, ...]:
    """The parts of each dimension of an operator."""
    split = [1] * rank
    for d, parts in (each for place in way for each in place):
        split[d] = parts
    return tuple(split)


def _across_of(way: OperandCut, wanted: Layout, rank: int) -> tuple[int, ...]:
    """The chips over which the parts of each dimension of an operator are spread."""
    if not wanted.apart:
        return ()
    across = [1] * rank
    for place, d in zip(way, wanted.split_dims, strict=True):
        for own, _ in place[:1]:
            across[own] = wanted.grid[d].chips
    return tuple(across)


def _ways(problem: Problem, operand: int, wanted: Layout) -> Iterator[OperandCut]:
    """All ways to cut an operator so that an operand has a placement.

    Dimensions that the operand names are cut like the placement. The other dimensions cut its
    replicas. Empty if the placement cuts an axis along several dimensions.
    """
    space = problem.structure.space
    access = space.operands[operand]
    axes = [axis for axis in access.axes if axis.size != 1 or axis.terms or axis.offset]
    if tuple(axis.size for axis in axes) != wanted.shape:
        return
    axis_of = {d: k for k, axis in enumerate(wanted.access.axes) for d, _ in axis.terms}
    cut_axes = [axis_of[d] for d in wanted.split_dims if d in axis_of]
    if len(set(cut_axes)) < len(cut_axes) or any(len(axes[k].terms) != 1 for k in cut_axes):
        return
    named = access.dims()
    free = tuple(
        (d, dim.size)
        for d, dim in enumerate(space.dims)
        if d not in named and dim.size > 1 and not problem.structure.is_never_cut(d)
    )
    places: list[tuple[Place, ...]] = []
    for d in wanted.split_dims:
        if d in axis_of:
            ((own, _),) = axes[axis_of[d]].terms
            places.append((((own, wanted.parts[d]),),))
        else:
            places.append(_products(wanted.parts[d], free))
    for way in product(*places):
        used = [d for place in way for d, _ in place]
        if len(set(used)) == len(used):
            yield way


@lru_cache(maxsize=1024)
def _products(count: int, free: Place) -> tuple[Place, ...]:
    """All ways to write a number as a product of parts of dimensions.

    Args:
        free: dimensions with their sizes.
    """
    if not free:
        return ((),) if count == 1 else ()
    (d, size), *rest = free
    found: list[Place] = []
    for parts in range(1, min(size, count) + 1):
        if count % parts == 0:
            own = ((d, parts),) if parts > 1 else ()
            found += [(*own, *more) for more in _products(count // parts, tuple(rest))]
    return tuple(found)
