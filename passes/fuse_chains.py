"""Biases, activations and residuals, in the operation before them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .own_rules import own_rules


@dataclass(frozen=True)
class FuseChains(ModulePass):
    """Compute what follows an operation in the operation itself. nn -> nn.

        %1 = nn.conv %x, %w stride [1] ...      %1 = nn.conv %x, %w stride [1] ... then [add] (%b)
        %2 = nn.add %1, %b

    Rules: rules/fuse_chains.rw.
    """

    name = "fuse-chains"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        own_rules("fuse_chains").apply(op)
