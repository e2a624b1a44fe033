"""Lines for the user about a model and its program, kept as an attribute of the module.

All levels, saved programs and the cache keep them, so each command can say them again.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, StringAttr

from ...dialects.settable import listed_names
from ...ir.upstream import ModuleOp

ATTRIBUTE = "abele.notes"
"""The module's attribute."""


def write_notes(module: ModuleOp, notes: Iterable[str]) -> None:
    """Record notes on a module, each once."""
    found = tuple(dict.fromkeys(notes))
    if found:
        module.attributes[ATTRIBUTE] = ArrayAttr(map(StringAttr, found))


def read_notes(module: ModuleOp) -> tuple[str, ...]:
    """The notes recorded on a module."""
    return listed_names(module, ATTRIBUTE) or ()
