"""The nodes and lines of the model that an operation was made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation

from ....ir.provenance import is_known, origin, origin_names
from ....ir.upstream import FusedLoc, LocationAttr


def made_from(op: Operation) -> tuple[str, ...]:
    """The nodes and lines that an operation was made from, each once, in program order."""
    parts: Sequence[LocationAttr] = (op.location,)
    if isinstance(op.location, FusedLoc):
        parts = cast("ArrayAttr[LocationAttr]", op.location.locations).data
    return tuple(dict.fromkeys(name for part in parts for name in origin_names(part)))


def node_of(op: Operation) -> str | None:
    """The origin of an operation. For several lines, the last line, whose place the operation has
    taken.
    """
    return made_from(op)[-1] if len(origin_names(op)) == 1 else origin(op)


def is_step(op: Operation) -> bool:
    """Whether an operation only serves another operation made from the same nodes.

    A rewrite gives one location to all operations that it makes, and makes the root's replacement
    last.
    """
    uses = (use.operation for result in op.results for use in result.uses)
    return is_known(op.location) and any(user.location == op.location for user in uses)
