"""What is the same in every run, computed before the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..backends.codelets.scalar import Array
from ..backends.reference import evaluate_pure, is_evaluable, tensor_kind
from ..dialects import nn
from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.provenance import locate
from ..ir.rewriting import Rewrite, Source, may_rewrite

MAX_GROWTH = 4
MAX_FREE_BYTES = 1 << 16


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Replace operations on constants by constants. nn -> nn.

    The value is the reference's: computed in float64, rounded once. A state that nothing stores to
    is a constant to the operations that read it, but its load stays a load. What makes constants
    more than 4 times as large as what it reads, and larger than 64 KiB, is left to the machine.
    """

    name = "fold-constants"

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
    """Whether the results are far larger than what they are made from, known from types alone."""
    bytes_made = sum(_bytes(result) for result in op.results)
    return bytes_made > max(MAX_GROWTH * sum(a.nbytes for a in operands), MAX_FREE_BYTES)


def _bytes(value: SSAValue) -> int:
    shape, dtype = tensor_kind(value.type)
    return prod(shape) * dtype.itemsize


def _replace(op: Operation, known: dict[SSAValue, Array], ctx: Context) -> None:
    """Erase a folded operation; users come first, so what is still used is used unfolded."""
    block = op.parent
    assert block is not None
    rewrite = Rewrite(_source(op.name), op)
    for result in op.results:
        if result.first_use is not None:
            array = known[result]
            blob = ctx.blobs.add(array) if isinstance(ctx, AbeleContext) else Blob(array)
            constant = nn.ConstantOp(blob)
            block.insert_op_before(constant, op)
            locate(constant, op)
            rewrite.inserted(constant)
            rewrite.replaced(op, [constant.result if r is result else None for r in op.results])
            result.replace_all_uses_with(constant.result)
    rewrite.removed(op)
    Rewriter.erase_op(op)
    rewrite.done()


@cache
def _source(name: str) -> Source:
    return Source(f"fold {name}", Path(__file__).name, _replace.__code__.co_firstlineno)
