"""The price of an operator that nothing comes before or after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...backends.target import Target
from ...dialects.structured import Structure
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from ..plans.derive import final_layout
from .choice import Choice
from .limits import PROPORTION
from .problem import Problem, movement_problem
from .question import Question
from .serial import plans


def cycles_alone(
    structure: Structure,
    dtypes: Sequence[np.dtype[np.generic]],
    dense: Sequence[bool],
    target: Target,
    then: Space | None = None,
) -> float:
    """The cycles of the fastest plan of a structure; infinity if none fits.

    Args:
        dtypes: of the operands and the result.
        dense: whether each operand comes from elsewhere, and lies as the plan wants it, each
            element once. The others lie where they are read.
        then: a movement of the result, whose cycles count too.
    """
    resident = tuple(not each for each in dense)
    *operands, result = dtypes
    problem = Problem(structure, tuple(operands), result, resident, free=tuple(dense))
    best = _fastest(problem, (None,) * len(operands), target)
    if best is None:
        return np.inf
    if then is None:
        return _cycles(best)
    lies = final_layout(structure, best.plan)
    return _cycles(best) + cycles_from(movement_problem((then,), result), (lies,), target)


def cycles_from(problem: Problem, have: tuple[Layout | None, ...], target: Target) -> float:
    """The cycles of the fastest plan of a problem whose operands lie so; infinity if none fits.

    Args:
        have: the layout of each operand; None for one that lies as the plan wants it.
    """
    best = _fastest(problem, have, target)
    return np.inf if best is None else _cycles(best)


def _fastest(problem: Problem, have: tuple[Layout | None, ...], target: Target) -> Choice | None:
    """The fastest plan of a problem whose operands lie so; None if none fits."""
    usable = target.usable_bytes_per_tile
    terms = replace(problem.terms, temporary_bytes=int(PROPORTION * usable))
    found = plans(Question(replace(problem, terms=terms), have, target, usable))
    return found[0] if found else None


def _cycles(choice: Choice) -> float:
    return choice.compute_cycles + choice.exchange_cycles + choice.sync_cycles
