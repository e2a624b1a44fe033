"""The front end for networks of MXNet. It never imports MXNet."""

from __future__ import annotations

from ....ir.support.deferred import deferred
from ..front_end import FrontEnd

with deferred(__name__):
    from .files import weights_beside
    from .params import read_params
    from .reader import open_shapes, read_mxnet, uses_of

MXNET = FrontEnd(
    "MXNet",
    ("-symbol.json",),
    read=read_mxnet,
    understands=frozenset({"dims", "values", "batch"}),
    files=weights_beside,
    open_shapes=open_shapes,
    uses=uses_of,
    tensors={".params": read_params},
)
