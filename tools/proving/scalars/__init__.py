"""Decides whether two scalar terms are equal, for all values of their variables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .decision import decide, missing_meanings
    from .equality import SPECIAL_TEXT, Equality

_HOME = {
    "decide": "decision",
    "missing_meanings": "decision",
    "Equality": "equality",
    "SPECIAL_TEXT": "equality",
}
"""The file of this folder that defines each name. Those of decision import the solver."""

__all__ = ["SPECIAL_TEXT", "Equality", "decide", "missing_meanings"]


def __getattr__(name: str) -> object:
    """Load a name of this folder. Raises InputError if it needs the solver, and there is none."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
