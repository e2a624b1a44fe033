"""Checks that the libraries for drawing are installed."""

from __future__ import annotations

from importlib.util import find_spec

from ....ir.support.errors import InputError

LIBRARIES = ("numba", "scipy", "PIL")


def needs_libraries() -> None:
    """Raise InputError if a library of the extra `scan` is missing."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise InputError(
            f"a scan needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            "installed: pip install 'abele[scan]'"
        )
