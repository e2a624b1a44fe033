"""The front end for archives of torch.export. It never imports torch."""

from __future__ import annotations

from ....ir.support.deferred import deferred
from ..front_end import FrontEnd

with deferred(__name__):
    from .exported import serialized
    from .reader import read_pt2, uses_of
    from .signatures import open_shapes
    from .source_texts import source_lines


def _is_exported(value: object) -> bool:
    """Whether an object is a torch.export.ExportedProgram, told without importing torch."""
    return hasattr(value, "graph_signature") and hasattr(value, "range_constraints")


PT2 = FrontEnd(
    "PyTorch",
    (".pt2",),
    read=read_pt2,
    understands=frozenset({"dims", "values", "batch"}),
    takes=_is_exported,
    in_memory="a torch.export.ExportedProgram",
    serialized=serialized,
    open_shapes=open_shapes,
    source_lines=source_lines,
    uses=uses_of,
)
