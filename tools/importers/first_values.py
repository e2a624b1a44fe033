"""The first values of weights that no file has: seeds from names, and fans of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from zlib import crc32

import numpy as np


def generator_of(name: str) -> np.random.Generator:
    """What draws the first value of a weight: always the same numbers for one name."""
    return np.random.default_rng(crc32(name.encode()))


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """The number of inputs of each output of a weight, and of outputs of each input.

    The first axis has the outputs and the second the inputs; all others are positions of a window.
    A weight of one axis has one input. Raises IndexError for a weight that is one number.
    """
    return prod(shape[1:]), shape[0] * prod(shape[2:])
