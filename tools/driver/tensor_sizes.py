"""Refuse tensors that all tiles together cannot hold, before planning them."""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ...backends.reference import tensor_kind
from ...backends.target import Target
from ...dialects import nn
from ...ir.provenance import place
from ...ir.support.errors import DoesNotFit
from ...ir.upstream import ModuleOp
from ...passes.planner.graph import loop_of_runs

PLANNED_ELEMENTS = 1 << 20
"""Tensors with at most this many elements are planned even if they cannot fit."""

PLANNED_STORED_ELEMENTS = 1 << 28
"""The same for states and constants. Planning them shows the size of each layer's weights."""


def refuse_tensors_larger_than(module: ModuleOp, target: Target) -> None:
    """Raise DoesNotFit for a huge tensor that all tiles together cannot hold.

    A plan shows best what fills the tiles of a program that is too large. But planning takes memory
    for each element of such a tensor.
    """
    available = target.usable_bytes_per_tile * target.tiles
    fewer = "" if loop_of_runs(module) is None else "fewer steps in a run, "
    for op in module.walk():
        planned = PLANNED_STORED_ELEMENTS if _is_stored(op) else PLANNED_ELEMENTS
        values = [*op.results, *(v for region in op.regions for b in region.blocks for v in b.args)]
        for value in values:
            if not isinstance(value.type, TensorType):
                continue
            shape, dtype = tensor_kind(cast(Attribute, value.type))
            if prod(shape) > planned and prod(shape) * dtype.itemsize > available:
                raise DoesNotFit(
                    f"{dtype.name}{list(shape)} of {op.name} at {place(op)}",
                    prod(shape) * dtype.itemsize,
                    available,
                    units="bytes on all tiles together",
                    remedy=f"{fewer}a smaller batch, or a target with more memory",
                )


def _is_stored(op: Operation) -> bool:
    """Whether the result of an operation stays on the tiles: a state, a constant, or a number that
    is repeated, which becomes a constant."""
    if isinstance(op, nn.ExpandOp) and isinstance(op.operand.owner, nn.ConstantOp):
        return prod(nn.shape_of(op.operand)) == 1
    return isinstance(op, nn.LoadOp | nn.ConstantOp)
