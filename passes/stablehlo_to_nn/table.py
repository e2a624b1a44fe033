"""The functions that lower the operations of stablehlo, from the files of all families."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    bits,
    calls,
    client_functions,
    collectives,
    control_flow,
    custom_calls,
    elementwise,
    indexed,
    matrices,
    normalise,
    ordering,
    products,
    random_draws,
    reductions,
    shapes,
    sized,
    states,
    windows,
)
from .conversion import Lower
from .stored_types import computed_wide

FAMILIES = (
    bits,
    calls,
    client_functions,
    collectives,
    control_flow,
    custom_calls,
    elementwise,
    indexed,
    matrices,
    normalise,
    ordering,
    products,
    random_draws,
    reductions,
    shapes,
    sized,
    states,
    windows,
)
"""The files of the families. Each has a TABLE."""

_NARROW = frozenset({"stablehlo.convert", "stablehlo.select", "stablehlo.shift_right_logical"})
"""The functions of elements that are not computed in wider types: those that only move or cast, and
one whose result depends on the highest bit of the type."""

TABLE: Mapping[str, Lower] = {
    name: computed_wide(lower) if each is elementwise and name not in _NARROW else lower
    for each in FAMILIES
    for name, lower in each.TABLE.items()
}
"""What lowers each operation, by name: a function that adds operations of nn for it, and returns
the values of nn that its results are."""

ON_ELEMENTS = frozenset(
    {
        *elementwise.TABLE,
        *client_functions.TABLE,
        *bits.ON_ELEMENTS,
        "stablehlo.constant",
        "func.call",
        "func.return",
        "stablehlo.return",
    }
)
"""The operations that regions on single elements may have, to be lowered for whole tensors."""
