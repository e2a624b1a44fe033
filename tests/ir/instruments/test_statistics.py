from dataclasses import dataclass

import pytest
from some_passes import Append, Crash
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.test import TestOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from abele.ir.context import AbeleContext
from abele.ir.instruments.statistics import Statistics, count
from abele.ir.pass_manager import PassManager
from abele.ir.provenance import LocatingWalker


class EraseTests(RewritePattern):
    def match_and_rewrite(self, op, rewriter: PatternRewriter) -> None:
        if isinstance(op, TestOp):
            rewriter.erase(op)


@dataclass(frozen=True)
class Erase(ModulePass):
    name = "erase"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        count("modules seen")
        count("things", 4)
        LocatingWalker(EraseTests()).rewrite_module(op)


def test_operations_rewrites_and_own_counts():
    statistics = Statistics()
    PassManager((Append(3), Erase()), (statistics,)).run(AbeleContext(), ModuleOp([]))
    first, *appended, second, erased, rule, most, least = statistics.table().splitlines()
    assert first == "append: 1 -> 4 operations"
    assert appended == ["  0 -> 3 test.op"]
    assert second == "erase: 4 -> 1 operations"
    assert erased == "  3 -> 0 test.op"
    assert rule.startswith("  3 rewrites by EraseTests (test_statistics.py:")
    assert (most, least) == ("  4 things", "  1 modules seen")


def test_nothing_is_counted_without_an_instrument():
    statistics = Statistics()
    PassManager((Erase(),)).run(AbeleContext(), ModuleOp([TestOp()]))
    with pytest.raises(RuntimeError):
        PassManager((Crash(),), (statistics,)).run(AbeleContext(), ModuleOp([]))
    Erase().apply(AbeleContext(), ModuleOp([TestOp()]))
    assert statistics.passes == []
    PassManager((Append(),), (statistics,)).run(AbeleContext(), ModuleOp([]))
    assert [each.counts.total() for each in statistics.passes] == [0]


def test_one_rewrite_is_counted_in_the_singular():
    statistics = Statistics()
    PassManager((Erase(),), (statistics,)).run(AbeleContext(), ModuleOp([TestOp()]))
    rule = statistics.table().splitlines()[2]
    assert rule.startswith("  1 rewrite by EraseTests (")
