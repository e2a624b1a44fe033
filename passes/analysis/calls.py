"""The calls of a program."""

from __future__ import annotations

from xdsl.dialects.func import CallOp

from ...ir.upstream import ModuleOp


def calls_of(module: ModuleOp) -> dict[str, list[CallOp]]:
    """The calls of each function that is called, by its name, in the order of the program."""
    found: dict[str, list[CallOp]] = {}
    for op in module.walk():
        if isinstance(op, CallOp):
            found.setdefault(op.callee.string_value(), []).append(op)
    return found
