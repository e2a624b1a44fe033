"""Samples of a training program: checked, split, and taken in a seeded order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from .arrays import Tensor, listed
from .training import Settings


@dataclass(frozen=True)
class Samples:
    """Samples along the first axis of an array for each input.

    Attributes:
        path: their name in messages.
        batch: how many samples a step of the program takes.
    """

    path: str
    arrays: Mapping[str, Array]
    batch: int

    @property
    def count(self) -> int:
        """How many samples there are."""
        return len(next(iter(self.arrays.values())))

    def take(self, chosen: NDArray[np.int64]) -> dict[str, Array]:
        """Some of the samples."""
        return {name: array[chosen] for name, array in self.arrays.items()}

    def split(self, fraction: float, seed: int) -> tuple[Samples, Samples]:
        """The samples to train on, and a part of all that is chosen by a seed and kept from it.

        Raises InputError if one of them would be empty.
        """
        # A fraction that is no number compares false.
        held = round(fraction * self.count) if 0 <= fraction <= 1 else 0
        if not 0 < held < self.count:
            raise InputError(
                f"{self.path}: {fraction:g} of {self.count} samples; need one or more to validate "
                "with, and one or more to train on"
            )
        order = np.random.default_rng([seed, self.count, held]).permutation(self.count)
        kept, rest = np.sort(order[:held]), np.sort(order[held:])
        return replace(self, arrays=self.take(rest)), replace(self, arrays=self.take(kept))

    def at(self, step: int, seed: int) -> dict[str, Array]:
        """The batch of a step, counted from 0: the next samples of a seeded order of all of them.

        Every sample comes once before any comes again, in another order each time. A batch may
        begin at the end of one such pass and end in the next, so no sample is left out. The step
        and the seed alone decide, so that training can go on from any step.
        """
        places = np.arange(step * self.batch, (step + 1) * self.batch)
        passes, at = places // self.count, places % self.count
        chosen = np.empty(self.batch, np.int64)
        for each in np.unique(passes):
            here = passes == each
            chosen[here] = _order(self.count, seed, int(each))[at[here]]
        return self.take(chosen)

    def check_labels(self, settings: Settings) -> None:
        """Raise InputError for a label that is no class of the program."""
        if not settings.classes:
            return
        labels = self.arrays[settings.target]
        wrong = (labels < 0) | (labels >= settings.classes)
        if settings.ignored is not None:
            wrong &= labels != settings.ignored
        if wrong.any():
            where = np.argwhere(wrong)[0]
            also = "" if settings.ignored is None else f", or {settings.ignored} to ignore it"
            raise InputError(
                f"{self.path}: label {labels[tuple(where)]} of sample {where[0]} in "
                f"{settings.target!r}; need 0 to {settings.classes - 1}{also}"
            )


def samples_of(
    given: Mapping[str, Array], tensors: Iterable[Tensor], path: str = "samples"
) -> Samples:
    """The samples along the first axis of an array for each input.

    Raises InputError.

    Integers are converted to the type of the input if it holds them.

    Args:
        tensors: the inputs, each for one batch.
    """
    wanted = {each.name: each for each in tensors}
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
        found[name] = in_type(array, tensor, path)
        counts[name] = len(array)
    if len(set(counts.values())) != 1 or not min(counts.values()):
        found_counts = ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        raise InputError(f"{path}: samples: {found_counts}; need as many of each, and one or more")
    if len({tensor.shape[0] for tensor in wanted.values()}) != 1:
        raise InputError(
            f"{path}: the inputs of the program are {listed(wanted.values())}; need as many "
            "samples along the first axis of each"
        )
    return Samples(path, found, next(iter(wanted.values())).shape[0])


def in_type(array: Array, tensor: Tensor, path: str) -> Array:
    """An array in the type of an input. Raises InputError for elements that it does not hold."""
    if array.dtype == tensor.dtype:
        return array
    converted = array.astype(tensor.dtype)
    if array.dtype.kind not in "iub" or not np.array_equal(converted, array):
        raise InputError(
            f"{path}: {tensor.name!r} has elements {array.dtype.name}; need {tensor.dtype.name}"
        )
    return converted


@lru_cache(maxsize=4)
def _order(count: int, seed: int, which: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, which]).permutation(count)
