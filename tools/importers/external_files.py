"""The files that hold weights of an ONNX model beside the model's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ...ir.support.errors import InputError

LOCATION = b"location"
"""The key of the entry that names a file of external data. A model without it has no such file."""


def external_files(model: bytes) -> tuple[str, ...]:
    """The paths of a serialized model's external data, as the model names them, sorted.

    Raises ValueError if the bytes are no model.
    """
    if LOCATION not in model:
        return ()
    # Most models have no external data, and this takes as long as the rest of a warm start.
    import onnx  # noqa: PLC0415
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    try:
        parsed = onnx.load_model_from_string(model)
    except DecodeError as error:
        raise ValueError(f"no ONNX model: {error}") from None
    found = {
        entry.value
        for tensor in _tensors(parsed, onnx.TensorProto)
        for entry in tensor.external_data
        if entry.key == LOCATION.decode()
    }
    return tuple(sorted(found))


def file_inside(folder: Path, where: str, what: str) -> Path:
    """The file of external data. It must lie below the folder, with all links followed.

    where: the path as the model names it. what: begins messages. Raises InputError, also if there
    is no such file.
    """
    if not where or "\0" in where or Path(where).is_absolute() or ".." in Path(where).parts:
        raise InputError(
            f"{what}: external data in {where!r}; need a path below the model's folder"
        )
    try:
        path = (folder / where).resolve()
        inside = path.is_relative_to(folder.resolve())
        there = inside and path.is_file()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{what}: cannot read {where!r}: {error}") from None
    if not inside:
        raise InputError(f"{what}: {where!r} links to a place outside the model's folder")
    if not there:
        raise InputError(f"{what}: there is no file {where!r} of external data")
    return path


def _tensors(message: Any, kind: type[Any]) -> Iterator[Any]:
    """All tensors in a message of protobuf, wherever they are."""
    waiting = [message]
    while waiting:
        each = waiting.pop()
        if isinstance(each, kind):
            yield each
            continue
        for field, value in each.ListFields():
            if field.message_type is not None:
                waiting += cast("list[Any]", value if _is_repeated(value) else [value])


def _is_repeated(value: object) -> bool:
    return not hasattr(value, "ListFields")
