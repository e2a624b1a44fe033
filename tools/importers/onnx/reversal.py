"""Reverses sequences: whole, or up to a length that is known only in a run."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value
from .node import Importer, Node, Results


def reversed_in_time(node: Node, value: SSAValue, lengths: Value | None) -> SSAValue:
    """The sequences in a value of [steps, batch, ...] in reverse.

    Args:
        lengths: the number of steps of each sequence that are reversed, (batch,) integers; later
            steps stay in place. None for all steps.
    """
    shape = nn.shape_of(value)
    steps, batch, *rest = shape
    if steps == 1:
        return value
    if lengths is None:
        starts, strides = [steps - 1, *[0] * (len(shape) - 1)], [-1, *[1] * (len(shape) - 1)]
        return node.add(nn.SliceOp(value, starts, strides, shape))
    rows = node.reshape(value, (steps * batch, *rest))
    return node.reshape(node.add(nn.GatherOp(rows, _rows(node, lengths, steps, batch), 0)), shape)


def _rows(node: Node, lengths: Value, steps: int, batch: int) -> SSAValue:
    """For each step and sequence, the row to read: (steps * batch,)."""
    node.check_table(steps, batch)
    times = np.arange(steps, dtype=np.int32)[:, None]
    columns = np.arange(batch, dtype=np.int32)[None]
    known = node.graph.known(lengths)
    if known is not None:
        bad = known[(known < 0) | (known > steps)]
        if bad.size:
            raise node.bad(f"sequence length {bad.flat[0]}; need 0..{steps}")
        wanted = known.astype(np.int32)
        from_step = np.where(times < wanted, wanted - 1 - times, times)
        flat = (from_step * batch + columns).astype(np.int32).reshape(-1)
        return node.emitted(flat)

    def constant(values: np.ndarray) -> SSAValue:
        return node.emitted(values)

    given = node.reshape(node.cast(node.graph.emitted(lengths), i32), (1, batch))
    last = node.add(nn.ShiftOp(given, -1.0))
    within = node.add(nn.LessOp(constant(times), given))
    turned = node.add(nn.SubOp(last, constant(times)))
    from_step = node.add(nn.SelectOp(within, turned, constant(times)))
    scaled = node.add(nn.MulOp(from_step, node.constant(batch, from_step)))
    return node.reshape(node.add(nn.AddOp(scaled, constant(columns))), (steps * batch,))


def _reverse_sequence(node: Node) -> Results:
    shape = node.shape(0)
    time, batch = node.integer("time_axis", 0), node.integer("batch_axis", 1)
    if {time, batch} != {0, 1} or len(shape) < 2:
        raise node.bad(
            f"time_axis {time} and batch_axis {batch} of rank {len(shape)}; need 0 and 1, or 1 "
            "and 0, of rank 2 or more"
        )
    if node.shape(1) != (shape[batch],):
        raise node.bad(f"sequence_lens of shape {list(node.shape(1))}; need [{shape[batch]}]")
    order = [time, batch, *range(2, len(shape))]
    value = node[0]
    if time == 0:
        return reversed_in_time(node, value, node.value(1))
    turned = reversed_in_time(node, node.add(nn.TransposeOp(value, order)), node.value(1))
    return node.add(nn.TransposeOp(turned, order))


REVERSALS: dict[str, Importer] = {"ReverseSequence": _reverse_sequence}
