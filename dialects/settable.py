"""The states of a program of nn whose values may change from run to run."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation

from ..ir.well_known import UPDATED
from . import nn


def changing_states(module: Operation) -> frozenset[str]:
    """The names of the states that a program stores to, or that the host may set.

    The compiler knows the values of the other states only.
    """
    stored = {op.state.string_value() for op in module.walk() if isinstance(op, nn.StoreOp)}
    return frozenset({*stored, *(listed_names(module, UPDATED) or ())})


def listed_names(module: Operation, attribute: str) -> tuple[str, ...] | None:
    """The names in an attribute of a module; None if it has no such attribute."""
    given = module.attributes.get(attribute)
    if not isinstance(given, ArrayAttr):
        return None
    listed = cast("ArrayAttr[Attribute]", given).data
    return tuple(each.data for each in listed if isinstance(each, StringAttr))
