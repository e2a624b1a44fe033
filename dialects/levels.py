"""Which operations are legal at each level of the way down."""

from __future__ import annotations

from .nn import CORE

LEVELS: dict[str, frozenset[str]] = {
    "nn": frozenset({"nn", "control", "func", "builtin"}),
    "nn-core": frozenset({*(op.name for op in CORE), "control", "func", "builtin"}),
    "partition": frozenset({"partition", "control", "func", "builtin"}),
    "tile": frozenset({"tile", "control", "func", "builtin"}),
    "exchange": frozenset({"exchange", "control", "func", "builtin"}),
}
"""For each level: names of dialects ("nn"), which make all their operations legal, and of ops."""


def legal_ops(level: str) -> frozenset[str]:
    """Names of the dialects and operations legal at a level. Raises ValueError for no level."""
    if level not in LEVELS:
        raise ValueError(f"level {level!r}; need one of {', '.join(LEVELS)}")
    return LEVELS[level]
