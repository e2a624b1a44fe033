"""Compute operations on constants once, at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ..backends.codelets.scalar import Array
from ..backends.reference import evaluate_pure, is_evaluable, tensor_kind
from ..dialects import nn
from ..dialects.levels import NN
from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.edit import Edit, source_at
from ..ir.provenance import locate
from ..ir.rewriting import may_rewrite

MAX_GROWTH = 4
"""How many times the bytes of its operands a folded result may have.

Chosen by judgement, not measured: a broadcast is cheaper to compute than to keep on every tile.
"""

MAX_FREE_BYTES = 1 << 16
"""Bytes up to which a result is folded however small its operands are.

Chosen by judgement, not measured: spread over the tiles, 64 KiB are a few bytes of each.
"""


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Replace operations on constants by constants. nn -> nn.

    The reference computes the value in float64 and rounds it once. A state that no operation stores
    to counts as a constant, but its load stays a load. An operation whose results would be more
    than 4 times as large as its operands, and larger than 64 KiB, is left to the machine.
    """

    name = "fold-constants"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold in the order of the program; then replace, users first."""
        known = _loads(op)
        folded: list[Operation] = []
        for each in op.walk():
            if isinstance(each, nn.ConstantOp):
                known[each.result] = each.value.array
            elif is_evaluable(each) and all(v in known for v in each.operands):
                operands = [known[v] for v in each.operands]
                if _grows(each, operands):
                    continue
                known.update(zip(each.results, evaluate_pure(each, operands), strict=True))
                folded.append(each)
        for each in reversed(folded):
            if may_rewrite():
                _replace(each, known, ctx)


def _loads(module: ModuleOp) -> dict[SSAValue, Array]:
    """The values of loads from states that no operation stores to."""
    ops = list(module.walk())
    states = {op.sym_name.data: op for op in ops if isinstance(op, nn.StateOp)}
    for op in ops:
        if isinstance(op, nn.StoreOp):
            states.pop(op.state.string_value(), None)
    loads = [op for op in ops if isinstance(op, nn.LoadOp)]
    return {
        load.result: states[load.state.string_value()].value.array
        for load in loads
        if load.state.string_value() in states
    }


def _grows(op: Operation, operands: Sequence[Array]) -> bool:
    """Whether the results are far larger than the operands; their types decide."""
    bytes_made = sum(_bytes(result) for result in op.results)
    return bytes_made > max(MAX_GROWTH * sum(a.nbytes for a in operands), MAX_FREE_BYTES)


def _bytes(value: SSAValue) -> int:
    shape, dtype = tensor_kind(value.type)
    return prod(shape) * dtype.itemsize


def _replace(op: Operation, known: dict[SSAValue, Array], ctx: Context) -> None:
    """Replace a folded operation; its folded users are gone, so the uses left are real ones."""
    with Edit(source_at(f"fold {op.name}", _replace), op) as edit:
        values: list[SSAValue | None] = []
        for result in op.results:
            if result.first_use is None:
                values.append(None)
                continue
            array = known[result]
            blob = ctx.blobs.add(array) if isinstance(ctx, AbeleContext) else Blob(array)
            constant = nn.ConstantOp(blob)
            locate(constant, op)
            edit.insert(constant, InsertPoint.before(op))
            values.append(constant.result)
        edit.replace(op, values)
