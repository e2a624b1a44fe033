"""The dialects there are, and which operations are legal at each level of the way down."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.ir import Dialect

from ..ir.errors import InputError
from ..ir.user_entries import add_entry
from .nn import CORE
from .structured import Composite

DIALECTS: dict[str, str] = {
    "abele": "abele.dialects.abele:Abele",
    "control": "abele.dialects.control:Control",
    "nn": "abele.dialects.nn:NN",
    "partition": "abele.dialects.partition:Partition",
    "tile": "abele.dialects.tile:Tile",
    "exchange": "abele.dialects.exchange:Exchange",
}
"""Where each of abele's dialects is found; loaded when it is asked for."""

USERS_DIALECTS: dict[str, Dialect] = {}
"""Dialects that extensions have brought: their operations are operations of nn."""

LEVELS: dict[str, frozenset[str]] = {
    "nn": frozenset({"nn", "control", "func", "builtin"}),
    "nn-core": frozenset({*(op.name for op in CORE), "control", "func", "builtin"}),
    "partition": frozenset({"partition", "control", "func", "builtin"}),
    "tile": frozenset({"tile", "control", "func", "builtin"}),
    "exchange": frozenset({"exchange", "control", "func", "builtin"}),
}
"""For each level: names of dialects ("nn"), which make all their operations legal, and of ops."""


def load_dialect(name: str) -> Dialect:
    """One of abele's own dialects."""
    module, _, attribute = DIALECTS[name].partition(":")
    return getattr(import_module(module), attribute)


def register_dialect(dialect: Dialect, owner: str) -> None:
    """Make a user's operations legal at nn.

    Those that are structured, move, reinterpret or decompose go down by themselves; a pass of the
    user's must take any others away.
    Raises InputError if the name is taken, or an operation bears another dialect's.
    """
    for op in dialect.operations:
        if op.name.partition(".")[0] != dialect.name:
            raise InputError(
                f"{owner}: dialect {dialect.name!r}: operation {op.name}; need names that begin "
                f"with '{dialect.name}.'"
            )
    reserved = (*DIALECTS, "builtin", "func")
    add_entry(USERS_DIALECTS, "dialect", dialect.name, dialect, owner, reserved)


def _users_dialects() -> frozenset[str]:
    return frozenset(USERS_DIALECTS)


def _users_core() -> frozenset[str]:
    """Users' operations that are left once composites are replaced."""
    return frozenset(
        op.name
        for dialect in USERS_DIALECTS.values()
        for op in dialect.operations
        if not issubclass(op, Composite)
    )


_USERS: dict[str, Callable[[], frozenset[str]]] = {"nn": _users_dialects, "nn-core": _users_core}


def legal_ops(level: str) -> frozenset[str]:
    """Names of the dialects and operations legal at a level. Raises ValueError for no level."""
    if level not in LEVELS:
        raise ValueError(f"level {level!r}; need one of {', '.join(LEVELS)}")
    return LEVELS[level].union(_USERS[level]() if level in _USERS else ())
