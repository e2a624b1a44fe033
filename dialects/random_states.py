"""The states of a program that draws random numbers or rounds stochastically: a seed, and the
number of the run.
"""

from __future__ import annotations

import numpy as np

from ..ir.blob import Blob
from ..ir.upstream import ModuleOp
from .blob_attr import BlobAttr
from .first_values import first_values
from .generators import GENERATORS, seeded_generators

SEED = "random.seed"
"""The name of the state that holds the seed, of ui32."""

STEP = "random.step"
"""The name of the state that counts the runs, of ui32."""

ROUNDING_SEED = "rounding.seed"
"""The name of the state from which the words of stochastic roundings follow, of f32: a whole
number, at first below 2^23. Another one follows it every 2^24 - 1 runs."""

FIRST_SEED = "rounding.first_seed"
"""The name of the state from which the words of roundings outside of a loop of runs follow: what
rounding.seed is at first."""

ROUNDING_STEP = "rounding.step"
"""The name of the state that counts the runs of a program that rounds stochastically, of f32. It
returns to 0 behind 2^24 - 2, with another seed."""


def rounding_seed(seed: int) -> int:
    """The number below 2^23 that stands for a seed in roundings; close seeds are far apart."""
    return (seed * 0x9E3779B1 & 0xFFFFFFFF) >> 9


def set_seed(module: ModuleOp, seed: int) -> bool:
    """Change the seed with which a program of any level begins. Returns whether it has one."""
    values = {
        SEED: np.array(seed, np.uint32),
        **dict.fromkeys((ROUNDING_SEED, FIRST_SEED), np.array(rounding_seed(seed), np.float32)),
    }
    found = False
    for each in first_values(module):
        if each.name in values:
            each.set(BlobAttr(Blob(values[each.name])))
        elif each.name == GENERATORS:
            tiles, workers, _ = each.blob.array.shape
            each.set(BlobAttr(Blob(seeded_generators(seed, tiles, workers))))
        else:
            continue
        found = True
    return found
