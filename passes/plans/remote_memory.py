"""Whether remote memory holds the states whose home it is."""

from __future__ import annotations

from xdsl.ir import Operation

from ...backends.memory import remote_problem
from ...backends.target import PRESETS, Target
from ...dialects import nn
from ...dialects.home import is_remote
from ...dialects.steps import Remote
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp


def check_remote_states(module: ModuleOp, target: Target) -> None:
    """Check that a target has the remote memory that a module of nn or tile asks for.

    Raises InputError for a target without any, and DoesNotFit for one with too little.
    """
    sizes = {op: size for op in module.body.block.ops if (size := _remote_bytes(op)) is not None}
    if not sizes:
        return
    if not target.remote_bytes:
        having = ", ".join(name for name, each in PRESETS.items() if each.remote.bytes)
        first = next(iter(sizes))
        raise InputError(
            f"{first.name} at {place(first)}: home in remote memory, and target "
            f"{target.called} has none (remote.gbytes = 0); need one of {having}, or remote.gbytes"
        )
    problem = remote_problem(sum(sizes.values()), target)
    if problem is not None:
        raise problem


def _remote_bytes(op: Operation) -> int | None:
    """The bytes that a state takes of remote memory; None for any other operation."""
    if isinstance(op, nn.StateOp) and is_remote(op):
        return op.value.array.nbytes
    return op.bytes if isinstance(op, Remote) else None
