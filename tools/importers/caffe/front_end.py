"""The front end for networks of Caffe. It never imports Caffe."""

from __future__ import annotations

from ....ir.support.deferred import deferred
from ..front_end import FrontEnd

with deferred(__name__):
    from .blobs import states_in
    from .files import names_of_files
    from .reader import open_shapes, read_caffe, uses_of

CAFFE = FrontEnd(
    "Caffe",
    (".prototxt",),
    read=read_caffe,
    understands=frozenset({"dims", "values", "batch"}),
    files=names_of_files,
    open_shapes=open_shapes,
    uses=uses_of,
    tensors={".caffemodel": states_in},
)
