"""Whether compiled kernels are used, how they are loaded, and calls of them.

Without numba, or where `ABELE_FAST` is 0, there are no kernels, and NumPy computes the same bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np

from ..codelets.calls import Array, address
from ..codelets.stamps import Table

SWITCH = "ABELE_FAST"
"""The environment variable that turns kernels off if it is 0."""

COMPILING = "abele: compiling kernels for this host, once; this takes up to a minute"


class KernelCall:
    """A call of a kernel with its tables.

    kept: objects that must live as long as the call, such as the arrays that its tables hold the
    addresses of.
    """

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


def table_address(table: Table) -> int:
    """The address of a table for a kernel that reads it there."""
    assert table.dtype == np.int64
    assert table.flags.c_contiguous
    return address(table)


def is_available() -> bool:
    """Whether kernels can be used on this host."""
    return find_spec("numba") is not None


def is_wanted() -> bool:
    """Whether to use kernels: if this host can, and the switch is not off."""
    return os.environ.get(SWITCH, "1") != "0" and is_available()


@cache
def kernels(task: str) -> Any:
    """The module of the kernels of a task, "copies", "chains", "routes" or "products".

    Says on stderr if kernels have to be compiled for this host first, as that takes long.
    """
    events = cast(Any, import_module("numba.core.event"))

    class Tell(events.Listener):
        """Says once that kernels are compiled."""

        def on_start(self, event: object) -> None:
            if not _told:
                print(COMPILING, file=sys.stderr, flush=True)
            _told.append(event)

        def on_end(self, event: object) -> None:
            pass

    _load_array_functions()
    with events.install_listener("numba:compile", Tell()):
        return cast(Any, import_module(f".kernels.{task}", __package__))


_told: list[object] = []


def _load_array_functions() -> None:
    """Load Numba's functions of arrays without scipy's linear algebra.

    To see whether there is a BLAS, Numba imports all of scipy's linear algebra, which takes a third
    of the time to load kernels. It is enough that its file exists, as it is loaded once a function
    needs it.
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
    """Whether scipy's table of BLAS functions exists, without importing it."""
    scipy = find_spec("scipy")
    places = scipy.submodule_search_locations if scipy is not None else None
    names = [f"cython_blas{suffix}" for suffix in EXTENSION_SUFFIXES]
    return any(Path(place, "linalg", name).exists() for place in places or () for name in names)
