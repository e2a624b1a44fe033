"""Checkpoints: the states of a training program in a file of the format of safetensors.

The format has no checksum, so the metadata have one: a damaged element would otherwise be one more
weight. Files without it, such as those of earlier versions, are read as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.whole_file import whole_file
from ..importers.safetensors import (
    METADATA,
    bytes_of,
    entries_of,
    file_parts,
    read_tensor_file,
)

DIGEST = "sha256"
"""The name of the text in the metadata that is the digest of all else."""


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
    metadata = {"step": str(checkpoint.step), "seed": str(checkpoint.seed)}
    arrays = {name: np.asarray(array) for name, array in checkpoint.states.items()}
    header = {METADATA: metadata, **entries_of(arrays)}
    digest = _digest(header, map(bytes_of, arrays.values()))
    try:
        with whole_file(Path(path)) as stream:
            for part in file_parts({**metadata, DIGEST: digest}, arrays):
                stream.write(part)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _digest(header: Mapping[str, object], elements: Iterable[memoryview]) -> str:
    """The digest of a header without a digest, and of the elements that follow it."""
    found = sha256(json.dumps(header, sort_keys=True).encode())
    for each in elements:
        found.update(each)
    return found.hexdigest()


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint that write_checkpoint wrote. Raises InputError for any other file."""
    file = read_tensor_file(path, "a checkpoint")
    metadata = dict(file.metadata)
    digest = metadata.pop(DIGEST, None)
    if digest is not None:
        found = _digest({METADATA: metadata, **file.entries}, [bytes_of(file.elements)])
        if found != digest:
            raise InputError(
                f"{path}: damaged: its digest is not that of its elements; need an undamaged copy"
            )
    if not {"step", "seed"} <= set(metadata):
        raise InputError(f"{path}: no checkpoint: it does not say of which step it is")
    try:
        step, seed = int(metadata["step"]), int(metadata["seed"])
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}") from None
    if min(step, seed) < 0:
        raise InputError(f"{path}: step {step}, seed {seed}; need numbers that are not negative")
    return Checkpoint(step, seed, file.arrays)
