"""The front end for ONNX. It imports onnx when a model is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ....ir.support.deferred import deferred
from ..front_end import FrontEnd

LOCATION = b"location"
"""The key of the entry that names a file of external data. A model without it has no such file."""

external_files: Callable[[bytes], Sequence[str]] = deferred(
    ".external_files", "external_files", __package__
)


def _is_proto(value: object) -> bool:
    return hasattr(value, "SerializeToString")


def _serialized(model: Any) -> bytes:
    data = model.SerializeToString(deterministic=True)
    if external_files(data):
        raise ValueError("a model in memory has no folder for external data")
    return data


def _files(path: Path) -> Sequence[str]:
    return external_files(path.read_bytes())


ONNX = FrontEnd(
    "ONNX",
    (".onnx",),
    read=deferred(".reader", "read_onnx", __package__),
    understands=frozenset({"dims", "values", "batch"}),
    takes=_is_proto,
    in_memory="an onnx.ModelProto",
    serialized=_serialized,
    files=_files,
    marker=LOCATION,
    optional_inputs=deferred(".overrides", "optional_inputs", __package__),
    layer_names=deferred(".layer_names", "layer_names", __package__),
    uses=deferred(".reader", "uses_of", __package__),
)
