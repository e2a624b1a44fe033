# pyright: basic
"""Compiled functions that are kept from process to process where that can be done.

Numba raises where there is no folder to keep them in, where a file of them is damaged, and where
the disk is full. None of that keeps a function from being compiled. Needs numba.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, cast

import numba
from numba.core import config
from numba.core.caching import FunctionCache, NullCache

VARIABLE = "NUMBA_CACHE_DIR"
"""The environment variable that names the folder where compiled functions are kept."""


class Keeping(FunctionCache):
    """A function's compiled forms in files, as Numba keeps them; what fails is done without."""

    def load_overload(self, sig, target_context):
        """The compiled form for a signature; None where there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # Unpickling damaged bytes may raise anything.
            _warn(f"{self.cache_path}: compiled kernels cannot be read ({_reason(error)})")
        try:
            # An index that cannot be read could not be added to, either.
            self.flush()
        except OSError:
            self.disable()
        return None

    def save_overload(self, sig, data):
        """Keep a compiled form, if that is possible."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"{self.cache_path}: compiled kernels cannot be kept ({_reason(error)})")
            self.disable()


def compiled(*signature, **options):
    """Numba's decorator `njit`, of functions that are kept where they can be."""

    def decorate(function):
        if cast(Any, config).DISABLE_JIT:
            return function
        dispatcher = cast(Any, numba.njit(**options)(function))
        dispatcher._cache = _keeping(function)
        for each in signature:
            dispatcher.compile(each)
        if signature:
            dispatcher.disable_compile()
        return dispatcher

    return decorate


def _keeping(function):
    """Where a function's compiled forms are kept: nowhere if no folder can be written to."""
    try:
        return Keeping(function)
    except (RuntimeError, OSError):
        place = os.environ.get(VARIABLE) or Path(function.__code__.co_filename).parent
        _warn(f"{place}: compiled kernels cannot be kept (no folder can be written to)")
        return NullCache()


def _reason(error):
    """What an error says, in few words."""
    return getattr(error, "strerror", None) or type(error).__name__


_told: list[str] = []


def _warn(problem):
    """Say once a process what is wrong and what mends it: functions are many, and fail alike."""
    if not _told:
        mend = f"set {VARIABLE} to a folder that can be written to"
        print(f"warning: {problem}; they are compiled now; {mend}", file=sys.stderr, flush=True)
    _told.append(problem)
