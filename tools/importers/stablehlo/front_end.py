"""The front end for programs of StableHLO. It never imports jax."""

from __future__ import annotations

from ....ir.support.deferred import deferred
from ..front_end import FrontEnd

with deferred(__name__):
    from .reader import read_stablehlo, uses_of

STABLEHLO = FrontEnd(
    "StableHLO",
    (".stablehlo",),
    read=read_stablehlo,
    uses=uses_of,
    folds_weights=False,
)
