"""Larger tables in place of values with padding: what is written behind a value is written into
the table, in place."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import SSAValue

from ...dialects import nn


def read_room(value: SSAValue, table: SSAValue, padded: Collection[int]) -> None:
    """Let operations that add room behind a value read a table instead, which has this room.

    The value is the first part of the table. What lies behind elements that exist is padding, which
    may hold anything. So a row that is joined to a cache is written into the table that holds the
    cache, which is not copied.

    Args:
        padded: the axes along which a run says how many elements exist.
    """
    shape = nn.shape_of(table)
    for use in tuple(value.uses):
        op = use.operation
        if (
            isinstance(op, nn.PadOp)
            and nn.shape_of(op.result) == shape
            and op.mode.data == "constant"
            and not any(nn.values_of(op.low))
            and all(n == 0 or axis in padded for axis, n in enumerate(nn.values_of(op.high)))
        ):
            op.result.replace_all_uses_with(table)
            block = op.parent
            assert block is not None
            block.erase_op(op)
