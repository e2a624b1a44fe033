"""The front end for ONNX. It imports onnx when a model is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....ir.support.deferred import deferred
from ..front_end import FrontEnd

with deferred(__name__):
    from .external_files import external_files
    from .layer_names import layer_names, source_lines
    from .open_shapes import open_shapes
    from .overrides import optional_inputs
    from .reader import read_onnx, uses_of

LOCATION = b"location"
"""The key of the entry that names a file of external data. A model without it has no such file, and
need not be parsed to find that out."""


def _is_proto(value: object) -> bool:
    return hasattr(value, "SerializeToString")


def _serialized(model: Any) -> bytes:
    data = model.SerializeToString(deterministic=True)
    if _external_files(data):
        raise ValueError("a model in memory has no folder for external data")
    return data


def _external_files(model: bytes) -> Sequence[str]:
    return external_files(model) if LOCATION in model else ()


def _files(path: Path) -> Sequence[str]:
    return _external_files(path.read_bytes())


ONNX = FrontEnd(
    "ONNX",
    (".onnx",),
    read=read_onnx,
    understands=frozenset({"dims", "values", "batch"}),
    takes=_is_proto,
    in_memory="an onnx.ModelProto",
    serialized=_serialized,
    files=_files,
    marker=LOCATION,
    open_shapes=open_shapes,
    optional_inputs=optional_inputs,
    layer_names=layer_names,
    source_lines=source_lines,
    uses=uses_of,
)
