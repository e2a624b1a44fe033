"""Convert nn to stablehlo, which other compilers and interpreters take."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.levels import NN, STABLEHLO
from ..ir.conversion import Patterns
from ..ir.upstream import Context, ModuleOp, ModulePass
from .exporting.export import export, export_patterns
from .nn_to_stablehlo import control_flow
from .nn_to_stablehlo.conversion import ToStablehlo

PATTERNS: Patterns[ToStablehlo] = export_patterns(
    control_flow.repeat, control_flow.while_, control_flow.branch
)
"""What converts each kind of operation."""


@dataclass(frozen=True)
class ConvertNnToStablehlo(ModulePass):
    """Convert nn to stablehlo.

    Composites are decomposed, and groups dissolved. The space and the body of an operator decide
    what it becomes: a product (`dot_general`), a convolution, merged windows (`reduce_window`), a
    gather of rows, or functions of whole tensors and a `reduce`.

    States that the program changes are arguments and results of @main, after the others. Other
    states are constants, or arguments too. Operations that are not covered are refused by name, all
    at once. An index outside its table is a fault in nn; in the result, what it names is undefined.

    Attributes:
        arguments: whether states that the program only reads are arguments of @main too.
    """

    name = "convert-nn-to-stablehlo"
    takes = NN
    leaves = STABLEHLO
    arguments: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        export(
            ctx,
            op,
            lambda states: ToStablehlo(PATTERNS, "stablehlo", states),
            arguments=self.arguments,
        )
