"""Cases of the equality kernel: arrays that are equal, or differ in one bit at any place."""

from __future__ import annotations

from itertools import product

import numpy as np

from ....ir.support.strided import as_strided
from ...codelets.calls import Array
from ...op_check import Judge
from ..copies import UNITS
from ..judges import FastJudge
from .comparing import Battery, Differs, any_bits, filled


def _check(case: str, left: Array, right: Array) -> None:
    """Compare the verdict of kernels with that of NumPy, both ways around."""
    for some, others in ((left, right), (right, left)):
        found, wanted = (judge.are_equal(some, others) for judge in (FastJudge(), Judge()))
        if found != wanted:
            raise Differs(f"{case}: found equal: {found}, but NumPy: {wanted}")


def _bits_that_differ(case: str, left: Array, right: Array) -> int:
    """Compare equal arrays, and arrays with one bit changed. Returns the number of cases.

    The bit is in the first, the last or some other element.
    """
    _check(case, left, right)
    count, bits = right.size, right.itemsize * 8
    places = {0, count - 1, count // 2, count // 3, *(min(count - 1, 1 << i) for i in range(8))}
    for i, place in enumerate(sorted(places)):
        at, bit = np.unravel_index(place, right.shape), (7 * i + place) % bits
        flipped = right.dtype.type(1 << bit)
        right[at] ^= flipped
        _check(f"{case}, bit {bit} of {[int(n) for n in at]}", left, right)
        right[at] ^= flipped
    return 1 + len(places)


def contiguous() -> int:
    """Contiguous arrays of all lengths up to more than two vectors, at any address."""
    count = 0
    for unit, length in product(UNITS, (*range(1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 300)):
        values = any_bits(length, (length,), f"u{unit}")
        left, right = filled(values, (), unit), filled(values, (), 3 * unit)
        count += _bits_that_differ(f"{length} of {unit} bytes", left, right)
    return count


def strided() -> int:
    """Arrays of one to five dimensions whose strides differ."""
    count = 0
    shapes = (5,), (3, 17), (2, 3, 9), (2, 2, 3, 5), (2, 1, 2, 2, 7)
    for unit, shape in product(UNITS, shapes):
        values = any_bits(len(shape), shape, f"u{unit}")
        left = filled(values, [2 * step + unit for step in values.strides])
        right = filled(values.T).T
        count += _bits_that_differ(f"{list(shape)} of {unit} bytes", left, right)
        once = as_strided(left, (3, *shape), (0, *left.strides))
        count += _bits_that_differ(f"3 times {list(shape)}", once, np.stack([values] * 3))
    return count


def floats() -> int:
    """Floats that are equal although their bits differ, and the other way round."""
    zero, nan = np.zeros(3, np.float32), np.full(3, np.nan, np.float64)
    _check("zeros of either sign", zero, -zero)
    _check("NaN and the same NaN", nan, nan.copy())
    _check("NaN of either sign", nan, -nan)
    return 3


BATTERY: Battery = {"contiguous": contiguous, "strided": strided, "floats": floats}
