"""Numba's functions of arrays, without scipy's linear algebra."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, cast


def load_array_functions() -> None:
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
