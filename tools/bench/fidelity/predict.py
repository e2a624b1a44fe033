"""From a measurement to what abele says it takes, and how far that is off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from ....backends.target import Target
from . import planned, sparse, stencil, vertices
from .cases import (
    FAMILIES,
    Case,
    Convolution,
    Elementwise,
    Product,
    SparseProduct,
    Stencil,
    Triad,
    Vertex,
)
from .rows import Measurement, Skipped
from .units import Unclear

PREDICT: Mapping[type[Case], Callable[[Any, Target], dict[str, float]]] = {
    Vertex: vertices.vertex,
    Elementwise: vertices.elementwise,
    Triad: vertices.triad,
    Product: planned.product,
    Convolution: planned.convolution,
    Stencil: stencil.predicted,
    SparseProduct: sparse.product,
}
"""What prices each kind of case: cycles by phase, from its shapes, types and target alone."""


def predict(case: Case, target: Target) -> dict[str, float]:
    """The cycles of a case on a machine, by phase.

    Raises Unclear for one that the machine has no codelet for.
    """
    phases = PREDICT[type(case)](case, target)
    if not isfinite(sum(phases.values())):
        raise Unclear(f"target {target.name}: no codelet for {case}")
    return phases


@dataclass(frozen=True)
class Prediction:
    """A measurement, and its predicted cycles by phase.

    without: the same, with no fitted constant.
    """

    measurement: Measurement
    phases: Mapping[str, float]
    without: Mapping[str, float]

    @property
    def cycles(self) -> float:
        """Predicted, calibrated."""
        return sum(self.phases.values())

    @property
    def error(self) -> float:
        """Predicted over measured, less one: 0.02 for 2 % too much."""
        return _error(self.cycles, self.measurement.cycles)

    @property
    def error_without(self) -> float:
        """The same, with no fitted constant."""
        return _error(sum(self.without.values()), self.measurement.cycles)


def _error(predicted: float, measured: float) -> float:
    if predicted == measured:
        return 0.0
    return predicted / measured - 1 if measured else inf


def predictions(
    measurements: Sequence[Measurement], tell: Callable[[str], None] = lambda _: None
) -> tuple[list[Prediction], list[Skipped]]:
    """What abele says of each row, and the rows that it cannot price. tell: hears their names."""
    found: list[Prediction] = []
    skipped: list[Skipped] = []
    for each in measurements:
        tell(each.name)
        try:
            phases = predict(each.case, each.target)
            without = predict(each.case, each.target.uncalibrated())
        except Unclear as error:
            skipped.append(Skipped(each.name, each.family, str(error)))
        else:
            found.append(Prediction(each, phases, without))
    return found, skipped


@dataclass(frozen=True)
class Statistics:
    """Errors of a family's rows, as fractions, whichever way they go."""

    rows: int
    median: float
    p90: float
    worst: float

    @staticmethod
    def of(errors: Sequence[float]) -> Statistics:
        """errors: one or more."""
        sizes = np.abs(np.array(errors))
        # The ninetieth of a hundred is an error of a row, never one between two.
        p90 = float(np.percentile(sizes, 90, method="higher"))
        median = float(np.median(sizes))
        return Statistics(len(errors), median, p90, float(sizes.max()))


def by_family(found: Sequence[Prediction]) -> dict[str, tuple[Statistics, Statistics]]:
    """For each family that has rows: its errors calibrated, and with no fitted constant."""
    families: dict[str, tuple[Statistics, Statistics]] = {}
    for family in FAMILIES:
        rows = [each for each in found if each.measurement.family == family]
        if rows:
            families[family] = (
                Statistics.of([each.error for each in rows]),
                Statistics.of([each.error_without for each in rows]),
            )
    return families
