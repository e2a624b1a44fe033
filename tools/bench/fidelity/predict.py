"""Predictions of measured cycles, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from ....backends.target import Target
from ....ir.support.on_step import OnStep, ignore_step
from . import network, planned, schedule, sparse, stencil, timed, vertices
from .cases import (
    FAMILIES,
    Case,
    Convolution,
    Elementwise,
    Network,
    Product,
    Schedule,
    SparseProduct,
    SpeedUp,
    Stencil,
    Triad,
    Vertex,
)
from .measured import Measurement, Skipped
from .units import Unclear

PREDICT: Mapping[type[Case], Callable[[Any, Target], dict[str, float]]] = {
    Vertex: vertices.vertex,
    Elementwise: vertices.elementwise,
    Triad: vertices.triad,
    Product: planned.product,
    Convolution: planned.convolution,
    Stencil: stencil.predicted,
    SparseProduct: sparse.product,
    SpeedUp: sparse.speed_up,
    Network: network.network,
    Schedule: schedule.schedule,
}
"""The function that predicts each kind of case from the case and the target: cycles by phase, or a
speed-up."""

LEFT_OUT: Mapping[type[Case], Callable[[Any, Target], dict[str, float]]] = {Network: network.host}
"""The function that prices what the prediction of a kind of case leaves out, in the same form."""


def predict(case: Case, target: Target) -> dict[str, float]:
    """The predicted cycles of a case on a machine, by phase.

    Raises Unclear if the machine has no codelet for the case.
    """
    phases = PREDICT[type(case)](case, target)
    if not isfinite(sum(phases.values())):
        raise Unclear(f"target {target.called}: no codelet for {case}")
    return phases


@dataclass(frozen=True)
class Prediction:
    """A measurement, and its predicted cycles by phase.

    Attributes:
        phases: predicted with the fitted constants.
        without: predicted without them.
        left_out: priced, but no part of the prediction.
    """

    measurement: Measurement
    phases: Mapping[str, float]
    without: Mapping[str, float]
    left_out: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def cycles(self) -> float:
        """The predicted cycles, with the fitted constants."""
        return sum(self.phases.values())

    @property
    def error(self) -> float:
        """Predicted over measured cycles, minus 1: 0.02 is 2 % too many."""
        return _error(self.cycles, self.measurement.cycles)

    @property
    def error_without(self) -> float:
        """The error without the fitted constants."""
        return _error(sum(self.without.values()), self.measurement.cycles)


def _error(predicted: float, measured: float) -> float:
    if predicted == measured:
        return 0.0
    return predicted / measured - 1 if measured else inf


def predictions(
    measurements: Sequence[Measurement],
    on_step: OnStep = ignore_step,
    *,
    timetables: bool = False,
) -> tuple[list[Prediction], list[Skipped]]:
    """The prediction of each row, and the rows that cannot be priced.

    Args:
        on_step: called with the name of each row.
        timetables: whether timetables price exchanges, where messages are known.
    """
    if timetables:
        measurements = [replace(m, target=timed.with_timetables(m.target)) for m in measurements]
    found: list[Prediction] = []
    skipped: list[Skipped] = []
    for each in measurements:
        on_step(each.name)
        try:
            phases = predict(each.case, each.target)
            without = predict(each.case, each.target.uncalibrated())
        except Unclear as error:
            skipped.append(Skipped(each.name, each.family, str(error)))
        else:
            price = LEFT_OUT.get(type(each.case))
            left_out = price(each.case, each.target) if price else dict[str, float]()
            found.append(Prediction(each, phases, without, left_out))
    return found, skipped


@dataclass(frozen=True)
class Statistics:
    """Statistics of the absolute errors of a family's rows, as fractions."""

    rows: int
    median: float
    p90: float
    worst: float

    @staticmethod
    def of(errors: Sequence[float]) -> Statistics:
        """The statistics of one or more errors."""
        sizes = np.abs(np.array(errors))
        # The percentile is the error of some row, never interpolated between two.
        p90 = float(np.percentile(sizes, 90, method="higher"))
        median = float(np.median(sizes))
        return Statistics(len(errors), median, p90, float(sizes.max()))


NEAR_ONE = (0.9, 1.1)
"""Speed-ups that are no decision between a sparse and a dense product."""


def same_decisions(found: Sequence[Prediction]) -> tuple[int, int]:
    """In how many rows of speed-ups the faster product is predicted to be faster, and of how many.

    Rows whose measured speed-up is near one are left out.
    """
    low, high = NEAR_ONE
    told = [
        (each.cycles > 1) == (each.measurement.cycles > 1)
        for each in found
        if isinstance(each.measurement.case, SpeedUp) and not low <= each.measurement.cycles <= high
    ]
    return sum(told), len(told)


def by_family(found: Sequence[Prediction]) -> dict[str, tuple[Statistics, Statistics]]:
    """For each family that has rows: its errors with the fitted constants, and without them."""
    families: dict[str, tuple[Statistics, Statistics]] = {}
    for family in FAMILIES:
        rows = [each for each in found if each.measurement.family == family]
        if rows:
            families[family] = (
                Statistics.of([each.error for each in rows]),
                Statistics.of([each.error_without for each in rows]),
            )
    return families
