"""The functions of a program, and which of them a call runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func

from ..ir.provenance import place
from ..ir.support.errors import InputError
from ..ir.upstream import ModuleOp
from ..ir.well_known import ENTRY


def functions_of(module: ModuleOp) -> dict[str, func.FuncOp]:
    """The functions of a program by name. Raises InputError if there is no entry."""
    functions = {
        op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)
    }
    if ENTRY not in functions:
        raise InputError(f"the module has no function @{ENTRY}")
    return functions


def callee_of(
    call: func.CallOp, functions: Mapping[str, func.FuncOp], calling: Sequence[str]
) -> func.FuncOp:
    """The function that is called.

    Raises InputError if it does not exist, or if it calls itself.

    Args:
        calling: the functions that are being called.
    """
    name = call.callee.string_value()
    if name not in functions:
        raise InputError(f"{call.name} at {place(call)}: no function @{name}")
    if name in calling:
        raise InputError(f"{call.name} at {place(call)}: @{name} calls itself")
    return functions[name]
