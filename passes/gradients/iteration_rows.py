"""Rows of tables, read and written by loops: one row per iteration."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects import nn
from .emit import Emitter


def row_of(emit: Emitter, table: SSAValue, iteration: SSAValue, axis: int = 0) -> SSAValue:
    """The row of a table at an iteration, without its axis.

    Args:
        iteration: the number, an i32 without axes.
    """
    shape = nn.shape_of(table)
    row = emit(nn.GatherOp(table, emit.reshaped(iteration, (1,)), axis))
    return emit.reshaped(row, (*shape[:axis], *shape[axis + 1 :]))


def with_row(emit: Emitter, table: SSAValue, row: SSAValue, iteration: SSAValue) -> SSAValue:
    """A table with the row of an iteration replaced. The first axis numbers the iterations."""
    shape = nn.shape_of(table)
    update = emit.reshaped(row, (1, *shape[1:]))
    index = emit.reshaped(iteration, (1,) * len(shape))
    return emit(nn.UpdateOp(update, index, table, "last", 0))


def zeros(emit: Emitter, like: SSAValue, first: Sequence[int] = ()) -> SSAValue:
    """Zeros of the type of a value, or a table of them with leading axes `first`."""
    shape = (*first, *nn.shape_of(like))
    return emit.expanded(emit.zero(like), shape)


def nothing_at(emit: Emitter, value: SSAValue) -> SSAValue:
    """Zeros of the shape of a value in a type wide enough for sums, computed from a weight if it is
    one.

    The planner chooses the layout of a carried value from its initial value. Zeros that are
    computed from a weight have the weight's layout; without this, AlexNet's gradients would be
    moved in each iteration.
    """
    loaded = isinstance(value.owner, nn.LoadOp)
    return widened(emit, emit(nn.ScaleOp(value, 0.0)) if loaded else zeros(emit, value))


def widened(emit: Emitter, value: SSAValue) -> SSAValue:
    """A value cast to a type wide enough for sums."""
    element = nn.wide_element(nn.element_of(value))
    return value if nn.element_of(value) == element else emit(nn.CastOp(value, element))


def narrowed(emit: Emitter, value: SSAValue, like: SSAValue) -> SSAValue:
    """A value cast to the element type of another value."""
    element = nn.element_of(like)
    return value if nn.element_of(value) == element else emit(nn.CastOp(value, element))
