"""Rows of tables by the number of a turn: what loops read and write one turn at a time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects import nn
from .emit import Emitter


def row_of(emit: Emitter, table: SSAValue, turn: SSAValue, axis: int = 0) -> SSAValue:
    """The part of a table at a turn, without the axis of turns. turn: an i32 without axes."""
    shape = nn.shape_of(table)
    row = emit(nn.GatherOp(table, emit.reshaped(turn, (1,)), axis))
    return emit.reshaped(row, (*shape[:axis], *shape[axis + 1 :]))


def with_row(emit: Emitter, table: SSAValue, row: SSAValue, turn: SSAValue) -> SSAValue:
    """A table of which the row of a turn is replaced; the first axis is that of turns."""
    shape = nn.shape_of(table)
    update = emit.reshaped(row, (1, *shape[1:]))
    index = emit.reshaped(turn, (1,) * len(shape))
    return emit(nn.UpdateOp(update, index, table, "last", 0))


def zeros(emit: Emitter, like: SSAValue, first: Sequence[int] = ()) -> SSAValue:
    """Zeros of the type of a value, or a table of them with more axes before its own."""
    shape = (*first, *nn.shape_of(like))
    return emit.expanded(emit.zero(like), shape)


def nothing_at(emit: Emitter, value: SSAValue) -> SSAValue:
    """Zeros of the shape of a value, in a type wide enough for sums; of a weight, where it lies.

    The planner lays out what a loop carries as it is when the loop begins. Zeros that are computed
    from a weight lie as it does; else AlexNet's gradients would be moved at each turn.
    """
    loaded = isinstance(value.owner, nn.LoadOp)
    return widened(emit, emit(nn.ScaleOp(value, 0.0)) if loaded else zeros(emit, value))


def widened(emit: Emitter, value: SSAValue) -> SSAValue:
    """A value in a type wide enough for sums."""
    element = nn.wide_element(nn.element_of(value))
    return value if nn.element_of(value) == element else emit(nn.CastOp(value, element))


def narrowed(emit: Emitter, value: SSAValue, like: SSAValue) -> SSAValue:
    """A value in the element type of another one."""
    element = nn.element_of(like)
    return value if nn.element_of(value) == element else emit(nn.CastOp(value, element))
