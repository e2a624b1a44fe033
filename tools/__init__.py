"""The edge: argv, files, printing.

What is named here is loaded when it is asked for: pytest loads the plug-in in tools/testing in
every project of an environment, and nothing else of abele with it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .driver.compile import compile_model
    from .driver.executable import Executable

_HOME = {"Executable": "driver.executable", "compile_model": "driver.compile"}
"""The file of this folder that each name is defined in."""

__all__ = ["Executable", "compile_model"]


def __getattr__(name: str) -> object:
    """A name of the package, loaded now."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
