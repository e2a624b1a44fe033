"""What micro-batches keep in memory, and what they replace, as a line for the user."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects import nn
from ...dialects.control import RepeatOp
from ...ir.provenance import origin
from ...ir.upstream import ModuleOp
from ...ir.xdsl.walk import operations
from ...passes.gradients.micro_batches import STEP
from ...passes.narrow_stashes import stashes_of
from ...passes.plans.fused import FusedGroups
from .recomputation.memory_over_time import bytes_once


def told_sums(module: ModuleOp) -> Iterator[str]:
    """A line for each loop over the parts of a batch: the bytes of its sums, those of activations
    that it replaces, and whether that saves memory.

    Args:
        module: at nn.
    """
    with FusedGroups(module):
        stashes = list(stashes_of(module))
        for loop in [op for op in operations(module) if isinstance(op, RepeatOp)]:
            if not _is_of_parts(loop):
                continue
            sums = sum(map(_bytes, filter(_is_new, loop.initial)))
            inside = [each for each in stashes if each.op.parent is loop.body.block]
            waiting = [v for each in inside if not _is_of_parts(each.op) for v in each.readers]
            replaced = sum(map(_bytes, waiting)) * (loop.count.value.data - 1)
            line = (
                f"micro-batches: sums of gradients take {sums:,} bytes, over all tiles; they "
                f"replace {replaced:,} bytes of activations, which the other parts of the batch "
                "would keep"
            )
            yield line if sums < replaced else f"{line}: this saves no memory"


def _is_of_parts(op: Operation) -> bool:
    """Whether an operation only reads or collects parts of a batch."""
    return (origin(op) or "").split("/")[-1] == STEP


def _is_new(value: SSAValue) -> bool:
    """Whether a loop carries a value only for its sums: states are in memory anyway."""
    return not (isinstance(value, OpResult) and isinstance(value.op, nn.LoadOp))


def _bytes(value: SSAValue) -> int:
    return bytes_once(value) if isinstance(value.type, TensorType) else 0
