"""The states of a program that draws random numbers: its seed, and the number of its run."""

from __future__ import annotations

import numpy as np

from ..ir.blob import Blob
from ..ir.upstream import ModuleOp
from .blob_attr import BlobAttr
from .first_values import first_values

SEED = "random.seed"
"""The name of the state that holds the seed, of ui32."""

STEP = "random.step"
"""The name of the state that counts the runs, of ui32."""


def set_seed(module: ModuleOp, seed: int) -> bool:
    """Change the seed with which a program of any level begins. Returns whether it has one."""
    found = [each for each in first_values(module) if each.name == SEED]
    for each in found:
        each.set(BlobAttr(Blob(np.array(seed, np.uint32))))
    return bool(found)
