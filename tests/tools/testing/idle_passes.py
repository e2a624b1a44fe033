"""Passes of several levels and idioms that change programs without changing what they mean."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from abele.dialects import nn, partition, tile
from abele.ir.upstream import Context, ModuleOp, ModulePass


def mark(op: Operation) -> None:
    """Change an operation in a way that nothing reads."""
    op.attributes["seen"] = StringAttr("yes")


@dataclass(frozen=True)
class MarkRelayouts(ModulePass):
    """Marks relayouts. Its code names an operation of partition."""

    name = "mark-relayouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, partition.RelayoutOp):
                mark(each)


@dataclass(frozen=True)
class MarkCopies(ModulePass):
    """Marks copies. Its code names an operation of tile by text."""

    name = "mark-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if each.name == "tile.copy":
                mark(each)


@dataclass(frozen=True)
class MarkVariables(ModulePass):
    """Marks what has a property that only variables of tile have. Its code names no operation."""

    name = "mark-variables"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if "sym_name" in each.properties and each.name.endswith("variable"):
                mark(each)


@dataclass(frozen=True)
class MarkBoth(ModulePass):
    """Names operations of two levels, and changes those of the lower one."""

    name = "mark-both"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, tile.CopyOp) and not isinstance(each, nn.ReluOp):
                mark(each)


@dataclass(frozen=True)
class MarkNothing(ModulePass):
    """Looks for an operation that is nowhere."""

    name = "mark-nothing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if each.name == "test.op":
                mark(each)


@dataclass(frozen=True)
class MarkPlans(ModulePass):
    """Marks operations that have a plan."""

    name = "mark-plans"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.AddOp | nn.MatMulOp) and "plan" in each.attributes:
                mark(each)
