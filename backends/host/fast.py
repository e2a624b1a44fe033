"""Whether compiled kernels are used, and the tables that they take.

Everything here is made once, when a program is loaded. Without numba, or where `ABELE_FAST` is 0,
there are no kernels, and NumPy computes the same bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Table = NDArray[np.int64]

SWITCH = "ABELE_FAST"
"""The environment variable that turns compiled kernels off where it is 0."""

COMPILING = "abele: compiling kernels for this host, once; this takes up to a minute"

UNITS = (1, 2, 4, 8)
"""Bytes of elements that can be copied one by one."""

LANES = 16
"""Elements of a vector."""

RUNS, WORDS = 0, 16
"""How a copy goes, if not element by element: runs of any bytes, or of at most 16 words."""

LONGEST_VECTOR = 64


class History:
    """When variables were last written, counted in writes.

    over: for each, all that have bytes in common with it, and itself. states: whether each has a
    value before a program begins.
    """

    def __init__(self, over: Sequence[Table], states: Sequence[bool]) -> None:
        self._now = 0
        self._written = [0] * len(over)
        self.stamps = [
            Stamp(self, i, others, is_state)
            for i, (others, is_state) in enumerate(zip(over, states, strict=True))
        ]

    def write(self, index: int) -> int:
        """Note that a variable was written; returns when."""
        self._now += 1
        self._written[index] = self._now
        return self._now

    def lie_elsewhere(self, indices: Collection[int]) -> None:
        """Note that some variables have no bytes in common with any others after all."""
        for stamp in self.stamps:
            stamp.forget(indices)

    def write_all(self) -> None:
        """Note that any variable may have been written."""
        self._now += 1
        self._written = [self._now] * len(self._written)

    def latest(self, over: Callable[[list[int]], tuple[int, ...]]) -> int:
        """When any of some variables was last written. over: picks theirs."""
        return max(over(self._written))


class Stamp:
    """What is known of a variable's bytes while a program runs.

    is_state: whether it has a value before the program begins, and is likely to keep it.
    """

    __slots__ = ("_history", "_index", "_others", "_over", "_whole", "is_state")

    def __init__(self, history: History, index: int, over: Table, is_state: bool) -> None:
        self._history, self._index = history, index
        self._others: set[int] = {*over.tolist()}
        self.is_state = is_state
        self._whole = -1
        self.forget(())

    def forget(self, elsewhere: Collection[int]) -> None:
        """Note that some variables have no bytes in common with any others after all."""
        own = self._index
        self._others = {own} if own in elsewhere else self._others.difference(elsewhere) | {own}
        # Of a single one, itemgetter gives no tuple.
        self._over = itemgetter(*self._others, own)

    def write(self, is_whole: bool) -> None:
        """Note that it was written. is_whole: all of its blocks, and replicas alike."""
        now = self._history.write(self._index)
        self._whole = now if is_whole else -1

    @property
    def is_alone(self) -> bool:
        """Whether no other variable has bytes in common with it."""
        return len(self._others) == 1

    @property
    def latest(self) -> int:
        """When any of its bytes may have changed."""
        return self._history.latest(self._over)

    @property
    def whole(self) -> int | None:
        """When it was written as a whole, if its blocks still hold that: replicas are equal."""
        return self._whole if self._whole == self.latest else None


class Compiled:
    """A call of a kernel: its tables, and what must be there as long as it is: the arrays that they
    hold addresses of, above all."""

    __slots__ = ("_arguments", "_kept", "_kernel")

    def __init__(
        self, kernel: Callable[..., None], arguments: Sequence[Array | int], kept: Sequence[object]
    ) -> None:
        self._kernel = kernel
        self._arguments = arguments
        self._kept = kept

    def __call__(self) -> None:
        """Run the kernel."""
        self._kernel(*self._arguments)


def wanted(fast: bool | None = None) -> bool:
    """Whether to use kernels: as asked for; else, if there is numba and the switch is not off."""
    if fast is not None:
        return fast and available()
    return os.environ.get(SWITCH, "1") != "0" and available()


def available() -> bool:
    """Whether kernels can be used on this host."""
    return find_spec("numba") is not None


@lru_cache(maxsize=1)
def kernels() -> Any:
    """The module of kernels; loading it takes a second.

    Where they have not been compiled for this host yet, that is said on stderr: it takes longer.
    """
    events = cast(Any, import_module("numba.core.event"))
    told: list[object] = []

    class Tell(events.Listener):
        """Says so when something is compiled for the first time."""

        def on_start(self, event: object) -> None:
            if not told:
                print(COMPILING, file=sys.stderr, flush=True)
            told.append(event)

        def on_end(self, event: object) -> None:
            pass

    _load_array_functions()
    with events.install_listener("numba:compile", Tell()):
        return cast(Any, import_module(".kernels", __package__))


def _load_array_functions() -> None:
    """Load Numba's functions of arrays without scipy's linear algebra.

    To see whether there is a BLAS, Numba imports all of scipy's linear algebra: a third of the time
    that kernels take to load. That its file is there is enough, as it is loaded where one is used.
    """
    linalg = cast(Any, import_module("numba.np.linalg"))
    with _LOADING:
        looked = getattr(linalg, "ensure_blas", None)
        if looked is None or "numba.np.arraymath" in sys.modules or not _has_blas():
            return
        linalg.ensure_blas = lambda: None
        try:
            functions = cast(Any, import_module("numba.np.arraymath"))
        finally:
            linalg.ensure_blas = looked
        functions.ensure_blas = looked


_LOADING = Lock()


def _has_blas() -> bool:
    """Whether scipy's table of BLAS functions is there, without importing it."""
    scipy = find_spec("scipy")
    places = scipy.submodule_search_locations if scipy is not None else None
    names = [f"cython_blas{suffix}" for suffix in EXTENSION_SUFFIXES]
    return any(Path(place, "linalg", name).exists() for place in places or () for name in names)


