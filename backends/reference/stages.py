"""The stages that follow a merged value: their values, and how errors pass through them.

The error of a stage is its deviation at the values and ends of the intervals v - e .. v + e that
its operands are in (see `Mathematics.ends_decide`), or by the steepest slope of the function, and u
times its condition there: u is the unit roundoff of the dtype that the chain computes in. An
interval around a pole has no bound. Rounding changes no sign: if no value before was negative, the
interval ends at 0, so that the square root of a sum of squares has a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ...dialects.dtypes import dtype_named
from ...dialects.structured import Body, Stage
from ...ir.support.number_kinds import is_floating
from ..codelets.conversion import FLOAT64, Doubles, converted, float_limits
from ..codelets.scalar import scalar_function
from .gather import Array
from .roles import Roles
from .rounding import as_kind_of, rounding_step

WithOperands = tuple[Stage, list[Array]]
"""A stage with its further operands in float64, which broadcast to the merged value."""


def stages_at(stages: Sequence[WithOperands], place: tuple[slice, ...]) -> list[WithOperands]:
    """Stages with their further operands restricted to a region of the result."""
    return [(stage, [_piece(each, place) for each in further]) for stage, further in stages]


def _piece(array: Array, place: tuple[slice, ...]) -> Array:
    where = zip(array.shape, place, strict=True)
    return array[tuple([slice(None) if n == 1 else region for n, region in where])]


def stage_value(stage: Stage, arguments: Sequence[Array]) -> Doubles:
    """The value of a stage in float64; truth values are 0 and 1."""
    if stage.element:
        (value,) = arguments
        return converted(converted(value, dtype_named(stage.element)), FLOAT64)
    made = scalar_function(stage.function).apply(stage.parameters, *arguments)
    return made.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class _Within:
    """An interval: a correct machine's value is within `error` of `value`, and not below `least`.

    Attributes:
        is_truth: whether it is a truth value, which is 0 or 1 where it has an error.
    """

    value: Doubles
    error: Doubles
    least: Doubles
    is_truth: bool = False

    @cached_property
    def points(self) -> tuple[Doubles, ...]:
        """The value, and the ends of its interval if it has an error anywhere."""
        rough = self.error > 0
        if not rough.any():
            return (self.value,)
        if self.is_truth:
            return self.value, np.where(rough, 0.0, self.value), np.where(rough, 1.0, self.value)
        low = np.maximum(np.nextafter(self.value - self.error, -np.inf), self.least)
        high = np.nextafter(self.value + self.error, np.inf)
        return self.value, np.where(rough, low, self.value), np.where(rough, high, self.value)


def stage_factors(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The factors of a stage's own error, and of its whole error, that cover the reference's
    errors.

    Args:
        dtype: the dtype that the chain computes in.
    """
    return (4.0, 1.0) if dtype == np.float64 else (1.0, 1 + 2.0**-20)


def is_whole_power(stage: Stage) -> bool:
    """Whether a stage is a power whose interval ends decide for a base of any sign."""
    return bool(stage.parameters) and all(p >= 0 and p.is_integer() for p in stage.parameters)


def bounded_stages(
    roles: Roles,
    stages: Sequence[WithOperands],
    value: Array,
    error: Doubles,
    least: Doubles,
) -> tuple[Array, Doubles]:
    """A value and its error after the stages of a chain are applied and the result is rounded.

    Args:
        value, error: of the value before the chain.
        least: a lower bound of that value on any correct machine.
    """
    dtype = roles.result_dtype
    limits = float_limits(dtype)
    elements = Body("identity", then=tuple(stage for stage, _ in stages)).chained_elements[1:]
    value = value.astype(np.float64, copy=False)
    own, slack = stage_factors(dtype)
    unknown = np.zeros(value.shape, bool)
    known = [_Within(value, error, least, roles.function.boolean)]
    for (stage, further), element in zip(stages, elements, strict=True):
        function = scalar_function(stage.function)
        exact = [_Within(each, np.zeros(()), np.zeros(())) for each in further]
        arguments = stage.arguments(known, exact)
        lost, rough = np.zeros(value.shape, bool), np.zeros(value.shape, bool)
        for at, each in enumerate(arguments):
            if each in exact:
                continue
            # A value that overflowed on the way may have become NaN, whatever follows.
            reach = np.abs(each.value) + each.error
            lost |= np.isinf(each.error) | (np.isfinite(each.value) & (reach >= limits.largest))
            if at in function.poles:
                lost |= (each.error > 0) & (np.abs(each.value) <= each.error)
            if at in function.positive and not is_whole_power(stage):
                lost |= (each.error > 0) & (each.value <= each.error)
            unknown |= lost & np.isfinite(each.value)
            rough |= each.error > 0
        results: list[Doubles] = []
        condition, nothing_below = np.zeros(value.shape), np.ones(value.shape, bool)
        for points in product(*(each.points for each in arguments)):
            results.append(stage_value(stage, points))
            own_condition = function.condition(
                stage.parameters, *points, roundoff=limits.roundoff, result=results[-1]
            )
            nothing_below &= results[-1] >= limits.roundoff * own_condition
            np.maximum(condition, own_condition, out=condition)
        value = results[0]
        deviation = np.zeros(value.shape)
        if function.steepest is not None:
            deviation = deviation + function.steepest * sum(each.error for each in arguments)
            nothing_below &= False
        else:
            for there in results[1:]:
                np.maximum(deviation, np.where(rough, np.abs(there - value), 0.0), out=deviation)
        if stage.element == "i1" or function.meets:
            # If the interval contains 0, or an equal number, evaluate the function there too.
            gap = arguments[0].value - (arguments[1].value if function.meets else 0.0)
            reach = sum(each.error for each in arguments)
            deviation = np.maximum(deviation, (reach > 0) & (np.abs(gap) <= reach))
        rounding = limits.roundoff * condition + np.where(condition > 0, limits.smallest_normal, 0)
        error = (deviation + own * rounding) * slack
        error = np.where(lost | np.isnan(error), np.inf, error)
        least = np.where(nothing_below, 0.0, -np.inf)
        known.append(_Within(value, error, least, element == "i1"))
    # An infinity or NaN is certain only if no value that may have overflowed is involved.
    value = np.where(unknown & ~np.isfinite(value), 0.0, value)
    if roles.final_dtype == dtype:
        return value, error
    if not is_floating(roles.final_dtype):
        return as_kind_of(value, roles.final_dtype), np.ceil(error)
    step = rounding_step(value, error, roles.final_dtype, error == 0)
    return value, (error + step) * (1 + 2.0**-20)
