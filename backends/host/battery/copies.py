"""Cases of the copies kernel: arrays of all ranks, element widths and run lengths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ....ir.support.strided import as_strided
from ...codelets.calls import Array
from ..copies import LONGEST_VECTOR_BYTES, SHARED_BYTES, UNITS, HostScratch
from .comparing import (
    ONE_UNIT,
    Battery,
    any_bits,
    compare,
    filled,
    make,
    need,
    room,
    unit_count,
)

WIDTHS = tuple(np.dtype(f"u{unit}") for unit in UNITS)
"""Elements of each width."""


def _check(case: str, target: Array, source: Array, in_units: bool = False) -> None:
    """Copy into an array from `room` with kernels and with NumPy, and compare."""
    wanted = filled(target, target.strides, target.ctypes.data % 64)
    np.copyto(wanted, source)
    calls = HostScratch().copy_calls(target, source)
    need(case, unit_count(calls) > 0)
    need(case, not in_units or unit_count(calls) > 1, ONE_UNIT)
    make(calls, in_units)
    compare(case, target, wanted, several_nan=False)


def _apart(shape: Sequence[int], unit: int, order: Sequence[int], step: int = 1) -> list[int]:
    """Strides with which no two axes can be merged into one.

    Args:
        order: the axes, the one with the smallest stride first.
        step: the distance from one element of the first axis to the next, in elements.
    """
    strides, size = [0] * len(shape), step * unit
    for axis in order:
        strides[axis] = size
        size = size * shape[axis] + unit
    return strides


def lengths_of_runs() -> int:
    """Runs of all lengths up to a vector and five more words, alone and several at once, at any
    address.
    """
    lengths = [*range(1, 34), *range(60, 70), LONGEST_VECTOR_BYTES * 2 + 1, 200]
    for i, length in enumerate(lengths):
        for rows in (1, 3):
            strides = (length + 5 + i % 3, 1)
            source = filled(any_bits(i, (rows, length), np.uint8), strides, i % 7)
            target = room((rows, length), np.uint8, (length + 1, 1), i % 5)
            _check(f"{rows} runs of {length} bytes", target, source)
    return 2 * len(lengths)


def words() -> int:
    """Runs of elements of each width, copied as vectors and as bytes."""
    lengths = (1, 2, 3, 4, 7, 8, 15, 16, 17, 33)
    for dtype, length in product(WIDTHS, lengths):
        shape = 2, 3, length
        strides = _apart(shape, dtype.itemsize, (2, 1, 0))
        source = filled(any_bits(length, shape, dtype), strides, dtype.itemsize)
        target = room(shape, dtype, _apart(shape, dtype.itemsize, (2, 0, 1)))
        _check(f"runs of {length} {dtype}", target, source)
    return len(WIDTHS) * len(lengths)


def several_dimensions() -> int:
    """Elements and runs along one to eight dimensions, in the same order on both sides and in
    another.
    """
    count = 0
    sizes = 3, 2, 3, 2, 2, 3, 2, 2
    for rank, dtype, has_runs in product(range(1, len(sizes) + 1), WIDTHS, (False, True)):
        shape = sizes[:rank]
        unit = dtype.itemsize
        backward, forward = range(rank)[::-1], [rank - 1, *range(rank - 1)]
        own = _apart(shape, unit, backward, 1 if has_runs else 2)
        source = filled(any_bits(rank, shape, dtype), own)
        for order in (backward, forward):
            target = room(shape, dtype, _apart(shape, unit, order, 1 if has_runs else 3))
            _check(f"{list(shape)} of {dtype}, strides {target.strides}", target, source)
            count += 1
    return count


def backwards() -> int:
    """Axes with negative strides on either side."""
    count = 0
    for dtype, of_source, of_target in product(WIDTHS, (1, -1), (1, -1)):
        shape = 3, 2, 5
        strides = _apart(shape, dtype.itemsize, (2, 1, 0))
        source = filled(any_bits(9, shape, dtype), [of_source * step for step in strides])
        strides = _apart(shape, dtype.itemsize, (1, 2, 0), 2)
        target = room(shape, dtype, [of_target * step for step in strides])
        _check(f"{list(shape)} of {dtype} by {of_source} and {of_target}", target, source)
        count += 1
    return count


def replicas() -> int:
    """Sources that repeat along some axes, so that a block is assembled once and copied."""
    count = 0
    shapes: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = (
        ((4, 7), (0,)),
        ((4, 7), (1,)),
        ((3, 5, 6), (0,)),
        ((3, 5, 6), (1,)),
        ((3, 5, 6), (0, 1)),
        ((2, 3, 4, 5), (0, 2)),
        ((2, 3, 2, 3, 2, 5), (1, 2)),
        ((2, 2, 3, 2, 3, 2), (0, 3)),
    )
    for (shape, repeated), dtype, is_dense in product(shapes, WIDTHS, (True, False)):
        rank, unit = len(shape), dtype.itemsize
        once = [1 if d in repeated else n for d, n in enumerate(shape)]
        own = _apart(once, unit, range(rank)[::-1], 2 - is_dense)
        held = filled(any_bits(rank, once, dtype), own)
        strides = [0 if d in repeated else step for d, step in enumerate(held.strides)]
        source = as_strided(held, shape, strides)
        given: Sequence[int] = () if is_dense else _apart(shape, unit, range(rank)[::-1], 2)
        case = f"{list(shape)} of {dtype} repeated along {list(repeated)}" + ", apart" * (
            not is_dense
        )
        _check(case, room(shape, dtype, given), source)
        count += 1
    return count


def shared_work() -> int:
    """Large arrays, in pieces that threads share, in any order."""
    shapes: Sequence[tuple[int, int, Any]] = (
        (300, SHARED_BYTES // 300 + 3, np.uint8),
        (41, SHARED_BYTES // (4 * 41) + 1, np.uint32),
    )
    for (rows, length, dtype), in_units in product(shapes, (False, True)):
        source = any_bits(rows, (length, rows), dtype).T
        target = room((rows, length), dtype)
        _check(f"{rows}x{length}" + ", by units" * in_units, target, source, in_units)
    return 2 * len(shapes)


BATTERY: Battery = {
    "lengths of runs": lengths_of_runs,
    "words": words,
    "several dimensions": several_dimensions,
    "backwards": backwards,
    "replicas": replicas,
    "shared work": shared_work,
}
