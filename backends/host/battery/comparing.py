"""Tools of batteries: memory with guard bytes, numbers, and the comparison of kernels with NumPy.

Each array of a case has memory of its own, surrounded by bytes that must not change. Kernels get
one of two equal pieces of memory, and NumPy the other. A case fails if any byte of the two differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.support.strided import as_strided
from ...codelets.calls import Array, Call, address, owner
from ...codelets.stamps import Table
from ..calls import KernelCall
from ..threads import THREADS

Group = Callable[[], int]
"""Runs some cases of a battery, and returns their number. Raises Differs."""

Battery = Mapping[str, Group]
"""The groups of cases of a task, by name."""

CACHE_LINE = 64
"""Bytes of a cache line."""

MARGIN = 2 * CACHE_LINE
"""Guard bytes before and after each array, which must not change."""

FILLER = 0xA5
"""The value of guard bytes, and of the bytes between the elements of an array."""

RARE = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 3e38, -3e38, 65504.0, 6e-8)
"""Numbers that are most easily handled differently: zeros of both signs, infinities, NaN,
subnormals, and the largest and the smallest of float32 and float16.
"""


NO_CALL, ONE_UNIT = "there is no compiled call", "the call is not cut into units"
"""Reasons why a case tests nothing."""


class Differs(Exception):
    """Kernels have not written the bytes that NumPy writes. The message names the case and the
    difference.
    """


def room(shape: Sequence[int], dtype: Any, strides: Sequence[int] = (), shift: int = 0) -> Array:
    """An array in memory of its own, all of whose bytes are FILLER.

    Args:
        strides: in bytes; those of C order if they are left out. An axis of stride 0 repeats its
            only element.
        shift: bytes from a multiple of 64 to the first element.
    """
    kind = np.dtype(dtype)
    if len(strides) < len(shape):
        strides = [step * kind.itemsize for step in np.empty(shape, np.bool_).strides]
    before, after = _reach(shape, strides)
    first = -(-before // CACHE_LINE) * CACHE_LINE + MARGIN + shift
    memory = np.full(first + after + kind.itemsize + MARGIN + CACHE_LINE, FILLER, np.uint8)
    first += -address(memory) % CACHE_LINE
    return as_strided(memory[first : first + kind.itemsize].view(kind), shape, strides)


def _reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The distances, in bytes, from an array's first element to its lowest and to its highest
    one."""
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    return -sum(min(each, 0) for each in reach), sum(max(each, 0) for each in reach)


def _around(array: Array) -> Array:
    """The bytes of an array from `room`, with MARGIN bytes on both sides."""
    memory = owner(array)
    before, after = _reach(array.shape, array.strides)
    first = address(array) - address(memory)
    return memory[first - before - MARGIN : first + after + array.itemsize + MARGIN]


def filled(values: Array, strides: Sequence[int] = (), shift: int = 0) -> Array:
    """A copy of values in memory of its own.

    Args:
        strides, shift: as for room.
    """
    found = room(values.shape, values.dtype, strides, shift)
    np.copyto(found, values)
    return found


def numbers(seed: int, shape: Sequence[int], dtype: Any = np.float32, rare: int = 0) -> Array:
    """Normal numbers.

    Args:
        rare: one in this many is a number of RARE; 0 for none.
    """
    random = np.random.default_rng(seed)
    found = random.standard_normal(tuple(shape), np.float32)
    if rare:
        which = random.integers(0, rare * len(RARE), found.shape)
        for i, value in enumerate(RARE):
            found[which == i] = value
    with np.errstate(all="ignore"):
        return found.astype(dtype)


def any_bits(seed: int, shape: Sequence[int], dtype: Any) -> Array:
    """Elements of random bits."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    found = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    return found.view(kind).reshape(tuple(shape))


def compare(case: str, actual: Array, expected: Array, several_nan: bool = True) -> None:
    """Raise Differs if kernels have written other bytes than NumPy, or have changed guard bytes.

    Both arrays are from `room`, with equal strides.

    Args:
        several_nan: whether any NaN counts as equal to a NaN.
    """
    found, wanted = _around(actual), _around(expected)
    if np.array_equal(found, wanted):
        return
    where = np.ones(actual.shape, np.bool_)
    differ = _bits(actual) != _bits(expected)
    if several_nan and actual.dtype.kind == "f":
        where = ~(np.isnan(actual) & np.isnan(expected))
    wrong = np.argwhere(differ & where)
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])
        raise Differs(
            f"{case}: {len(wrong)} of {actual.size} elements differ, the first at {list(at)}: "
            f"{actual[at]!s}, but NumPy has {expected[at]!s}"
        )
    np.copyto(actual, expected)
    if not np.array_equal(found, wanted):
        raise Differs(f"{case}: bytes outside the result are written")


def _bits(array: Array) -> Array:
    """The elements of an array as integers."""
    return array.view(f"u{array.itemsize}")


def need(case: str, is_so: bool, what: str = NO_CALL) -> None:
    """Raise Differs unless a condition holds without which the case tests nothing."""
    if not is_so:
        raise Differs(f"{case}: {what}")


def unit_count(calls: Sequence[Call]) -> int:
    """The most units of any call of a kernel; 0 if there is none."""
    return max((f.arguments[3] for f, _ in calls if isinstance(f, KernelCall)), default=0)


def make(calls: Sequence[Call], in_units: bool = False) -> None:
    """Make calls in order.

    Args:
        in_units: run the units of each kernel one by one, the last unit first, as several threads
            may.
    """
    with np.errstate(all="ignore"):
        for function, arguments in calls:
            if in_units and isinstance(function, KernelCall):
                _run_units(function)
            else:
                function(*arguments)


def _run_units(call: KernelCall) -> None:
    """Run the units of a call one by one, the last unit first."""
    code, table, _, _, _, room_bytes = call.arguments
    memory: Any = call.memory
    cuts: Table = memory[1]
    for i in reversed(range(len(cuts) - 1)):
        edges = cuts[i : i + 2].copy()
        # In the order of tables.CALL_CODE and the others.
        whole = np.array([code, table, *edges], np.int64)
        THREADS.run(code, table, address(edges), 1, address(whole), room_bytes)
