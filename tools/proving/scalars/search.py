"""Looks for values at which two terms differ, by computing both at many points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....backends.codelets.conversion import Array
from ....dialects.scalar_meanings import DEFINITIONS, LAWS
from ....ir.element_types import dtype_named
from ..terms import Apply, Term, Var, subterms
from .evaluate import all_values, double_points, in_doubles, special_values, values_of
from .precision import largest, range_shrinks
from .types import TRUTH, is_float, limits

POINTS = 1500
SEED = 20
CLOSE = 2.0**-30
"""Results that differ by less than this part of the largest number on the way are rounded ones."""
NEAR = 2.0**-24
"""How far a point is moved to see whether a difference stays."""
FEW = 400
"""The points that show whether only one side overflows."""
MIDDLE = 0.5
"""The power of the largest number of a type up to which a number is far from the ends."""
LARGE = 2.0**40
"""Whole numbers below this one are exact, and so are their sums and products on the way."""
ROUNDING = frozenset(LAWS) | {name for name, each in DEFINITIONS.items() if each.rounds_apart}
"""Functions whose whole results may be rounded ones, such as tanh of 20."""
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Found:
    """What the points show. Each is a point at which something differs, or None.

    Attributes:
        points: number of points that fulfil the assumptions.
        values: finite results are different numbers, beyond rounding.
        maybe: the same, but a little further on the results are equal, so that rounding may have
            made the difference.
        special: NaN or infinities differ.
        zeros: only the signs of zeros differ.
        bits: the results in their own type differ in their bits, but not only in signs of zeros.
    """

    points: int
    values: dict[Var, float] | None = None
    maybe: tuple[dict[Var, float], ...] = ()
    special: dict[Var, float] | None = None
    zeros: dict[Var, float] | None = None
    bits: dict[Var, float] | None = None


def search(left: Term, right: Term, variables: Sequence[Var], assumptions: Sequence[Term]) -> Found:
    """Compute both terms at points that fulfil the assumptions."""
    count = POINTS if variables else 1
    points = _fulfilling(_points(variables, count), count, assumptions)
    count = len(next(iter(points.values()))) if variables else 1
    if count == 0:
        return Found(0)
    one, other = (values_of(each, points, count) for each in (left, right))
    if not is_float(left.dtype) and not any(is_float(each.dtype) for each in variables):
        return Found(count, values=_first(points, one != other))
    if _reads_bits(left) or _reads_bits(right):
        return Found(count, bits=_first(points, _bits_differ(one, other)))
    finite = np.ones(count, bool)
    for each, values in points.items():
        if is_float(each.dtype):
            finite &= np.isfinite(values.astype(np.float64))
    a, b, apart = _compared(left, right, points, count)
    plain = finite & np.isfinite(a) & np.isfinite(b)
    differs = plain & apart
    stays = differs.copy()
    if differs.any():
        for sign in (1.0, -1.0):
            stays &= _compared(left, right, _moved(points, sign), count)[2]
        stays |= differs & _unrounded(left, right, points, count)
    category = (np.isnan(a) != np.isnan(b)) | (
        (np.isinf(a) | np.isinf(b)) & ~np.isnan(a) & ~np.isnan(b) & (a != b)
    )
    if is_float(left.dtype):
        overflow = _overflow(left, right, variables, assumptions)
    else:
        category |= ~finite & (a != b)
        overflow = None
    zeros = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return Found(
        count,
        _first(points, stays),
        tuple(_several(points, differs & ~stays)),
        _first(points, category) or overflow,
        _first(points, zeros),
        _first(points, _bits_differ(one, other)),
    )


def _compared(
    left: Term, right: Term, points: dict[Var, Array], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], Mask]:
    """The results in float64, and where they differ by more than rounding."""
    wide = double_points(points)
    scale = np.zeros(count)
    results: list[NDArray[np.float64]] = []
    for term in (left, right):
        doubled = in_doubles(term)
        made = all_values(doubled, wide, count)
        results.append(made[doubled].astype(np.float64))
        for each, values in made.items():
            if is_float(each.dtype):
                size = np.abs(values.astype(np.float64))
                np.maximum(scale, size, out=scale, where=np.isfinite(size))
    a, b = results[0], results[1]
    with np.errstate(all="ignore"):
        return a, b, np.abs(a - b) > (CLOSE * scale if is_float(left.dtype) else 0.0)


def _overflow(
    left: Term, right: Term, variables: Sequence[Var], assumptions: Sequence[Term]
) -> dict[Var, float] | None:
    """A point of numbers of every size where only one side overflows in its own types.

    Products of large numbers overflow in one order and not in another. So it counts only if all
    numbers of the left side are far from the ends of their types and the right side overflows, or
    if the left side rounds to a type of a smaller range.
    """
    random = np.random.default_rng(SEED)
    points = {each: _of_every_size(each.dtype, FEW, random) for each in variables}
    points = _fulfilling(points, FEW, assumptions)
    count = len(next(iter(points.values()))) if variables else 1
    if not count:
        return None
    made = all_values(left, points, count)
    ends, far = (
        np.isfinite(each.astype(np.float64))
        for each in (made[left], values_of(right, points, count))
    )
    middle = np.ones(count, bool)
    for each, values in made.items():
        if is_float(each.dtype):
            sizes, end = np.abs(values.astype(np.float64)), largest(each.dtype) ** MIDDLE
            middle &= (sizes == 0) | ((sizes <= end) & (sizes >= 1 / end))
    found = middle & ~far
    return _first(points, found | (~ends & far) if range_shrinks(left, right) else found)


def _of_every_size(dtype: str, count: int, random: np.random.Generator) -> Array:
    """Numbers with evenly spread exponents; integers and truth values as `_drawn` has them."""
    if not is_float(dtype):
        shared = random.integers(0, 1 << 16, count)
        return _drawn(dtype, count, random, shared).astype(dtype_named(dtype))
    ends = np.log(largest(dtype)) * (random.random(count) * 2 - 1)
    numbers = np.exp(ends) * random.choice([-1.0, 1.0], count)
    numbers[:1] = 0.0
    return numbers.astype(dtype_named(dtype))


def _unrounded(left: Term, right: Term, points: dict[Var, Array], count: int) -> Mask:
    """Where all numbers on the way are small and whole, so that nothing was rounded."""
    whole = np.ones(count, bool)
    for term in (left, right):
        doubled = in_doubles(term)
        for each, values in all_values(doubled, double_points(points), count).items():
            if isinstance(each, Apply) and each.function in ROUNDING:
                return np.zeros(count, bool)
            if is_float(each.dtype):
                whole &= (values == np.rint(values)) & (np.abs(values) < LARGE)
    return whole


def holds_at(term: Term, point: dict[Var, float]) -> bool:
    """Whether a truth value holds at a point."""
    arrays = arrays_of(point)
    return bool(values_of(term, arrays, 1)[0])


def arrays_of(point: dict[Var, float]) -> dict[Var, Array]:
    """A point as arrays of one element."""
    return {
        each: np.array([value]).astype(dtype_named(each.dtype)) for each, value in point.items()
    }


def differ_at(left: Term, right: Term, point: dict[Var, float]) -> bool:
    """Whether both results at a point are finite, and differ by more than rounding."""
    a, b, apart = _compared(left, right, arrays_of(point), 1)
    return bool(np.isfinite(a[0]) and np.isfinite(b[0]) and apart[0])


def stay_different(left: Term, right: Term, point: dict[Var, float]) -> bool:
    """Whether results differ at a point, and around it."""
    arrays = arrays_of(point)
    moved = (_moved(arrays, sign) for sign in (1.0, -1.0))
    return differ_at(left, right, point) and all(
        _compared(left, right, each, 1)[2][0] for each in moved
    )


def _points(variables: Sequence[Var], count: int) -> dict[Var, Array]:
    """Values of each variable: special ones, small whole numbers, and others of every size."""
    random = np.random.default_rng(SEED)
    # The first points have one value for all, then come points with plain values, then all kinds.
    shared = random.integers(0, 1 << 16, count)
    return {
        each: _drawn(each.dtype, count, random, shared).astype(dtype_named(each.dtype))
        for each in variables
    }


def _drawn(dtype: str, count: int, random: np.random.Generator, shared: NDArray[Any]) -> Array:
    early, plain = count // 16, count // 2
    if dtype == TRUTH:
        return random.integers(0, 2, count).astype(bool)
    if is_float(dtype):
        special = special_values(dtype)
        drawn = np.where(
            random.random(count) < 0.5,
            random.integers(-32, 33, count) / 8.0,
            random.normal(size=count) * 4.0,
        )
        drawn[plain:] = np.where(
            random.random(count - plain) < 0.4,
            special[random.integers(0, len(special), count - plain)],
            drawn[plain:],
        )
        drawn[:early] = special[shared[:early] % len(special)]
        with np.errstate(all="ignore"):
            # The points are numbers of the type.
            return drawn.astype(dtype_named(dtype)).astype(np.float64)
    low, high = limits(dtype)
    ends = np.array(
        [0, 1, 2, 3, low, low + 1, high, high - 1, 7, 8, max(low, -1), max(low, -2)], object
    )
    small = random.integers(max(low, -20), 21, count).astype(object)
    anywhere = random.integers(low, high, count, np.int64 if low < 0 else np.uint64, endpoint=True)
    chosen = ends[random.integers(0, len(ends), count)]
    kind = random.integers(0, 4, count)
    found = np.where(kind < 2, small, np.where(kind == 2, anywhere.astype(object), chosen))
    found[:early] = ends[shared[:early] % len(ends)]
    return found.astype(np.int64 if low < 0 else np.uint64)


def _fulfilling(
    points: dict[Var, Array], count: int, assumptions: Sequence[Term]
) -> dict[Var, Array]:
    kept = np.ones(count, bool)
    for each in assumptions:
        kept &= values_of(each, points, count).astype(bool)
    return {each: values[kept] for each, values in points.items()}


def _moved(points: dict[Var, Array], sign: float) -> dict[Var, Array]:
    """The points a little further on; integers stay."""
    return {
        each: values.astype(np.float64) * (1 + sign * NEAR) + sign * NEAR * 2.0**-10
        if is_float(each.dtype)
        else values
        for each, values in points.items()
    }


def _reads_bits(term: Term) -> bool:
    return any(isinstance(each, Apply) and each.function == "bitcast" for each in subterms(term))


def _bits_differ(a: Array, b: Array) -> Mask:
    if a.dtype.kind in "biu":
        return a != b
    return (a != b) & ~((a != a) & (b != b))


def _at(points: dict[Var, Array], index: int) -> dict[Var, float]:
    return {each: values[index].item() for each, values in points.items()}


def _first(points: dict[Var, Array], where: Mask) -> dict[Var, float] | None:
    """The plainest of some points: that with the smallest numbers."""
    found = list(_several(points, where, 1))
    return found[0] if found else None


def _several(points: dict[Var, Array], where: Mask, most: int = 4) -> list[dict[Var, float]]:
    indices = np.flatnonzero(where)
    if not len(indices):
        return []
    size = np.zeros(len(indices))
    for values in points.values():
        wide = values[indices].astype(np.float64)
        digits = np.where(wide == np.rint(wide), 0.0, 1.0)
        with np.errstate(all="ignore"):
            size += np.where(np.isfinite(wide), np.minimum(np.abs(wide), 1e9) + digits, 50.0)
    return [_at(points, int(indices[i])) for i in np.argsort(size, kind="stable")[:most]]
