"""The error bound of a result, from the values that its points are merged into.

u is the unit roundoff of the computing dtype (float32, or float64 for such operands), of the
accumulator, or of the result.

- a function: u times its condition (`ScalarFunction.condition`);
- a sum of k: ((1+u)^k - 1) times the sum of absolute values: for products about (k+1) u |A||B|;
- a product of k: the same, of the absolute product;
- a maximum or minimum: the largest error of the compared values;
- a scan: the bound of the sum or product of the elements up to each place; a maximum, a minimum or
  a sort has no error;
- rounding to the result's dtype: u |r|, or none if an exact function gives values that the dtype
  holds.

The stages of a chain add errors of their own (`stages.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.support.number_kinds import is_floating
from ..codelets.conversion import Doubles, float_limits
from .gather import Array, boxes
from .parts import Parts
from .roles import Roles
from .rounding import as_kind_of, rounding_step
from .stages import WithOperands, bounded_stages, stages_at

PIECE = 1 << 15
"""Elements whose bounds are computed at a time, so that intermediate arrays stay in a cache."""


@dataclass(frozen=True)
class Merging:
    """The quantities from which the error of merging many terms, in any order, is computed.

    Attributes:
        u: the unit roundoff of the computing dtype.
        tiny: its underflow error.
        terms: the number of values merged into each result.
        growth: the relative error of merging them.
        lost: the underflow error of the accumulator.
        largest: the largest number of the accumulator.
        several: whether merging rounds: there is more than one term, or one in a narrow sum.
    """

    u: float
    tiny: float
    terms: NDArray[np.int64] | int
    growth: Doubles
    lost: Doubles
    largest: float
    several: Array

    @staticmethod
    def of(roles: Roles, parts: Parts, accumulator: np.dtype[Any]) -> Merging:
        """The quantities for a result whose sums and products are kept in the accumulator's
        dtype."""
        terms, limits = parts.terms, float_limits(accumulator)
        computing = float_limits(roles.computing)
        tiny = 0.0 if roles.function.is_exact else computing.smallest_normal
        several = np.greater(terms, 1)
        steps = terms * np.log1p(limits.roundoff)
        if limits.roundoff > computing.roundoff:
            # The machine adds in the computing dtype, and rounds after each pass, also a single
            # term.
            several = np.greater(terms, 0)
            roundings = np.minimum(terms, -(-roles.terms // roles.terms_of_a_pass))
            error = 2 * roles.steps_of_a_rounding * limits.roundoff
            steps = roundings * np.log1p(error) + terms * np.log1p(computing.roundoff)
        growth = np.where(several, np.expm1(steps), 0.0)
        lost = several * limits.smallest_normal
        return Merging(computing.roundoff, tiny, terms, growth, lost, limits.largest, several)


def _merging_error(
    roles: Roles, parts: Parts, accumulator: np.dtype[Any]
) -> tuple[Doubles, NDArray[np.bool_]]:
    """The error before the result is rounded, and where there is none."""
    value, size, error = parts.value, parts.size, parts.error
    assert size is not None
    assert error is not None
    each = Merging.of(roles, parts, accumulator)
    k, u, tiny, growth, lost = each.terms, each.u, each.tiny, each.growth, each.lost
    match roles.merged_by:
        case "sum":
            total = u * (size if roles.is_contraction else error) + k * tiny
            total = total + growth * (size + total) + lost
        case "prod":
            total = np.maximum(error - np.abs(value), 0.0) + growth * error
            total = total + k * (tiny + lost) * size
        case _:
            total = u * error + np.where(error > 0, tiny, 0.0)
            return total, total == 0
    overflows = size * (1 + growth) >= each.largest
    exact = np.zeros(value.shape, bool)
    if roles.along is not None:
        # The first elements of a scan are copied, or are the identity.
        exact = np.broadcast_to(~each.several, value.shape)
        total = np.where(exact, 0.0, total)
    return np.where(overflows & each.several, np.inf, total), exact


@dataclass(frozen=True)
class Merged:
    """A merged result before stages are applied and it is rounded.

    Attributes:
        accumulator: the dtype in which sums and products are kept.
        stages: the stages of the chain, each with its further operands in float64, which broadcast
            to the value.
    """

    roles: Roles
    parts: Parts
    accumulator: np.dtype[Any]
    stages: Sequence[WithOperands]

    def bounded(self) -> tuple[Array, Doubles]:
        """The result after the chain and its bound, both over the kept dimensions."""
        with np.errstate(all="ignore"):
            return self._by_pieces()

    def at(self, place: tuple[slice, ...]) -> Merged:
        """The merged values in a region of the result."""
        return replace(self, parts=self.parts.at(place), stages=stages_at(self.stages, place))

    def _by_pieces(self) -> tuple[Array, Doubles]:
        """The result of `bounded`, computed piece by piece."""
        shape = self.parts.value.shape
        if self.parts.value.size <= PIECE:
            return self._as_one_piece()
        value: Array | None = None
        bound = np.empty(shape)
        for box in boxes(shape, [range(len(shape))], PIECE):
            place = tuple(slice(*each) for each in box)
            found, bound[place] = self.at(place)._as_one_piece()
            if value is None:
                value = np.empty(shape, found.dtype)
            value[place] = found
        assert value is not None
        return value, bound

    def _as_one_piece(self) -> tuple[Array, Doubles]:
        """The result of `bounded`, computed for all elements at once."""
        value, bound = _finished(self.roles, self.parts, self.accumulator)
        if not self.stages:
            return value, bound
        least = _least(self.roles, self.parts)
        return bounded_stages(self.roles, self.stages, value, bound, least)


def _finished(roles: Roles, parts: Parts, accumulator: np.dtype[Any]) -> tuple[Array, Doubles]:
    """The result converted to its kind (float, integer or bool), and the whole bound."""
    value = as_kind_of(parts.value, roles.result_dtype)
    if parts.size is None or roles.function.boolean:
        return value, _rounding(value, np.zeros(value.shape), roles, np.ones(value.shape, bool))
    error, exact = _merging_error(roles, parts, accumulator)
    if not is_floating(roles.result_dtype):
        # An error before the truncation may change the result by one more.
        return value, np.where(exact, 0.0, np.ceil(error))
    return value, _rounding(value, error, roles, exact)


def _least(roles: Roles, parts: Parts) -> Doubles:
    """A lower bound of the value before the chain on any correct machine: 0, or -inf."""
    value, size, error = parts.value, parts.size, parts.error
    nothing_below = np.zeros(value.shape, bool)
    if size is not None and error is not None:
        match roles.merged_by:
            case "sum":
                # Computed terms have the sign of the exact terms unless their error is absolute.
                nothing_below = (value >= size) & (roles.function.sensitivity is None)
            case "prod":
                pass
            case _:
                nothing_below = value >= float_limits(roles.computing).roundoff * error
    return np.where(nothing_below, 0.0, -np.inf)


def _rounding(value: Array, error: Doubles, roles: Roles, exact: NDArray[np.bool_]) -> Doubles:
    """An error plus the error of rounding to the result's dtype."""
    dtype = roles.result_dtype
    if not is_floating(dtype):
        return error
    step = rounding_step(value, error, dtype, exact)
    if roles.rounds_once:
        step = np.where(exact, step, 0.0)
    bound = (error + step) * roles.bound_factor
    return np.where(np.isnan(bound), np.inf, bound)
