"""Factors behind a convolution, in its weights."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .own_rules import own_rules


@dataclass(frozen=True)
class FoldScales(ModulePass):
    """Multiply weights by the factors behind their convolution. nn -> nn.

    The products are operations until fold-constants computes them. Rules: rules/fold_scales.rw.
    """

    name = "fold-scales"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        own_rules("fold_scales").apply(op)