def address(array: Array) -> int:
    """Where an array's first element lies."""
    return int(array.ctypes.data)


def copy_call(target: Array, source: Array, room: Callable[[int], Array]) -> Compiled | None:
    """The call that copies an array into another of its shape and dtype; None for odd elements.

    Both are coalesced, in the order of the target's bytes. Dimensions along which the source
    repeats are replicas: a block is put together once and copied to all of them while it is hot.
    room: gives that many bytes to put it together in.
    """
    unit = target.itemsize
    dims = [(n, s, t) for n, s, t in zip(target.shape, source.strides, target.strides, strict=True)]
    run, kind = unit, unit
    if dims and dims[-1][1:] == (unit, unit):
        run = dims.pop()[0] * unit
        kind = RUNS if run % 4 or run > LONGEST_VECTOR else WORDS
        kind = run if run in UNITS else kind
    elif unit not in UNITS:
        return None
    replicas = [dim for dim in dims if dim[1] == 0]
    replica, kept = -1, [target, source]
    block = np.empty(0, np.uint8)
    if replicas:
        nearest = min(t for _, _, t in replicas)
        inner = [dim for dim in dims if dim[1] and dim[2] < nearest]
        outer = [dim for dim in dims if dim[1] and dim[2] >= nearest]
        dims = [*outer, *replicas, *inner]
        length = run
        for n, _, t in reversed(inner):
            if t != length:
                break
            length *= n
        else:
            replica = len(outer)
            block = room(length)
            kept.append(block)
    if replica < 0:
        dims = _ordered(dims)
    columns = [d for column in zip(*dims, strict=True) for d in column] if dims else []
    head = [len(dims), run, replica, address(block), address(source), address(target), kind]
    table = np.array([*head, *columns], np.int64)
    return Compiled(kernels().copy, (table,), kept)


def _ordered(dims: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Dimensions so that what lies far apart on either side is walked through least often."""
    return sorted(dims, key=lambda dim: -max(abs(dim[1]), abs(dim[2])))
