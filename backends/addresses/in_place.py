"""Whether vertices overwrite an operand."""

from __future__ import annotations

from collections.abc import Mapping

from ...dialects.exchange import VariableOp
from ...dialects.steps import Vertices


def is_in_place(op: Vertices, operand: int, variables: Mapping[str, VariableOp]) -> bool:
    """Whether each point reads exactly the bytes of an operand that it writes itself."""
    source, target = variables[op.sources[operand]], variables[op.destination]
    return (
        source.start == target.start
        and source.dtype.itemsize == target.dtype.itemsize
        and op.structure().reads_in_place(operand)
    )
