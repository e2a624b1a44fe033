"""Samples of a training program: read from a file, and taken in a seeded order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.errors import InputError
from .arrays import Tensor, listed, reading

Array = NDArray[Any]


def read_samples(
    path: str | os.PathLike[str], tensors: Iterable[Tensor]
) -> tuple[int, dict[str, Array]]:
    """How many samples an .npz file holds, and them by input, along the first axis of each array.

    tensors: the inputs, each for one batch. Integers are converted to the type of the input if it
    holds them. Raises InputError.
    """
    wanted = {each.name: each for each in tensors}
    with reading(path, "an .npz file"), np.load(Path(path), allow_pickle=False) as archive:
        given = {name: np.asarray(archive[name]) for name in archive.files}
    if set(given) != set(wanted):
        raise InputError(
            f"{path}: arrays {', '.join(sorted(given)) or 'none'}; need one for each input of the "
            f"program, with all samples along its first axis: {listed(wanted.values())}"
        )
    found: dict[str, Array] = {}
    counts: dict[str, int] = {}
    for name, tensor in wanted.items():
        array = given[name]
        if not tensor.shape:
            raise InputError(
                f"{path}: input {tensor} is one number for a whole batch; samples cannot give it"
            )
        if array.shape[1:] != tensor.shape[1:] or not array.shape:
            need = ", ".join(map(str, ("samples", *tensor.shape[1:])))
            raise InputError(f"{path}: {name!r} has shape {list(array.shape)}; need [{need}]")
        found[name] = _as(array, tensor, path)
        counts[name] = len(array)
    if len(set(counts.values())) != 1 or not min(counts.values()):
        raise InputError(f"{path}: {counts} samples; need as many of each, and one or more")
    return min(counts.values()), found


def _as(array: Array, tensor: Tensor, path: str | os.PathLike[str]) -> Array:
    if array.dtype == tensor.dtype:
        return array
    converted = array.astype(tensor.dtype)
    if array.dtype.kind not in "iub" or not np.array_equal(converted, array):
        raise InputError(
            f"{path}: {tensor.name!r} has elements {array.dtype.name}; need {tensor.dtype.name}"
        )
    return converted


def batch_at(
    samples: Mapping[str, Array], count: int, batch: int, step: int, seed: int
) -> dict[str, Array]:
    """The batch of a step, counted from 0: the next samples of a seeded order of all of them.

    Every sample comes once before any comes again, in another order each time. A batch may begin at
    the end of one such pass and end in the next, so no sample is left out. The step and the seed
    alone decide, so that training can go on from any step.
    """
    places = np.arange(step * batch, (step + 1) * batch)
    passes, at = places // count, places % count
    chosen = np.empty(batch, np.int64)
    for each in np.unique(passes):
        here = passes == each
        chosen[here] = _order(count, seed, int(each))[at[here]]
    return {name: array[chosen] for name, array in samples.items()}


@lru_cache(maxsize=4)
def _order(count: int, seed: int, which: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, which]).permutation(count)
