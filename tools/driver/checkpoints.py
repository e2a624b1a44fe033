"""Checkpoints: the states of a training program in a file of the format of safetensors.

The file has eight bytes with the length of its header, the header in JSON, and the elements of all
tensors in order. Source: https://huggingface.co/docs/safetensors, "Format".

The format has no checksum, so the metadata have one: a damaged element would otherwise be one more
weight. Files without it, such as those of earlier versions, are read as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.whole_file import whole_file
from .arrays import reading

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
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

METADATA, DIGEST = "__metadata__", "sha256"
"""The entry of the header for texts, and the name of its text that is the digest of all else."""


@dataclass(frozen=True)
class Checkpoint:
    """The states of a program after some steps of training.

    Attributes:
        step: how many steps were done.
        seed: the seed of the order of the samples.
        states: the states, by name.
    """

    step: int
    seed: int
    states: Mapping[str, Array]


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint, to a temporary file that is then renamed. Raises InputError."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    metadata = {"step": str(checkpoint.step), "seed": str(checkpoint.seed)}
    header: dict[str, object] = {METADATA: metadata}
    arrays = {name: np.asarray(array) for name, array in checkpoint.states.items()}
    start = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, start + array.nbytes],
        }
        start += array.nbytes
    header[METADATA] = {**metadata, DIGEST: _digest(header, map(_elements, arrays.values()))}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % LENGTH_BYTES)
    try:
        with whole_file(Path(path)) as stream:
            stream.write(len(text).to_bytes(LENGTH_BYTES, "little"))
            stream.write(text)
            for array in arrays.values():
                stream.write(_elements(array))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _elements(array: Array) -> memoryview:
    """The bytes of an array, in row-major order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _digest(header: Mapping[str, object], elements: Iterable[memoryview]) -> str:
    """The digest of a header without a digest, and of the elements that follow it."""
    found = sha256(json.dumps(header, sort_keys=True).encode())
    for each in elements:
        found.update(each)
    return found.hexdigest()


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint that write_checkpoint wrote. Raises InputError for any other file."""
    with reading(path, "a checkpoint"):
        return _parsed(Path(path).read_bytes())


def _parsed(data: bytes) -> Checkpoint:
    """The checkpoint that a file holds. Raises ValueError for damage, or another error."""
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    begin = LENGTH_BYTES + length
    if len(data) < LENGTH_BYTES or length > MOST_HEADER_BYTES or begin > len(data):
        raise ValueError("the file ends before its header does")
    header = cast("dict[str, Any]", json.loads(data[LENGTH_BYTES:begin]))
    metadata = header.get(METADATA, {})
    digest = metadata.pop(DIGEST, None)
    if digest is not None and digest != _digest(header, [memoryview(data)[begin:]]):
        raise ValueError("its digest is not that of its elements; need an undamaged copy")
    header.pop(METADATA, None)
    if not {"step", "seed"} <= set(metadata):
        raise ValueError("it does not say of which step it is")
    states: dict[str, Array] = {}
    for name, entry in header.items():
        dtype, shape = DTYPES[entry["dtype"]], tuple(map(int, entry["shape"]))
        first, last = map(int, entry["data_offsets"])
        if not 0 <= first <= last <= len(data) - begin:
            raise ValueError(f"the file ends before {name!r} does")
        if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != last - first:
            raise ValueError(f"{name!r}: {last - first} bytes for {entry['dtype']}{list(shape)}")
        states[name] = np.frombuffer(data[begin + first : begin + last], dtype).reshape(shape)
    step, seed = int(metadata["step"]), int(metadata["seed"])
    if min(step, seed) < 0:
        raise ValueError(f"step {step}, seed {seed}; need numbers that are not negative")
    return Checkpoint(step, seed, states)
