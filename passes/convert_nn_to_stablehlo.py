"""Convert nn to stablehlo, which other compilers and interpreters take."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func

from ..dialects import control, nn
from ..dialects.levels import NN, STABLEHLO
from ..dialects.structured import Movement, Reinterpretation, Structured
from ..ir.conversion import Patterns, replace_body
from ..ir.upstream import Context, ModuleOp, ModulePass
from .decompose import Decompose
from .exporting import operators, program
from .nn_to_stablehlo import control_flow
from .nn_to_stablehlo.conversion import ToStablehlo
from .unfuse import Unfuse

PATTERNS: Patterns[ToStablehlo] = Patterns(
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
class ConvertNnToStablehlo(ModulePass):
    """Convert nn to stablehlo.

    Composites are decomposed, and groups dissolved. The space and the body of an operator decide
    what it becomes: a product (`dot_general`), a convolution, merged windows (`reduce_window`), a
    gather of rows, or functions of whole tensors and a `reduce`.

    States that the program changes are arguments and results of @main, after the others. Other
    states are constants, or arguments too. Operations that are not covered are refused by name, all
    at once. Indices that a table does not have are no faults any more: what they name is undefined.

    Attributes:
        arguments: whether states that the program only reads are arguments of @main too.
    """

    name = "convert-nn-to-stablehlo"
    takes = NN
    leaves = STABLEHLO
    arguments: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        Unfuse().apply(ctx, op)
        Decompose().apply(ctx, op)
        states = program.States.of(op, all_are_arguments=self.arguments)
        new = ToStablehlo(PATTERNS, "stablehlo", states)
        for each in op.body.block.ops:
            new.convert(each)
        new.finish()
        replace_body(op, new.block)
