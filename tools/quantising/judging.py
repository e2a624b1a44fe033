"""How much of a model quantisation changes: the agreement of two programs, and their accuracy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, log10

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Array
from .samples import Units

Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""Runs a program: inputs by name to outputs by name."""


@dataclass
class Agreement:
    """How far an output of the quantised program is from that of the float program.

    Attributes:
        signal, noise: sums of the squares of the float output, and of the difference.
        compared: samples whose largest output is compared.
        agreed: how many of them have their largest output at the same place.
        right, right_in_float: how many of them have it at their label.
        not_finite: elements that are not finite in one of the two.
    """

    name: str
    signal: float = 0.0
    noise: float = 0.0
    compared: int = 0
    agreed: int = 0
    right: int | None = None
    right_in_float: int | None = None
    not_finite: int = 0

    @property
    def share(self) -> float | None:
        """The share of samples with the same top-1; None for an output that is no list of
        classes."""
        return self.agreed / self.compared if self.compared else None

    @property
    def decibels(self) -> float:
        """The ratio of signal to noise, in dB; infinite for equal outputs."""
        if not self.noise:
            return inf
        return 10 * log10(self.signal / self.noise) if self.signal else -inf

    @property
    def accuracy(self) -> float | None:
        """The share of samples that the quantised program gets right; None without labels."""
        return None if self.right is None else self.right / self.compared

    @property
    def accuracy_in_float(self) -> float | None:
        """The same of the float program."""
        return None if self.right_in_float is None else self.right_in_float / self.compared

    def __str__(self) -> str:
        parts = [f"{self.decibels:.1f} dB"]
        if self.share is not None:
            parts.insert(0, f"top-1 agreement {self.share:.2%} of {self.compared}")
        if self.accuracy is not None:
            parts.insert(0, f"accuracy {self.accuracy_in_float:.2%} -> {self.accuracy:.2%}")
        if self.not_finite:
            parts.append(f"{self.not_finite} elements are not finite")
        return f"{self.name}: {', '.join(parts)}"


@dataclass
class Judged:
    """The agreement of each output, over all samples.

    Attributes:
        samples: how many samples were judged.
    """

    outputs: dict[str, Agreement] = field(default_factory=dict[str, Agreement])
    samples: int = 0

    @property
    def main(self) -> Agreement | None:
        """The first output that is a list of classes, else the first output."""
        every = list(self.outputs.values())
        return next((each for each in every if each.compared), every[0] if every else None)


def judged(before: Run, after: Run, units: Units, tell: Callable[[str], None]) -> Judged:
    """Run two programs on the same samples, and compare their outputs."""
    found = Judged()
    for inputs, first, left in units.runs():
        tell(f"judge {first + left} of {units.count}")
        labels = None if units.labels is None else units.labels[first : first + left]
        compare(found, before(inputs), after(inputs), left if units.batch else 0, labels)
    return found


def compare(
    found: Judged,
    wanted: Mapping[str, Array],
    given: Mapping[str, Array],
    left: int,
    labels: NDArray[np.int64] | None,
) -> None:
    """Add the outputs of one run.

    Args:
        left: how many samples of the batch count; 0 if a run is one sample.
    """
    found.samples += left or 1
    for name, expected in wanted.items():
        if expected.dtype.kind not in "fiu" and expected.dtype.name != "bfloat16":
            continue
        pair = [each.astype(np.float64) for each in (expected, given[name])]
        if left and expected.ndim:
            pair = [each[:left] for each in pair]
        float_one, other = pair
        own = found.outputs.setdefault(name, Agreement(name))
        finite = np.isfinite(float_one) & np.isfinite(other)
        own.not_finite += int((~finite).sum())
        own.signal += float(np.square(float_one[finite]).sum())
        own.noise += float(np.square((float_one - other)[finite]).sum())
        if expected.ndim != 2 or expected.shape[1] < 2 or expected.dtype.kind in "iu":
            continue
        best, best_other = float_one.argmax(1), other.argmax(1)
        own.compared += len(best)
        own.agreed += int((best == best_other).sum())
        if labels is not None and len(labels) == len(best):
            own.right_in_float = (own.right_in_float or 0) + int((best == labels).sum())
            own.right = (own.right or 0) + int((best_other == labels).sum())
