"""NumPy calls on fixed views of memory and scratch: the compiled form of a codelet for a shape
class.

Views are made once, and the calls are repeated on every run, so that a run costs only the
arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Array
from ...ir.support.strided import as_strided

Call = tuple[Callable[..., object], tuple[Any, ...]]
"""A function and its arguments."""

BYTE = np.dtype(np.uint8)

SCRATCH_BYTES = 2 << 20
"""The bytes of scratch that one call fills for the next one to read: about the size of a cache."""

KEPT_BYTES = 1 << 30
"""The most bytes that all calls of a program together may keep from one run to the next."""


class Scratch:
    """Memory for intermediate values: one buffer per purpose, and the copies to and from it.

    A caller may use a buffer until the next call of `take` for the same purpose. A buffer that is
    too small is replaced; earlier users keep the old one.
    """

    packs_short_runs = True
    """Whether blocks with short runs are packed once before they are copied to their replicas."""

    def __init__(self) -> None:
        self._left = KEPT_BYTES
        self._buffers: dict[str, NDArray[np.uint8]] = {}

    def take(self, purpose: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array of that shape with undefined contents."""
        size = prod(shape) * dtype.itemsize
        buffer = self._buffers.get(purpose)
        if buffer is None or buffer.nbytes < size:
            grown = 0 if buffer is None else 2 * buffer.nbytes
            buffer = np.empty(max(size, grown, 64), np.uint8)
            self._buffers[purpose] = buffer
        return buffer[:size].view(dtype).reshape(shape)

    @property
    def buffers(self) -> list[Array]:
        """The buffers that are in use. Their contents are valid only from one call to the next."""
        return list(self._buffers.values())

    def keep(self, size: int) -> NDArray[np.uint8] | None:
        """Bytes that are never reused; None once KEPT_BYTES are taken."""
        if size > self._left:
            return None
        self._left -= size
        return np.empty(size, np.uint8)

    def copy_calls(self, target: Array, source: Array) -> list[Call]:
        """The calls that copy one array into another of its shape and dtype, bit for bit."""
        return copy_calls(target, source)


def address(array: Array) -> int:
    """The address of an array's first element."""
    return int(array.ctypes.data)


def owner(array: Array) -> Array:
    """The array that owns the memory of a view."""
    while True:
        base: Any = array.base
        if not isinstance(base, np.ndarray):
            # NumPy's strided views have an extra object between the view and its base.
            base = getattr(base, "base", None)
        if not isinstance(base, np.ndarray):
            return array
        array = cast(Array, base)


def run_calls(calls: Sequence[Call]) -> None:
    """Make the calls in order. Overflows give infinities without a warning, as on the machine."""
    with np.errstate(all="ignore"):
        for function, arguments in calls:
            function(*arguments)


def coalesced(*arrays: Array) -> list[Array]:
    """Arrays of one shape, viewed with as few axes as possible, in the memory order of the last
    array.

    Axes of one element are dropped. Neighbouring axes that have one stride in every array are
    merged.
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
"""The longest run that is copied as one item. Longer runs are fast enough element by element."""

FEW_ELEMENTS = 4
"""The most elements of an axis that is unrolled because it is not contiguous."""


def copy_calls(target: Array, source: Array) -> list[Call]:
    """The NumPy calls that copy one array into another of its shape and dtype, bit for bit.

    NumPy's inner loop is the innermost axis, and one iteration of the outer loop costs as much as
    several elements. So a short contiguous run is copied as one item, and a short axis of elements
    that are not contiguous is unrolled.
    """
    if target.size == 0:
        return []
    source, target = coalesced(source, target)
    if target.ndim == 0:
        return [(np.copyto, (target, source))]
    length, unit = target.shape[-1], target.itemsize
    if target.strides[-1] == unit == source.strides[-1] and length * unit <= LONGEST_ITEM_BYTES:
        item = np.dtype((np.void, length * unit))
        return [(np.copyto, (_items(target, item), _items(source, item)))]
    if target.ndim > 1 and length <= FEW_ELEMENTS:
        return [call for i in range(length) for call in copy_calls(target[..., i], source[..., i])]
    return [(np.copyto, (target, source))]


def _items(array: Array, item: np.dtype[Any]) -> Array:
    """An array whose last axis is contiguous, with one item per run."""
    runs = as_strided(array, (*array.shape[:-1], 1), (*array.strides[:-1], array.itemsize))
    bytes_ = as_strided(
        runs.view(np.uint8), (*array.shape[:-1], item.itemsize), (*array.strides[:-1], 1)
    )
    return bytes_.view(item)[..., 0]


Index = tuple[Any, ...]
"""An index with a number or a slice for some leading axes and an ellipsis, so that it gives an
array.
"""


def chunks(shape: Sequence[int], largest: int) -> Iterator[Index]:
    """Indices that cut an array of this shape, row-major, into pieces of about `largest` elements.

    All pieces of an axis but the last are equal.
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
