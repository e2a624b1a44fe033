"""The front end for programs of StableHLO. It never imports jax."""

from __future__ import annotations

from ....ir.support.deferred import deferred
from ..front_end import FrontEnd

with deferred(__name__):
    from .in_memory import serialized
    from .reader import read_stablehlo, uses_of

MARKS = (("text", "weights"), ("compiler_ir", "out_info"), ("mlir_module_serialized", "out_tree"))
"""The attributes that tell a StableHloModel, a jax.stages.Lowered and a jax.export.Exported."""


def _is_in_memory(value: object) -> bool:
    return any(all(hasattr(value, name) for name in names) for names in MARKS)


STABLEHLO = FrontEnd(
    "StableHLO",
    (".stablehlo", ".mlirbc"),
    read=read_stablehlo,
    takes=_is_in_memory,
    in_memory="what from_jax returns",
    serialized=serialized,
    uses=uses_of,
    folds_weights=False,
)
