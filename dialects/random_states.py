"""The states of a program that draws random numbers: its seed, and the number of its run."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr

from ..ir.blob import Blob
from ..ir.upstream import ModuleOp
from .blob_attr import BlobAttr

SEED = "random.seed"
"""The name of the state that holds the seed, of ui32."""

STEP = "random.step"
"""The name of the state that counts the runs, of ui32."""

_INITIAL = ("value", "initial")
"""The properties with the first value of a state: of nn, and of a variable below."""


def set_seed(module: ModuleOp, seed: int) -> bool:
    """Change the seed with which a program of any level begins. Returns whether it has one."""
    found = False
    for op in module.body.block.ops:
        name = op.properties.get("sym_name")
        if not isinstance(name, StringAttr) or name.data != SEED:
            continue
        for key in _INITIAL:
            if isinstance(op.properties.get(key), BlobAttr):
                op.properties[key] = BlobAttr(Blob(np.array(seed, np.uint32)))
                found = True
    return found
