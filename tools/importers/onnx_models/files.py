"""Writes a module of the onnx dialect to a file, with the files of its external data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from ....dialects.onnx import TensorAttr
from ....dialects.onnx.tensors import raw_bytes
from ....dialects.onnx_level import has_onnx
from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from ....ir.upstream import ModuleOp
from .writer import model_of

SUFFIX = ".onnx"
"""How the name of a model's file ends."""


def write_onnx(module: ModuleOp, path: Path, source: Path | None = None) -> None:
    """Write a module as a model, with its external data beside it.

    A model that is that of its source is written as the same bytes. Any other one must pass onnx's
    checker, if its source does.
    Raises InputError if the module is no model, if onnx refuses the model, or if a file of other
    data is in the way.

    Args:
        source: the file from which the module was read, if there is one.
    """
    if not has_onnx(module):
        raise InputError(
            f"{path}: only a module of ONNX can be written to an {SUFFIX} file; -o with .mlir "
            "writes the text of any module"
        )
    model = model_of(module, str(path))
    original = _original(source)
    data = None if original is None or original[0] != model else original[1]
    if data is None:
        _check_training(model, path)
        if original is None or _refusal(original[0], source) is None:
            _check(model, module, path)
        try:
            data = model.SerializeToString(deterministic=True)
        except (ValueError, EncodeError) as error:
            raise InputError(
                f"{path}: too large for one file ({error}); keep its weights as external data"
            ) from None
    try:
        _write_external(module, path.parent)
        with whole_file(path) as stream:
            stream.write(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _original(source: Path | None) -> tuple[onnx.ModelProto, bytes] | None:
    if source is None:
        return None
    try:
        data = source.read_bytes()
        return onnx.ModelProto.FromString(data), data
    except (OSError, DecodeError):
        return None


def _check_training(model: onnx.ModelProto, path: Path) -> None:
    """Raise InputError if the passes have removed a weight that the model says how to train."""
    held = {each.name for each in (*model.graph.initializer, *model.graph.input)}
    for info in model.training_info:
        for binding in (*info.initialization_binding, *info.update_binding):
            local = {each.name for each in info.algorithm.initializer}
            if binding.key not in held | local:
                raise InputError(
                    f"{path}: the model's training information changes the weight {binding.key!r}, "
                    "which the passes have removed; keep it, or remove the training information"
                )


def _check(model: onnx.ModelProto, module: ModuleOp, path: Path) -> None:
    """Raise InputError for a model that onnx refuses."""
    has_external = any(True for _ in _external(module))
    whole = model_of(module, str(path), inline=True) if has_external else model
    reason = _refusal(whole, None)
    if reason is not None:
        raise InputError(
            f"{path}: onnx refuses the model that the passes leave: {reason}; --dump-ir DIR shows "
            "what each pass did"
        )


def _refusal(model: onnx.ModelProto, source: Path | None) -> str | None:
    """Why onnx refuses a model; None if it does not, or if it is too large to be checked.

    Args:
        source: its file, for external data.
    """
    try:
        onnx.checker.check_model(model if source is None else str(source), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return " ".join(str(error).split())
    except ValueError:
        return None
    return None


# External data


def _external(module: ModuleOp) -> Iterator[tuple[dict[str, str], NDArray[Any]]]:
    """The entries and elements of all tensors whose data are in other files."""
    seen: set[int] = set()
    for op in module.walk():
        for each in (*op.properties.values(), *op.attributes.values()):
            yield from _external_in(each, seen)


def _external_in(
    attribute: Attribute, seen: set[int]
) -> Iterator[tuple[dict[str, str], NDArray[Any]]]:
    if id(attribute) in seen:
        return
    seen.add(id(attribute))
    if isinstance(attribute, TensorAttr):
        listed = attribute.form.data.get("external_data")
        if isinstance(listed, ArrayAttr) and "data_location" in attribute.form.data:
            entries = dict(map(_entry, cast("ArrayAttr[Any]", listed).data))
            yield entries, attribute.array
    elif isinstance(attribute, DictionaryAttr):
        for each in attribute.data.values():
            yield from _external_in(each, seen)
    elif isinstance(attribute, ArrayAttr):
        for each in cast("ArrayAttr[Any]", attribute).data:
            yield from _external_in(each, seen)


def _entry(attribute: Attribute) -> tuple[str, str]:
    fields = attribute.data if isinstance(attribute, DictionaryAttr) else dict[str, Attribute]()
    key, value = fields.get("key"), fields.get("value")
    return (
        key.data if isinstance(key, StringAttr) else "",
        value.data if isinstance(value, StringAttr) else "",
    )


def _write_external(module: ModuleOp, folder: Path) -> None:
    """Write the files of external data. Raises InputError for a file of other data in the way."""
    files: dict[str, list[tuple[int, NDArray[Any]]]] = defaultdict(list)
    for entries, array in _external(module):
        where = entries.get("location", "")
        path = PurePosixPath(where)
        if not where or "\0" in where or path.is_absolute() or ".." in path.parts:
            raise InputError(f"external data in {where!r}; need a path below the model's folder")
        offset = entries.get("offset", "0")
        if not offset.isdecimal():
            raise InputError(f"offset {offset!r} of external data in {where!r}; need a number")
        files[where].append((int(offset), array))
    for where, pieces in files.items():
        target = folder / where
        pieces.sort(key=lambda piece: piece[0])
        if target.exists():
            if not _holds(target, pieces):
                raise InputError(
                    f"{target}: holds other data than the model; write the model to another folder"
                )
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as stream:
            for offset, array in pieces:
                stream.seek(offset)
                stream.write(_stored(array))


def _stored(array: NDArray[Any]) -> bytes | memoryview:
    plain = array.dtype.kind in "biufc"
    return (
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if plain else raw_bytes(array)
    )


def _holds(path: Path, pieces: list[tuple[int, NDArray[Any]]]) -> bool:
    """Whether a file has these bytes at their places."""
    with path.open("rb") as stream:
        for offset, array in pieces:
            data = _stored(array)
            stream.seek(offset)
            if stream.read(len(data)) != data:
                return False
    return True
