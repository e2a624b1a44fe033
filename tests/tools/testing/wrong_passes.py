"""Passes with a bug each, of the classes that compilers have; and a relation that never holds."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, f16, f32
from xdsl.ir import Operation

from abele.dialects import nn, partition
from abele.dialects.partition import laid_out, partition_type
from abele.ir.provenance import origin
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.tools.testing.generators.program import Program
from abele.tools.testing.oracle.relations import Compiled


def never_holds(before: Program, after: Program, compiled: Compiled) -> str | None:
    """Says that every program is wrong."""
    return "no"


@dataclass(frozen=True)
class SwapSub(ModulePass):
    """Takes a difference to be commutative."""

    name = "swap-sub"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.SubOp):
                left, right = each.operands[:2]
                each.operands[0], each.operands[1] = right, left


@dataclass(frozen=True)
class DropOtherUses(ModulePass):
    """Fuses an activation into what it follows, and forgets that others read that too."""

    name = "drop-other-uses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, nn.ReluOp | nn.NegOp | nn.AbsOp):
                value = each.operands[0]
                if isinstance(value.owner, Operation) and nn.can_chain(value.owner):
                    value.replace_uses_with_if(
                        each.results[0], lambda use, each=each: _follows(use.operation, each)
                    )


def _follows(op: Operation, other: Operation) -> bool:
    return op is not other and op.parent is other.parent and other.is_before_in_block(op)


@dataclass(frozen=True)
class DropRemainder(ModulePass):
    """Sums whole vectors of four, and no more."""

    name = "drop-remainder"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, nn.ReduceOp) and nn.shape_of(each.operand)[-1:] > (4,):
                *outer, n = nn.shape_of(each.operand)
                if n % 4 and len(outer) in nn.values_of(each.axes):
                    rank = len(outer) + 1
                    sizes = [*outer, n - n % 4]
                    cut = nn.SliceOp(each.operand, [0] * rank, [1] * rank, sizes)
                    assert each.parent is not None
                    each.parent.insert_op_before(cut, each)
                    each.operands[0] = cut.result


@dataclass(frozen=True)
class NarrowPartials(ModulePass):
    """Keeps what is still to be summed in half of the bytes."""

    name = "narrow-partials"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            gathers = isinstance(each, partition.RelayoutOp) and any(
                partition_type(v).tensor.element_type == f16 for v in each.operands
            )
            partials = (origin(each) or "").endswith("/partials")
            if gathers or (isinstance(each, partition.ComputeOp) and partials):
                type_ = partition_type(each.results[0])
                if type_.tensor.element_type == f32:
                    narrow = TensorType(f16, type_.tensor.get_shape())
                    each.results[0]._type = laid_out(narrow, type_.layout.data)
