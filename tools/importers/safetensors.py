"""Reads and writes files of the format of safetensors: named tensors, and texts about them.

A file has eight bytes with the length of its header, the header in JSON, and the elements of all
tensors, one after another without gaps. Source: https://huggingface.co/docs/safetensors, "Format".
The package of that name is not needed: NumPy reads the elements, and only the header needs care.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np

from ...dialects.tensor_limits import check_tensor_limits
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError

ReadTensors: TypeAlias = Callable[[Path], Mapping[str, Array]]
"""What reads a file of weights: arrays by the names of states."""

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U64": np.dtype(np.uint64),
    "U32": np.dtype(np.uint32),
    "U16": np.dtype(np.uint16),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}
"""The types of elements by the names that the format gives them."""

LENGTH_BYTES = 8
MOST_HEADER_BYTES = 100_000_000
"""The format's own limit on its header."""

METADATA = "__metadata__"
"""The entry of the header for texts."""

WEIGHTS = "a safetensors file, such as safetensors.torch.save_file(model.state_dict(), PATH) writes"
"""What a file of weights is, in messages."""

FIELDS = frozenset({"dtype", "shape", "data_offsets"})
"""The fields of the entry of a tensor."""


@dataclass(frozen=True)
class TensorFile:
    """What a file of safetensors holds.

    Attributes:
        metadata: texts by name.
        arrays: the tensors by name; they share the bytes of the file.
        entries: the header's entries for the tensors, as read.
        elements: the bytes of all tensors, in the order of the file.
    """

    metadata: Mapping[str, str]
    arrays: Mapping[str, Array]
    entries: Mapping[str, object]
    elements: Array


def read_tensor_file(path: str | os.PathLike[str], what: str = WEIGHTS) -> TensorFile:
    """Read a file of safetensors. Raises InputError for a damaged file.

    Args:
        what: what the file should be, in messages.
    """
    try:
        return _read(Path(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        # The words are also Python's: about JSON, UTF-8, or an integer of too many digits.
        raise InputError(f"{path}: damaged, or not {what}: {error}") from None


def _read(path: Path) -> TensorFile:
    if path.exists() and not path.is_file():
        raise InputError("no regular file; need a safetensors file")
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size < LENGTH_BYTES:
            raise ValueError(f"{size} bytes")
        length = int.from_bytes(stream.read(LENGTH_BYTES), "little")
        begin = LENGTH_BYTES + length
        if length > MOST_HEADER_BYTES or begin > size:
            raise ValueError(
                f"it says that its header has {length:,} bytes, of a file of {size:,}; need at "
                f"most {MOST_HEADER_BYTES:,}"
            )
        header = _header(stream.read(length))
        metadata = _metadata(header.pop(METADATA, {}))
        spans = {name: _span(name, entry) for name, entry in header.items()}
        _check_order(spans, size - begin)
        elements = np.fromfile(stream, np.uint8)
        # What nobody can change need not be copied.
        elements.flags.writeable = False
    arrays = {name: _array(name, span, elements) for name, span in spans.items()}
    return TensorFile(metadata, arrays, header, elements)


def _header(data: bytes) -> dict[str, object]:
    """The header. Raises ValueError and RecursionError for anything but an object."""

    def distinct(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
            raise ValueError(f"its header has {twice[:200]!r} twice")
        return found

    header: object = json.loads(data.decode(), object_pairs_hook=distinct)
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    return cast("dict[str, object]", header)


def _metadata(found: object) -> dict[str, str]:
    texts = cast("dict[str, object]", found) if isinstance(found, dict) else {"": None}
    if not all(isinstance(each, str) for each in texts.values()):
        raise ValueError(f"{METADATA} holds something else than texts")
    return cast("dict[str, str]", texts)


@dataclass(frozen=True)
class _Span:
    """The type of a tensor, and which bytes of the elements are its own."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int
    last: int


def _span(name: str, entry: object) -> _Span:
    what = f"tensor {name[:200]!r}"
    if not isinstance(entry, dict) or entry.keys() != FIELDS:
        raise ValueError(f"{what}: need {', '.join(sorted(FIELDS))}")
    fields = cast("dict[str, Any]", entry)
    kind, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    dtype = DTYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None:
        raise InputError(f"{what}: elements {str(kind)[:40]!r}; need one of {', '.join(DTYPES)}")
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise ValueError(f"{what}: sizes and offsets must be integers of at least 0")
    try:
        check_tensor_limits(shape, dtype.itemsize)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from None
    first, last = offsets
    if prod(shape) * dtype.itemsize != last - first:
        raise ValueError(f"{what}: {last - first:,} bytes for {kind}{shape}")
    return _Span(dtype, tuple(shape), first, last)


def _are_counts(value: object) -> bool:
    return isinstance(value, list) and all(
        type(each) is int and each >= 0 for each in cast("list[object]", value)
    )


def _check_order(spans: Mapping[str, _Span], size: int) -> None:
    """Raise InputError unless the tensors follow each other, from the first byte to the last.

    Args:
        size: the bytes of all elements.
    """
    end, before = 0, ""
    for name, span in sorted(spans.items(), key=lambda each: (each[1].first, each[1].last)):
        if span.first != end:
            how = "overlaps" if span.first < end else "leaves a gap after"
            where = f"tensor {before[:200]!r}" if before else "the header"
            raise ValueError(f"tensor {name[:200]!r} {how} {where}")
        end, before = span.last, name
    if end != size:
        raise ValueError(f"{size:,} bytes of elements; its header says {end:,}")


def _array(name: str, span: _Span, elements: Array) -> Array:
    data = elements[span.first : span.last]
    if len(data) < span.last - span.first:
        raise ValueError(f"it ended while tensor {name[:200]!r} was read")
    # Any other byte would be a truth value that is neither true nor false.
    if span.dtype == np.bool_ and data.max(initial=0) > 1:
        raise ValueError(f"tensor {name[:200]!r}: a BOOL that is neither 0 nor 1")
    return np.require(data.view(span.dtype), requirements="A").reshape(span.shape)


def entries_of(arrays: Mapping[str, Array]) -> dict[str, object]:
    """The entries of a header for tensors that follow each other."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    found: dict[str, object] = {}
    start = 0
    for name, array in arrays.items():
        found[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, start + array.nbytes],
        }
        start += array.nbytes
    return found


def bytes_of(array: Array) -> memoryview:
    """The bytes of an array, in row-major order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def file_parts(
    metadata: Mapping[str, str], arrays: Mapping[str, Array]
) -> Iterable[bytes | memoryview]:
    """The bytes of a file with these tensors, in pieces."""
    header = {METADATA: dict(metadata)} if metadata else {}
    text = json.dumps({**header, **entries_of(arrays)}).encode()
    text += b" " * (-len(text) % LENGTH_BYTES)
    yield len(text).to_bytes(LENGTH_BYTES, "little")
    yield text
    yield from map(bytes_of, arrays.values())
