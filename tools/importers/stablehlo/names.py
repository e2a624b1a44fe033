"""The names of operations, from what their locations say.

JAX names an operation by the functions that it was traced in: `jit(net)/layer_0/dot_general`. The
first part is the same for all, so it is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ....ir.provenance import named
from ....ir.upstream import FileLineColLoc, LocationAttr, NameLoc, UnregisteredOp
from ..building import Names

MOST_NAME = 200
"""The most characters of a name; of longer ones, the end is kept. Assumed: longer ones were not
written by people."""

_WRAPPED = re.compile(r"(?:jit|pjit|xla_call)\(([^()]*)\)")

_OTHER = re.compile(r"[^\w./@()<>\[\]'-]+")


def name_all(ops: Iterable[Operation]) -> None:
    """Give each operation a name of its own, and the place in the user's file.

    JAX gives the name of a function to all operations that compute it. The one that computes most
    keeps it, and the others get numbers.
    """
    taken = Names()
    for op in sorted(ops, key=_is_beside):
        said, line = parts_of(op.location)
        name = taken.unique(short_name(said) or operation_name(op).rpartition(".")[2])
        op.location = named(name, line)


def operation_name(op: Operation) -> str:
    """What an operation is, which abele may not know."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


_BESIDE = ("stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.reshape")


def _is_beside(op: Operation) -> bool:
    """Whether an operation only prepares operands of another, or is inside one."""
    outer = op.parent_op()
    return op.name in _BESIDE or (outer is not None and outer.name.startswith("stablehlo."))


def parts_of(location: LocationAttr) -> tuple[str, LocationAttr | None]:
    """The name that a location says, and the line of a file, without its folder."""
    name, place = "", location
    if isinstance(location, NameLoc):
        name, place = location.desc.data, location.location
    if not isinstance(place, FileLineColLoc):
        return name, None
    file = os.path.basename(place.filename.data.replace("\\", "/")) or place.filename.data
    return name, FileLineColLoc(StringAttr(file), place.line, place.column)


def short_name(name: str) -> str:
    """A name without the outermost function, and without what only says how it was traced."""
    parts = [part for part in _WRAPPED.sub(r"\1", name).split("/") if part]
    kept = "/".join(parts[1:] if len(parts) > 1 and "(" in name.partition("/")[0] else parts)
    return _OTHER.sub("_", kept)[-MOST_NAME:]
