"""What a codelet becomes for one shape class: NumPy calls on fixed views of memory and scratch.

Views are made once and the calls repeated on every run, so that a run costs nothing but the
arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..host.fast import copy_call

Array = NDArray[Any]
Call = tuple[Callable[..., object], tuple[Any, ...]]
"""A function and its arguments."""

BYTE = np.dtype(np.uint8)

SCRATCH_BYTES = 2 << 20
"""Scratch that a call may fill before the next one reads it: about what stays in a cache."""

KEPT_BYTES = 1 << 30
"""What all calls of a program together may keep from one run to the next."""


class Scratch:
    """Memory for intermediate values, one buffer a purpose; whoever takes one may use it until
    the next one takes it.

    A buffer that is too small is replaced; those who hold the old one keep it. fast: whether the
    calls that are made with it may be of compiled kernels.
    """

    def __init__(self, fast: bool = False) -> None:
        self.fast = fast
        self._left = KEPT_BYTES
        self._buffers: dict[str, NDArray[np.uint8]] = {}

    def take(self, purpose: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array of that shape whose contents are anything."""
        size = prod(shape) * dtype.itemsize
        buffer = self._buffers.get(purpose)
        if buffer is None or buffer.nbytes < size:
            grown = 0 if buffer is None else 2 * buffer.nbytes
            buffer = np.empty(max(size, grown, 64), np.uint8)
            self._buffers[purpose] = buffer
        return buffer[:size].view(dtype).reshape(shape)

    def kept(self, size: int) -> NDArray[np.uint8] | None:
        """Bytes that are nobody else's; None if too many have been given away."""
        if size > self._left:
            return None
        self._left -= size
        return np.empty(size, np.uint8)


def run_calls(calls: Sequence[Call]) -> None:
    """Make the calls in order; overflows give infinities and no warning, as on the machine."""
    with np.errstate(all="ignore"):
        for function, arguments in calls:
            function(*arguments)


def coalesced(*arrays: Array) -> list[Array]:
    """Arrays of one shape, seen with as few axes as possible, in the order of the last one's bytes.

    Axes of one element are dropped; neighbours that all arrays walk through evenly are merged.
    """
    last = arrays[-1]
    axes = sorted(
        (d for d in range(last.ndim) if last.shape[d] != 1), key=lambda d: -abs(last.strides[d])
    )
    shape: list[int] = []
    strides: list[tuple[int, ...]] = []
    for d in axes:
        size, step = last.shape[d], tuple(a.strides[d] for a in arrays)
        if shape and strides[-1] == tuple(size * s for s in step):
            shape[-1] *= size
            strides[-1] = step
        else:
            shape.append(size)
            strides.append(step)
    return [as_strided(a, shape, [step[i] for step in strides]) for i, a in enumerate(arrays)]


LONGEST_ITEM_BYTES = 1024
"""Longer runs are fast enough as elements."""

FEW_ELEMENTS = 4
"""An axis this short, of elements that do not lie together, is unrolled."""


def copy_calls(target: Array, source: Array, scratch: Scratch) -> list[Call]:
    """The calls that copy one array into another of its shape and dtype, bit for bit.

    NumPy's inner loop is the innermost axis, and costs as much as several elements: short runs
    that lie together are copied as one item each, and a short axis of lone elements is unrolled.
    """
    if target.size == 0:
        return []
    source, target = coalesced(source, target)
    if scratch.fast:
        call = copy_call(target, source, lambda size: scratch.take("block", (size,), BYTE))
        if call is not None:
            return [(call, ())]
    if target.ndim == 0:
        return [(np.copyto, (target, source))]
    length, unit = target.shape[-1], target.itemsize
    if target.strides[-1] == unit == source.strides[-1] and length * unit <= LONGEST_ITEM_BYTES:
        item = np.dtype((np.void, length * unit))
        return [(np.copyto, (_items(target, item), _items(source, item)))]
    if target.ndim > 1 and length <= FEW_ELEMENTS:
        return [
            call
            for i in range(length)
            for call in copy_calls(target[..., i], source[..., i], scratch)
        ]
    return [(np.copyto, (target, source))]


def _items(array: Array, item: np.dtype[Any]) -> Array:
    """An array whose last axis lies together, with one item for each run of it."""
    runs = as_strided(array, (*array.shape[:-1], 1), (*array.strides[:-1], array.itemsize))
    bytes_ = as_strided(
        runs.view(np.uint8), (*array.shape[:-1], item.itemsize), (*array.strides[:-1], 1)
    )
    return bytes_.view(item)[..., 0]


Index = tuple[Any, ...]
"""Indices of leading axes, perhaps a slice, and an ellipsis, so that an array stays an array."""


def chunks(shape: Sequence[int], largest: int) -> Iterator[Index]:
    """Indices that cut an array of this shape, row-major, into pieces of about largest elements.

    All but the last piece of an axis are equal.
    """
    rest = prod(shape)
    for axis, size in enumerate(shape):
        rest //= max(size, 1)
        if rest <= largest:
            take = max(1, largest // max(rest, 1))
            for outer in product(*map(range, shape[:axis])):
                for first in range(0, size, take):
                    yield (*outer, slice(first, min(first + take, size)), ...)
            return
    yield (...,)
