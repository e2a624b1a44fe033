"""The generators of random numbers of the workers, as a state of a program at the tile level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Attribute

from ..ir.geometry.grid import Cut
from ..ir.geometry.layout import Layout
from ..ir.geometry.space import identity_map
from ..ir.support.deferred import deferred
from ..ir.upstream import VerifyException
from .nn import tensor
from .variable import Variable

with deferred(__name__):
    from ..ir.support.xoroshiro import seeded

GENERATORS = "rounding.generators"
"""The name of the state with the generators of all workers: ui32[tiles, workers, 4]."""

_WORD = IntegerType(32, Signedness.UNSIGNED)

WORDS = 4
"""The words of 32 bits of a generator."""

GENERATOR_BYTES = 4 * WORDS


def generators_type(tiles: int, workers: int) -> TensorType[Attribute]:
    """The type of the generators of some tiles."""
    return tensor((tiles, workers, WORDS), _WORD)


def generators_layout(tiles: int, workers: int) -> Layout:
    """Each tile holds the generators of its own workers."""
    cuts = Cut(tiles, tiles), Cut(workers), Cut(WORDS)
    return Layout(cuts, identity_map((0, 1, 2), (tiles, workers, WORDS)))


def seeded_generators(seed: int, tiles: int, workers: int) -> NDArray[np.uint32]:
    """The generators as a seed says."""
    return seeded(seed, tiles, workers).view(np.uint32)


def verify_generators(variable: Variable, tiles: int) -> None:
    """Check that a variable holds generators.

    Raises VerifyException.

    Args:
        tiles: the number of tiles that need some.
    """
    type_ = variable.tensor
    shape = tuple(type_.get_shape())
    fits = len(shape) == 3 and shape[2] == WORDS and type_.element_type == _WORD
    if not fits or variable.state is None or variable.placed != generators_layout(*shape[:2]):
        raise VerifyException(
            f"@{variable.symbol} holds no generators; need a state of ui32[tiles, workers, {WORDS}]"
            ", a row on each tile"
        )
    if shape[0] < tiles:
        raise VerifyException(
            f"@{variable.symbol} has generators of {shape[0]} tiles; need {tiles}"
        )
