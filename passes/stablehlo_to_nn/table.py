"""What lowers each operation of stablehlo, from the files of all families."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    bits,
    calls,
    client_functions,
    control_flow,
    elementwise,
    indexed,
    ordering,
    shapes,
)
from .conversion import Lower

FAMILIES = (
    bits,
    calls,
    client_functions,
    control_flow,
    elementwise,
    indexed,
    ordering,
    shapes,
)
"""The files of the families. Each has a TABLE."""

TABLE: Mapping[str, Lower] = {
    name: lower for each in FAMILIES for name, lower in each.TABLE.items()
}
"""What lowers each operation, by name: a function that adds operations of nn for it, and returns
the values of nn that its results are."""

ENDS = frozenset({"func.return", "stablehlo.return"})
"""The operations that end blocks. They are lowered with what is around them."""

PASSED = frozenset({"builtin.module", "func.func", "nn.state"})
"""The operations that hold others or that nn has too."""
