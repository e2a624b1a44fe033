"""Convert MLIR's own dialects to nn: linalg, tensor, arith, math and scf on tensors."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, func, linalg, scf, tensor
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation

from ..dialects.levels import NN
from ..dialects.mlir import MLIR, has_mlir
from ..ir.conversion import Patterns, replace_body
from ..ir.upstream import Context, ModuleOp, ModulePass
from .linalg_to_nn import control_flow, generic, scalars, tensors
from .linalg_to_nn.conversion import ToNn

PATTERNS: Patterns[ToNn] = Patterns(
    (func.FuncOp, control_flow.function),
    (func.CallOp, control_flow.call),
    (scf.IfOp, control_flow.branch),
    (scf.ForOp, control_flow.loop),
    (scf.WhileOp, control_flow.while_),
    (arith.ConstantOp, scalars.constant),
    *((each, scalars.scalar) for each in scalars.SCALARS),
    (linalg.ops.BroadcastOp, generic.broadcast),
    (linalg.ops.ReduceOp, generic.reduce),
    (linalg.ops.PoolingNchwMaxOp, generic.pooling),
    (LinalgStructuredOperation, generic.structured),
    (tensor.CastOp, tensors.cast_shape),
    (tensor.CollapseShapeOp, tensors.reshaped),
    (tensor.ConcatOp, tensors.concat),
    (tensor.DimOp, tensors.dim),
    (tensor.EmptyOp, tensors.empty),
    (tensor.ExpandShapeOp, tensors.reshaped),
    (tensor.ExtractOp, tensors.extract),
    (tensor.ExtractSliceOp, tensors.extract_slice),
    (tensor.FromElementsOp, tensors.from_elements),
    (tensor.InsertOp, tensors.insert),
    (tensor.InsertSliceOp, tensors.insert_slice),
    (tensor.PadOp, tensors.pad),
    (tensor.ReshapeOp, tensors.reshaped),
    (tensor.SplatOp, tensors.splat),
)
"""What converts each kind of operation. Terminators are converted with their regions."""


@dataclass(frozen=True)
class ConvertLinalgToNn(ModulePass):
    """Convert linalg, tensor, arith, math and scf on tensors to operations of nn.

    Numbers become tensors without axes, and an index is an i64. A body becomes operations on whole
    tensors, one for each of its own, and the last one also merges points; only what a body needs is
    computed. Sums begin with the elements of `outs`, unless these change nothing.

    A module without such operations stays as it is. Operations that are not covered are refused by
    name, all at once.
    """

    name = "convert-linalg-to-nn"
    takes = MLIR
    leaves = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        if not has_mlir(op):
            return
        new = ToNn(PATTERNS)
        for each in op.body.block.ops:
            new.convert(each)
        new.finish()
        control_flow.only_function_is_the_entry(new.block)
        replace_body(op, new.block)
