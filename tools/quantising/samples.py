"""The samples to calibrate with and to judge by: checked, split and put into runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ..driver.arrays import Tensor, as_array, listed, read_arrays
from ..driver.example import Example
from ..driver.request import Request, found_front_end
from ..driver.samples import in_type

Data = str | os.PathLike[str] | Mapping[str, ArrayLike]
"""Samples by the name of an input: arrays, or a file of them."""

LABELS = "target"
"""The array of classes among the samples, as `abele train` calls it."""


@dataclass(frozen=True)
class Units:
    """Inputs of many runs: samples along the first axis of each array, or whole runs.

    Attributes:
        path: their name in messages.
        batch: how many samples a run takes; 0 if each entry is the input of a whole run.
        labels: the class of each sample, if known.
    """

    path: str
    arrays: Mapping[str, Array]
    batch: int
    labels: NDArray[np.int64] | None = None

    @property
    def count(self) -> int:
        """How many samples, or runs, there are."""
        return len(next(iter(self.arrays.values())))

    def take(self, chosen: NDArray[np.int64]) -> Units:
        """Some of them."""
        arrays = {name: array[chosen] for name, array in self.arrays.items()}
        labels = None if self.labels is None else self.labels[chosen]
        return replace(self, arrays=arrays, labels=labels)

    def split(self, fraction: float, seed: int) -> tuple[Units, Units]:
        """Those to calibrate with, and a part of all that is chosen by a seed to judge by.

        Raises InputError if one of them would be empty.
        """
        held = round(fraction * self.count) if 0 < fraction < 1 else 0
        if not 0 < held < self.count:
            raise InputError(
                f"{self.path}: {fraction:g} of {self.count} samples; need one or more to judge by, "
                "and one or more to calibrate with"
            )
        order = np.random.default_rng([seed, self.count, held]).permutation(self.count)
        return self.take(np.sort(order[held:])), self.take(np.sort(order[:held]))

    def runs(self) -> Iterator[tuple[dict[str, Array], int, int]]:
        """For each run its inputs, the first sample in it, and how many of them count.

        The last run is filled up with copies of the last sample.
        """
        size = self.batch or 1
        for i in range(ceil(self.count / size)):
            here = np.arange(i * size, (i + 1) * size).clip(max=self.count - 1)
            left = min(self.count - i * size, size)
            if self.batch:
                yield {name: array[here] for name, array in self.arrays.items()}, i * size, left
            else:
                yield {name: array[i] for name, array in self.arrays.items()}, i, 1


def units_of(
    given: Mapping[str, Array], tensors: Sequence[Tensor], path: str, labels: str
) -> Units:
    """The samples of arrays for the inputs of a program.

    An array has its samples along axis 0, or one axis more than the input, along which each entry
    is the input of a run.
    Raises InputError for missing and unknown arrays, wrong shapes and types, different numbers of
    samples, numbers that are not finite, and labels that are no integers.

    Args:
        labels: the name of the array of classes, which may be missing.
    """
    wanted = {each.name: each for each in tensors}
    if not wanted:
        raise InputError(f"{path}: the model takes no inputs, so there is nothing to calibrate")
    if set(given) - {labels} != set(wanted):
        raise InputError(
            f"{path}: arrays {', '.join(sorted(given)) or 'none'}; need one for each input of the "
            f"model, with all samples along its first axis: {listed(wanted.values())}; and "
            f"{labels!r} for classes, if they are known"
        )
    found = {name: in_type(given[name], each, path) for name, each in wanted.items()}
    for name, array in found.items():
        _check_finite(name, array, path)
    whole = [name for name, each in wanted.items() if found[name].shape[1:] == each.shape]
    batched = [name for name in wanted if name not in whole]
    sizes = {wanted[name].shape[0] for name in batched if wanted[name].shape}
    for name in batched:
        tensor, shape = wanted[name], found[name].shape
        if not tensor.shape or len(shape) != len(tensor.shape) or shape[1:] != tensor.shape[1:]:
            need = ", ".join(map(str, ("samples", *tensor.shape[1:])))
            also = f" or [runs, {', '.join(map(str, tensor.shape))}]"
            raise InputError(f"{path}: {name!r} has shape {list(shape)}; need [{need}]{also}")
    if len(sizes) > 1:
        raise InputError(
            f"{path}: the inputs are {listed(wanted.values())}; need as many samples along the "
            "first axis of each, or arrays with an axis of runs before it"
        )
    batch = sizes.pop() if sizes else 0
    if whole and batch:
        for name in batched:
            if len(found[name]) % batch:
                raise InputError(
                    f"{path}: {len(found[name])} samples of {name!r}; need a multiple of {batch}"
                )
            found[name] = found[name].reshape(-1, batch, *found[name].shape[1:])
        batch = 0
    counts = {name: len(array) for name, array in found.items()}
    if len(set(counts.values())) != 1 or not min(counts.values()):
        shown = ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        raise InputError(f"{path}: samples: {shown}; need as many of each, and one or more")
    classes = None if labels not in given else _labels(given[labels], labels, counts, path)
    return Units(path, found, batch, classes)


def _check_finite(name: str, array: Array, path: str) -> None:
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        return
    finite = np.isfinite(array)
    if not finite.all():
        at = np.argwhere(~finite)[0]
        raise InputError(
            f"{path}: {array[tuple(at)]} in {name!r} at {[int(i) for i in at]}; need finite numbers"
        )


def _labels(array: Array, name: str, counts: Mapping[str, int], path: str) -> NDArray[np.int64]:
    count = next(iter(counts.values()))
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise InputError(
            f"{path}: {name!r} is {array.dtype.name}{list(array.shape)}; need an integer for each "
            f"of {count} samples"
        )
    return array.astype(np.int64)


def arrays_of(data: Data, what: str) -> tuple[dict[str, Array], str]:
    """Arrays by name, and what messages call them. Raises InputError."""
    if isinstance(data, Mapping):
        return {name: as_array(value, repr(name)) for name, value in data.items()}, what
    return read_arrays(data), str(data)


def with_sizes(request: Request, arrays: Mapping[str, Array], path: str, labels: str) -> Request:
    """The request with the sizes of free dimensions that follow from the samples.

    A free first axis, along which the samples lie, is 1 unless a batch is given. Raises InputError.
    """
    front_end = found_front_end(request.model)
    if front_end.open_shapes is None:
        return request
    declared = front_end.open_shapes(request.model)
    wanted = set(declared) - set(request.values or {})
    if set(arrays) - {labels} != wanted:
        raise InputError(
            f"{path}: arrays {', '.join(sorted(arrays)) or 'none'}; need one for each input of the "
            f"model ({', '.join(sorted(wanted)) or 'it has none'}), and {labels!r} for classes, if "
            "they are known"
        )
    shapes: dict[str, tuple[int | None, ...]] = {}
    for name, array in arrays.items():
        shape = declared.get(name)
        if name == labels or shape is None or not array.ndim or not shape:
            continue
        if array.ndim == len(shape) + 1:
            shapes[name] = array.shape[1:]
        elif array.ndim == len(shape):
            size = shape[0]
            first = size if isinstance(size, int) else None
            if first is None and request.batch is None and not _is_set(request, name, size):
                first = 1
            shapes[name] = (request.batch or first, *array.shape[1:])
    return replace(request, example=Example(shapes, path)).with_sizes()


def _is_set(request: Request, name: str, size: int | str) -> bool:
    """Whether the request sets the size of an input's first axis."""
    dims = request.dims or {}
    return f"{name}:0" in dims or size in dims
