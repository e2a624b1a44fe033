"""Convert nn to MLIR's own dialects: linalg, tensor, arith, math and scf on tensors."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func

from ..dialects import control, nn
from ..dialects.levels import NN
from ..dialects.mlir import MLIR
from ..dialects.structured import Movement, Reinterpretation, Structured
from ..ir.conversion import Patterns, replace_body
from ..ir.upstream import Context, ModuleOp, ModulePass
from .decompose import Decompose
from .exporting import operators, program
from .nn_to_linalg import control_flow
from .nn_to_linalg.conversion import ToLinalg
from .unfuse import Unfuse

PATTERNS: Patterns[ToLinalg] = Patterns(
    (nn.ConcatOp, program.converted_concat),
    (Structured, operators.converted_structured),
    (Movement, operators.converted_movement),
    (Reinterpretation, operators.converted_reinterpretation),
    (nn.StateOp, program.converted_state),
    (nn.LoadOp, program.converted_load),
    (nn.StoreOp, program.converted_store),
    (nn.ConstantOp, program.converted_constant),
    (func.FuncOp, program.converted_function),
    (func.CallOp, program.converted_call),
    (control.RepeatOp, control_flow.repeat),
    (control.WhileOp, control_flow.while_),
    (control.IfOp, control_flow.branch),
)
"""What converts each kind of operation. Terminators are converted with their regions."""


@dataclass(frozen=True)
class ConvertNnToLinalg(ModulePass):
    """Convert nn to linalg, tensor, arith, math and scf on tensors.

    Composites are decomposed, and groups dissolved. An operator becomes loops over elements
    (`linalg.generic`) that its space and its body describe. Padding, and what indices may not be,
    becomes operations of tensor before.

    States that the program changes are arguments and results of @main, after the others. Other
    states are constants, or arguments too. Operations that are not covered are refused by name, all
    at once. Indices that a table does not have are no faults any more: what they name is undefined.

    Attributes:
        arguments: whether states that the program only reads are arguments of @main too.
    """

    name = "convert-nn-to-linalg"
    takes = NN
    leaves = MLIR
    arguments: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        Unfuse().apply(ctx, op)
        Decompose().apply(ctx, op)
        states = program.States.of(op, all_are_arguments=self.arguments)
        new = ToLinalg(PATTERNS, "linalg", states)
        for each in op.body.block.ops:
            new.convert(each)
        new.finish()
        replace_body(op, new.block)
