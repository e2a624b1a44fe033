"""The price of an operator that nothing comes before or after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...backends.target import Target
from ...dialects.structured import Structure
from .limits import PROPORTION
from .problem import Problem
from .question import unplaced
from .serial import plans


def cycles_alone(
    structure: Structure,
    dtypes: Sequence[np.dtype[np.generic]],
    dense: Sequence[bool],
    target: Target,
) -> float:
    """The cycles of the fastest plan of a structure; infinity if none fits.

    Args:
        dtypes: of the operands and the result.
        dense: whether each operand comes from elsewhere, and lies as the plan wants it, each
            element once. The others lie where they are read.
    """
    usable = target.usable_bytes_per_tile
    resident = tuple(not each for each in dense)
    problem = Problem(structure, tuple(dtypes[:-1]), dtypes[-1], resident, free=tuple(dense))
    terms = replace(problem.terms, temporary_bytes=int(PROPORTION * usable))
    found = plans(unplaced(replace(problem, terms=terms), target, usable))
    if not found:
        return np.inf
    best = found[0]
    return best.compute_cycles + best.exchange_cycles + best.sync_cycles
