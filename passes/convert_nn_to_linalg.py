"""Convert nn to MLIR's own dialects: linalg, tensor, arith, math and scf on tensors."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.levels import NN
from ..dialects.mlir import MLIR
from ..ir.conversion import Patterns
from ..ir.upstream import Context, ModuleOp, ModulePass
from .exporting.export import export, export_patterns
from .nn_to_linalg import control_flow
from .nn_to_linalg.conversion import ToLinalg

PATTERNS: Patterns[ToLinalg] = export_patterns(
    control_flow.repeat, control_flow.while_, control_flow.branch
)
"""What converts each kind of operation."""


@dataclass(frozen=True)
class ConvertNnToLinalg(ModulePass):
    """Convert nn to linalg, tensor, arith, math and scf on tensors.

    Composites are decomposed, and groups dissolved. An operator becomes loops over elements
    (`linalg.generic`) that its space and its body describe. Operations of tensor before it add
    padding, and spread and cut operands that indices of linalg cannot describe.

    States that the program changes are arguments and results of @main, after the others. Other
    states are constants, or arguments too. Operations that are not covered are refused by name, all
    at once. An index outside its table is a fault in nn; in the result, what it names is undefined.

    Attributes:
        arguments: whether states that the program only reads are arguments of @main too.
    """

    name = "convert-nn-to-linalg"
    takes = NN
    leaves = MLIR
    arguments: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        export(
            ctx,
            op,
            lambda states: ToLinalg(PATTERNS, "linalg", states),
            arguments=self.arguments,
        )
