"""Tensors in their simplest form."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .own_rules import own_rules


@dataclass(frozen=True)
class Canonicalize(ModulePass):
    """Replace operations by cheaper ones of the same bits. nn -> nn.

    Rules: rules/canonicalize.rw.
    """

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        own_rules("canonicalize").apply(op)
