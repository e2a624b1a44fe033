"""Whether a run was right: its outputs against fp64, and every operation within its bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..backends.check import OpCheck
from ..backends.machine import Machine
from ..backends.reference import run_reference
from .arrays import Array
from .executable import MACHINE, Executable

NN = "nn"
"""The level whose meaning the reference gives."""

TOLERANCE = 2e-3
"""The largest error of an output allowed, over the output's largest value. Source: five runtimes
agree on the light networks to 6e-4."""


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    error: the largest of an output, over its largest value; None if the program has no nn level to
    take a reference from. checked: operations held to their bounds. ratio: the largest error of
    any of their results, over its bound. not_finite: how many elements of the outputs are not, of
    how many, or "". problem: what is outside, or "".
    """

    error: float | None
    checked: int = 0
    ratio: float = 0.0
    problem: str = ""
    not_finite: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing was outside its bound."""
        return not self.problem

    @property
    def text(self) -> str:
        """For people."""
        whole = "no reference" if self.error is None else f"{self.error:.1e} of the largest value"
        if self.not_finite:
            whole = f"{whole}; {self.not_finite}"
        if not self.checked:
            return whole
        return f"{whole}; {self.checked} operations, {self.ratio:.3f} of a bound at most"


def check_run(
    exe: Executable, inputs: Mapping[str, Array], outputs: Mapping[str, Array], at: str
) -> Verdict:
    """Compare a first run's outputs with fp64; for the machine's, look into every operation too.

    Each vertex set is held to its bound on the operands that it really received, in a run of its
    own; a whole network's bound would say nothing.
    Outputs that are not finite are a problem unless an input is not: an infinity that the machine
    and the reference both reach says nothing of the distance between them.
    """
    error, problem = None, ""
    not_finite = _not_finite(outputs)
    if not_finite and not _not_finite(inputs):
        problem = f"{not_finite}, of finite inputs: nothing to compare"
    if NN in exe.levels:
        reference = run_reference(exe.module_at(NN), inputs).outputs
        errors = {name: relative_error(outputs[name], reference[name]) for name in reference}
        worst = max(errors, key=lambda name: errors[name], default="")
        error = errors.get(worst, 0.0)
        if not error <= TOLERANCE:
            problem = f"output {worst!r}: off by {error:.3g} of its largest value"
            problem += f"; {TOLERANCE:g} is allowed"
    if at != MACHINE:
        return Verdict(error, problem=problem, not_finite=not_finite)
    look = OpCheck()
    Machine(exe.module_at(MACHINE), exe.target, observers=[look]).run(inputs)
    found = str(look.first or problem)
    return Verdict(error, look.checked, look.largest_ratio, found, not_finite)


def _not_finite(arrays: Mapping[str, Array]) -> str:
    """How many of all elements are not finite, or "" if all are."""
    count = sum(int(np.count_nonzero(~np.isfinite(each))) for each in arrays.values())
    size = sum(each.size for each in arrays.values())
    return f"{count} of {size} elements are not finite" if count else ""


def relative_error(actual: Array, expected: Array) -> float:
    """The largest difference over the largest expected magnitude; inf where only one is finite."""
    if actual.size == 0:
        return 0.0
    if expected.dtype.kind in "biu":
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    got, want = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    largest = np.abs(want[finite]).max()
    difference = np.abs(got[finite] - want[finite]).max()
    if np.isnan(difference):
        return float("inf")
    return float(difference / largest) if largest else float(difference)
