"""The results of combiners of several values in float64, and the error bounds of a correct machine.

Every set of points has columns: one per element, or one per merged set of members, and one for the
members of an earlier step. No code is shared with the codelets.

Bounds hold for any order of merging. k is the number of columns, u the unit roundoff of the
computing dtype, g = (1+u)^k - 1 in each case with a few more steps per column:

- an extreme and its index: none, because comparisons are exact;
- a mean: e = g max |x|;
- a variance v: wrong means of sets are right means of numbers that are each moved by at most e, and
  moving all numbers by e moves the root of v by at most e. So g (v' + ...) + 2 sqrt(v) e + e^2;
- a sum of exp(x - m): every term has the error u (m - x) of rounding its exponents, and the errors
  of at most k functions and products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...dialects.combiners import MEMBERS, Extreme
from ...dialects.structured import Structure
from ...ir.geometry.space import NO_INDEX, positions_of
from ...ir.support.number_kinds import is_floating
from ..codelets.conversion import Doubles, compute_dtype, converted, float_limits
from ..codelets.scalar import scalar_function
from .gather import Array, boxes, gathered
from .rounding import rounding_step

BOX_ELEMENTS = 1 << 21
"""Points that are evaluated at once."""

STEPS = 6.0
"""The most rounded operations per column for which a bound allows."""


@dataclass(frozen=True)
class _Sets:
    """The columns of some sets: (sets, columns) each.

    Attributes:
        members: of each column; elements that are not lifted yet are the only member.
        positions: of elements, NO_INDEX for elements that do not count.
        left: the members of an earlier step, (sets, 1) each. roundoff: of the computing dtype.
    """

    members: tuple[Array, ...]
    positions: Array | None
    left: tuple[Array, ...]
    lifts: bool
    dtype: np.dtype[Any]

    @property
    def limits(self) -> Any:
        """The limits of the computing dtype."""
        floating = compute_dtype(self.dtype) if is_floating(self.dtype) else np.dtype(np.float32)
        return float_limits(floating)


Evaluated = tuple[tuple[Array, Doubles], ...]
"""For each member, its value and its bound: (sets,) each."""


def evaluate_combined(
    structure: Structure,
    operands: Sequence[Array],
    result_dtype: np.dtype[Any],
    result_shape: Sequence[int],
    result: int,
) -> tuple[Array, Doubles]:
    """One of the results of a body with a combiner of several values, and its bound.

    The value is float64, not rounded; an integer or bool if result_dtype is of that kind. Where
    elements are infinite, moments may be anything.
    Raises ValueError if the operands do not fit the space.
    """
    value, bound = _evaluated(structure, operands, result, _EVALUATE[_kind(structure)])
    result_dtype = np.dtype(result_dtype)
    if not is_floating(result_dtype):
        wide = np.uint64 if result_dtype == np.uint64 else np.int64
        value = converted(value, np.dtype(wide if result_dtype.kind in "iu" else result_dtype))
        return value.reshape(result_shape), bound.reshape(result_shape)
    step = rounding_step(value, bound, result_dtype, bound == 0)
    slack = 2 if result_dtype == np.float64 else 1 + 2.0**-20
    bound = (bound + np.where(np.isfinite(value), step, 0.0)) * slack
    bound = np.where(np.isnan(bound), np.inf, bound)
    return value.astype(np.float64).reshape(result_shape), bound.reshape(result_shape)


def combined_deviation(
    structure: Structure, operands: Sequence[Array], errors: Sequence[Doubles], result: int
) -> Doubles:
    """The change of one of the results that the operands' errors can cause, in its viewed shape.

    Infinite where nothing is known, and for an index that may differ.
    """
    shape = structure.space.results[result].shape
    if structure.body.function not in (MEMBERS, "identity"):
        return np.full(shape, np.inf)
    deviate = _DEVIATE[_kind(structure)]

    def both(sets: _Sets, further: _Sets) -> Evaluated:
        return tuple((each, each) for each in deviate(structure, sets, further))

    found, _ = _evaluated(structure, operands, result, lambda _, s, e: both(s, e), errors)
    return np.where(np.isnan(found), np.inf, found).reshape(shape)


Evaluate = Callable[[Structure, _Sets, Any], Evaluated]


def _evaluated(
    structure: Structure,
    operands: Sequence[Array],
    result: int,
    evaluate: Evaluate,
    errors: Sequence[Doubles] = (),
) -> tuple[Array, Doubles]:
    """One result and its bound, or its deviation, from a function of sets: two arrays, in viewed
    shape.
    """
    space = structure.space
    shape = space.results[result].shape
    found: tuple[Array, Doubles] | None = None
    kept = [axis.terms[0][0] for axis in space.results[result].axes if axis.terms]
    sizes = [space.dims[d].size for d in kept]
    with np.errstate(all="ignore"):
        for box, place in _pieces(structure, kept):
            sets = _sets_of(structure, operands, box, kept, fills=True)
            further = _sets_of(structure, errors, box, kept, fills=False) if errors else None
            value, bound = evaluate(structure, sets, further)[result]
            if found is None:
                found = np.zeros(sizes, value.dtype), np.zeros(sizes)
            here = tuple(b - a for a, b in (box[d] for d in kept))
            found[0][place] = value.reshape(here)
            found[1][place] = bound.reshape(here)
    value, bound = found or (np.zeros(shape), np.zeros(shape))
    return value.reshape(shape), bound.reshape(shape)


def _pieces(structure: Structure, kept: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    """Boxes of points that contain all merged points, each with its place in the result."""
    sizes = structure.space.sizes
    if any(sizes[d] == 0 for d in kept):
        return
    inner = max(prod(n for d, n in enumerate(sizes) if d not in kept), 1)
    for box in boxes(sizes, [kept], max(BOX_ELEMENTS // inner, 1)):
        # The ellipsis keeps arrays of rank 0 arrays.
        yield box, (*(slice(*box[d]) for d in kept), ...)


def _sets_of(
    structure: Structure,
    operands: Sequence[Array],
    box: Any,
    kept: Sequence[int],
    *,
    fills: bool,
) -> _Sets:
    """The sets of a box, one per point of the kept dimensions.

    Args:
        fills: whether padding is filled.
    """
    space, body = structure.space, structure.body
    if len(operands) != structure.arity or len(space.operands) != structure.arity:
        raise ValueError(
            f"{body.function} {body.combiner}: {len(operands)} operands; need {structure.arity}"
        )
    sizes = [b - a for a, b in box]
    merged = [d for d in range(len(sizes)) if d not in kept]
    count = prod(sizes[d] for d in kept)

    def rows(points: Array, dims: Sequence[int]) -> Array:
        whole = [n if d in kept or d in dims else 1 for d, n in enumerate(sizes)]
        ordered = np.broadcast_to(points, whole).transpose([*kept, *merged])
        return ordered.reshape(count, prod(whole[d] for d in merged))

    def read(i: int, dims: Sequence[int]) -> Array:
        access = space.operands[i]
        tensor = operands[i]
        if tensor.size != prod(access.shape):
            raise ValueError(f"operand {i}: shape {tensor.shape}; the space needs {access.shape}")
        points = gathered(tensor.reshape(access.shape), access, box)
        if not fills:
            inside = gathered(np.ones(access.shape, bool), _plain(access), box)
            points = np.where(inside, points, 0.0)
        return rows(_wide(points), dims)

    own = body.function_arity
    dtype = operands[0].dtype
    left = tuple(read(i, ()) for i in range(own, structure.own_operands))
    if body.function == MEMBERS:
        members = tuple(read(i, merged) for i in range(own))
        return _Sets(members, None, left, False, dtype)
    values = [read(i, merged) for i in range(own)]
    lifted = scalar_function(body.function).apply(body.parameters, *values) if fills else values[0]
    places: Array | None = None
    if space.positions:
        points: list[Array] = [
            np.arange(a, b).reshape([-1 if e == d else 1 for e in range(len(sizes))])
            for d, (a, b) in enumerate(box)
        ]
        places = rows(positions_of(space.positions[0], points), merged)
    return _Sets((lifted,), places, left, True, dtype)


def _plain(access: Any) -> Any:
    """A map whose padding is 0."""
    return type(access)(access.axes, 0.0)


def _wide(array: Array) -> Array:
    """Floats as float64; booleans as int8, as the machine compares them."""
    if is_floating(array.dtype):
        return array.astype(np.float64)
    return array.astype(np.int8) if array.dtype == np.bool_ else array


def _kind(structure: Structure) -> str:
    combiner = structure.body.tuple_combiner
    assert combiner is not None
    return "extreme" if isinstance(combiner, Extreme) else combiner.name


def _exact(*values: Array) -> Evaluated:
    return tuple((value, np.zeros(value.shape)) for value in values)


# Extremes


def _extreme_columns(structure: Structure, sets: _Sets) -> tuple[Extreme, Array, Array, Array]:
    """The combiner, the values of all columns, their positions, and which of them count."""
    combiner = structure.body.tuple_combiner
    assert isinstance(combiner, Extreme)
    values = sets.members[0]
    if sets.lifts:
        assert sets.positions is not None
        places = sets.positions
        if values.dtype.kind == "f" and not combiner.nan_wins:
            values = np.where(np.isnan(values), -np.inf, values)
    else:
        places = sets.members[1]
    counts = places != NO_INDEX
    if sets.left:
        value, place = sets.left
        values = np.concatenate((values, value), axis=1)
        places = np.concatenate((places, place), axis=1)
        counts = np.concatenate((counts, np.ones(place.shape, bool)), axis=1)
    return combiner, values, places.astype(np.int64), counts


def _nowhere(combiner: Extreme, values: Array) -> tuple[Any, int]:
    """The value and the index of an empty set."""
    index = -1 if combiner.last else int(np.iinfo(np.int32).max)
    if values.dtype.kind == "f":
        return (-np.inf if combiner.largest else np.inf), index
    limits = np.iinfo(values.dtype)
    return (limits.min if combiner.largest else limits.max), index


def _extreme(structure: Structure, sets: _Sets, _: Any) -> Evaluated:
    combiner, values, places, counts = _extreme_columns(structure, sets)
    least, nowhere = _nowhere(combiner, values)
    nothing = np.array(least, values.dtype)
    seen = np.where(counts, values, nothing)
    if not seen.shape[1]:
        return _exact(np.full(len(seen), nothing), np.full(len(seen), nowhere))
    best = (np.max if combiner.largest else np.min)(seen, axis=1, keepdims=True)
    found = counts & ((seen == best) | (seen != seen))
    where = np.where(found, places, nowhere)
    index = (np.max if combiner.last else np.min)(where, axis=1)
    return _exact(best[:, 0], index)


def _extreme_deviation(structure: Structure, sets: _Sets, errors: _Sets) -> Sequence[Array]:
    combiner, values, places, counts = _extreme_columns(structure, sets)
    error = errors.members[0]
    if errors.left:
        error = np.concatenate((error, errors.left[0]), axis=1)
    if not values.shape[1]:
        return np.zeros(len(values)), np.zeros(len(values))
    sign = 1.0 if combiner.largest else -1.0
    wide = np.where(counts, sign * values.astype(np.float64), -np.inf)
    _, (index, _) = _extreme(structure, sets, None)
    mine = counts & (places == index[:, None])
    low = np.where(mine, wide - error, np.inf).min(axis=1)
    rivals = counts & ~mine & (wide + error >= low[:, None]) & (error + low[:, None] < np.inf)
    moved = error.max(axis=1, where=counts, initial=0.0)
    rough = moved > 0
    unsure = rough & (rivals.any(axis=1) | np.isnan(wide).any(axis=1) | np.isinf(moved))
    of_place = np.zeros(len(values))
    if not sets.lifts:
        given = errors.members[1]
        if errors.left:
            given = np.concatenate((given, errors.left[1]), axis=1)
        of_place = given.max(axis=1, initial=0.0)
    return moved, np.where(unsure, np.inf, of_place)


# Moments


def _moment_columns(sets: _Sets) -> tuple[Doubles, Doubles, Doubles]:
    """The counts, means and squared deviations of the columns; all elements together are one
    column.
    """
    if sets.lifts:
        assert sets.positions is not None
        inside = sets.positions != NO_INDEX
        values = np.where(inside, sets.members[0].astype(np.float64), 0.0)
        count = inside.sum(axis=1, keepdims=True).astype(np.float64)
        mean = values.sum(axis=1, keepdims=True) / np.where(count > 0, count, 1.0)
        squares = np.where(inside, np.square(values - mean), 0.0).sum(axis=1, keepdims=True)
        columns: list[tuple[Array, ...]] = [(count, mean, squares)]
    else:
        columns = [sets.members]
    if sets.left:
        columns.append(sets.left)
    counts, means, squares = (
        np.concatenate(each, axis=1).astype(np.float64) for each in zip(*columns, strict=True)
    )
    return counts, means, squares


def _total(sets: _Sets) -> tuple[Doubles, Doubles, Doubles]:
    """The count, the mean and the squared deviations of each whole set."""
    counts, means, squares = _moment_columns(sets)
    count = counts.sum(axis=1)
    share = np.where(count > 0, count, 1.0)
    mean = np.where(counts > 0, counts * means, 0.0).sum(axis=1) / share
    apart = np.where(counts > 0, counts * np.square(means - mean[:, None]), 0.0)
    return count, mean, squares.sum(axis=1) + apart.sum(axis=1)


def _finished_moments(
    structure: Structure, count: Doubles, values: Sequence[Doubles], unit: float
) -> Sequence[Doubles]:
    """Count, mean and squares, or mean and variance: of values, or of errors.

    Args:
        unit: the count's value in the first case, its error in the second.
    """
    mean, squares = values
    if structure.body.unfinished:
        return np.full(count.shape, unit) if unit == 0 else count, mean, squares
    return mean, squares / count


def _moments(structure: Structure, sets: _Sets, _: Any) -> Evaluated:
    count, mean, squares = _total(sets)
    u = sets.limits.roundoff
    columns = sets.members[0].shape[1] + len(sets.left[:1])
    growth = float(np.expm1((STEPS * columns + 10) * np.log1p(u)))
    largest = np.zeros(len(mean))
    counts = True if sets.positions is None else sets.positions != NO_INDEX
    own = np.where(counts, sets.members[0 if sets.lifts else 1].astype(np.float64), 0.0)
    for each in (own, *sets.left[1:2]):
        largest = np.maximum(largest, np.abs(each.astype(np.float64)).max(axis=1, initial=0.0))
    tiny = sets.limits.smallest_normal * (columns + 1)
    e = growth * largest + tiny
    n = np.maximum(count, 1.0)
    deviation = np.sqrt(np.maximum(squares, 0.0) / n)
    of_squares = n * (growth * np.square(deviation + e) + 2 * deviation * e + np.square(e))
    of_squares = of_squares + n * tiny
    values = _finished_moments(structure, count, (mean, squares), 1.0)
    bounds = _finished_moments(structure, n, (e, of_squares), 0.0)
    unknown = ~np.isfinite(mean) | ~np.isfinite(squares)
    unknown |= n * np.square(2 * largest) * (1 + growth) >= sets.limits.largest
    exact_count = structure.body.unfinished
    found: list[tuple[Array, Doubles]] = []
    for i, (value, bound) in enumerate(zip(values, bounds, strict=True)):
        if exact_count and i == 0:
            found.append((value, np.where(count * u < 0.5, 0.0, growth * count)))
            continue
        bound = np.where(unknown | np.isnan(bound), np.inf, bound)
        found.append((np.where(np.isfinite(value), value, 0.0), bound))
    return tuple(found)


def _moments_deviation(structure: Structure, sets: _Sets, errors: _Sets) -> Sequence[Array]:
    count, _, squares = _total(sets)
    n = np.maximum(count, 1.0)
    of_means = errors.members[0 if sets.lifts else 1]
    direct = np.zeros(len(n))
    if not sets.lifts:
        direct = errors.members[2].sum(axis=1)
    moved = of_means.max(axis=1, initial=0.0)
    if errors.left:
        moved = np.maximum(moved, errors.left[1][:, 0])
        direct = direct + errors.left[2][:, 0]
    counts = [e for e in (errors.members[0], *errors.left[:1]) if not sets.lifts]
    unsure = np.any([each.any(axis=1) for each in counts], axis=0) if counts else False
    deviation = np.sqrt(np.maximum(squares, 0.0) / n)
    of_squares = n * (2 * deviation * moved + np.square(moved)) + direct
    found = _finished_moments(structure, n, (moved, of_squares), 0.0)
    return [np.where(unsure, np.inf, each) for each in found]


# Sums of exponentials


def _exp_columns(sets: _Sets) -> tuple[Doubles, Doubles]:
    """The largest elements and the sums of exponentials of the columns."""
    largest = sets.members[0].astype(np.float64)
    if sets.lifts:
        sums = np.where(largest == -np.inf, 0.0, 1.0)
    else:
        sums = sets.members[1].astype(np.float64)
    if sets.left:
        largest = np.concatenate((largest, sets.left[0]), axis=1)
        sums = np.concatenate((sums, sets.left[1]), axis=1)
    return largest, sums


def _exp_parts(sets: _Sets) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """The largest element of each set; for each column, its distance from it, its factor and its
    sum.
    """
    values, sums = _exp_columns(sets)
    largest = values.max(axis=1, initial=-np.inf)
    # Infinity is as far from itself as it is in a softmax: the distance is NaN.
    below = np.where(largest[:, None] == -np.inf, 0.0, largest[:, None] - values)
    return largest, below, np.exp(-below), sums


def _exp_sum(structure: Structure, sets: _Sets, _: Any) -> Evaluated:
    largest, below, share, sums = _exp_parts(sets)
    total = (share * sums).sum(axis=1)
    limits = sets.limits
    exp = scalar_function("exp")
    columns = below.shape[1] + 2
    growth = float(np.expm1(columns * (STEPS + exp.ulps) * np.log1p(limits.roundoff)))
    far = np.where(share > 0, below * share * sums, 0.0).sum(axis=1)
    bound = 2 * limits.roundoff * far + growth * total
    bound = bound + columns * limits.smallest_normal * (1 + sums.max(axis=1, initial=0.0))
    bound = np.where(np.isnan(bound), np.inf, bound)
    return ((largest, np.zeros(len(largest))), (total, bound))


def _exp_sum_deviation(structure: Structure, sets: _Sets, errors: _Sets) -> Sequence[Array]:
    _, _, share, sums = _exp_parts(sets)
    total = (share * sums).sum(axis=1)
    moved = errors.members[0].max(axis=1, initial=0.0)
    direct = np.zeros(len(total))
    if not sets.lifts:
        inner = share[:, : errors.members[1].shape[1]]
        direct = (inner * errors.members[1]).sum(axis=1)
    if errors.left:
        moved = np.maximum(moved, errors.left[0][:, 0])
        direct = direct + share[:, -1] * errors.left[1][:, 0]
    return moved, (total + direct) * np.expm1(2 * moved) + direct


_EVALUATE: dict[str, Evaluate] = {
    "extreme": _extreme,
    "moments": _moments,
    "exp_sum": _exp_sum,
}

_DEVIATE: dict[str, Callable[[Structure, _Sets, _Sets], Sequence[Array]]] = {
    "extreme": _extreme_deviation,
    "moments": _moments_deviation,
    "exp_sum": _exp_sum_deviation,
}
