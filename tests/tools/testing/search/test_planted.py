"""Wrong passes written in the usual idioms, at several levels: each is found, without a level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from abele.dialects import nn, partition, tile
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.tools.testing import Miscompiled, PassFailed, check_pass

from ..idle_passes import mark
from ..wrong_passes import SwapSub


def swap(op: Operation) -> None:
    """Exchange the first two operands."""
    op.operands[0], op.operands[1] = op.operands[1], op.operands[0]


# nn, in the usual way


class ReluBeforeClip(RewritePattern):
    """Leaves out a relu before a clip, wherever the clip starts."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.ClipOp, rewriter: PatternRewriter) -> None:
        relu = op.operand.owner
        if isinstance(relu, nn.ReluOp):
            op.operands[0] = relu.operand
            rewriter.notify_op_modified(op)


class NegOfNeg(RewritePattern):
    """Drops one negation of two."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.NegOp, rewriter: PatternRewriter) -> None:
        inner = op.operands[0].owner
        if isinstance(inner, nn.NegOp) and inner.operands[0].type == op.results[0].type:
            rewriter.replace(op, [], [inner.results[0]])


@dataclass(frozen=True)
class Patterns(ModulePass):
    """Two patterns in a greedy applier."""

    name = "patterns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        both = GreedyRewritePatternApplier([ReluBeforeClip(), NegOfNeg()])
        PatternRewriteWalker(both).rewrite_module(op)


# nn, by helpers that name their operations in text


def is_one_of(*names: str) -> Callable[[Operation], bool]:
    """Whether an operation has one of some names."""
    return lambda op: op.name in names


takes_maximum = is_one_of("nn.max", "nn.maximum")


def operand_of(op: Operation) -> SSAValue:
    """The second operand."""
    return op.operands[1]


@dataclass(frozen=True)
class ByHelpers(ModulePass):
    """Takes one operand of a maximum for the result."""

    name = "by-helpers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if takes_maximum(each) and operand_of(each).type == each.results[0].type:
                each.results[0].replace_all_uses_with(operand_of(each))


# nn, by a property of operations that no name tells


@dataclass(frozen=True)
class ByProperty(ModulePass):
    """Swaps the operands of whatever takes two of one type."""

    name = "by-property"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if len(each.operands) == 2 and each.operands[0].type == each.operands[1].type:
                swap(each)


# partition


class SwapComputed(RewritePattern):
    """Swaps the operands of a computation on two tensors of one type."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: partition.ComputeOp, rewriter: PatternRewriter) -> None:
        if len(op.operands) == 2 and op.operands[0].type == op.operands[1].type:
            swap(op)


@dataclass(frozen=True)
class SwapAllComputed(ModulePass):
    """One pattern, applied once to each operation."""

    name = "swap-all-computed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(SwapComputed(), apply_recursively=False).rewrite_module(op)


# tile


class DropCopies(RewritePattern):
    """Drops copies whose destination is an argument of nothing else."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CopyOp, rewriter: PatternRewriter) -> None:
        rewriter.erase(op)


@dataclass(frozen=True)
class DropAllCopies(ModulePass):
    """Drops copies between tiles."""

    name = "drop-all-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(DropCopies()).rewrite_module(op)


@dataclass(frozen=True)
class SwapNeighbours(ModulePass):
    """Swaps two copies or vertex sets that follow each other, by a walk."""

    name = "swap-neighbours"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            after = each.next_op
            if isinstance(each, tile.CopyOp) and isinstance(after, tile.VerticesOp):
                each.detach()
                after.parent.insert_op_after(each, after)
                mark(each)


@pytest.mark.parametrize(
    "tested",
    [
        SwapSub(),
        Patterns(),
        ByHelpers(),
        ByProperty(),
        SwapAllComputed(),
        DropAllCopies(),
        SwapNeighbours(),
    ],
    ids=lambda tested: tested.name,
)
def test_a_wrong_pass_is_found_in_any_idiom(tested: ModulePass, tmp_path: Path):
    with pytest.raises((Miscompiled, PassFailed)) as caught:
        check_pass(tested, examples=150, seed=1, folder=tmp_path, reduce_seconds=0)
    assert isinstance(caught.value, Miscompiled)
    assert caught.value.blamed == tested.name
    assert caught.value.examples <= 100
