from dataclasses import dataclass

import pytest
from some_passes import Append, Break, Nothing
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from abele.ir.context import AbeleContext
from abele.ir.instruments.verify_each import VerifyEach
from abele.ir.legality import row
from abele.ir.level import Level
from abele.ir.pass_manager import PassManager
from abele.ir.provenance import LocatingWalker

LEVELS = {
    "append": Level("high", (row("builtin test"),)),
    "nothing": Level("low", (row("builtin"),)),
}


def test_the_pass_that_broke_the_module_is_blamed():
    manager = PassManager((Append(), Break(), Nothing()), (VerifyEach(),))
    with pytest.raises(VerifyException) as caught:
        manager.run(AbeleContext(), ModuleOp([]))
    assert str(caught.value).startswith("after pass 'break' (2 of 3): test.op at ")
    assert str(caught.value).endswith("is used before its definition")


def test_the_first_pass_is_not_blamed_for_its_input():
    module = ModuleOp([])
    Break().apply(AbeleContext(), module)
    with pytest.raises(VerifyException, match="^input of the pipeline: test.op at "):
        PassManager((Nothing(),), (VerifyEach(),)).run(AbeleContext(), module)


def test_each_level_has_its_legal_operations():
    verify_each = VerifyEach(lambda step, _: LEVELS[step.current.name])
    PassManager((Append(),), (verify_each,)).run(AbeleContext(), ModuleOp([]))
    with pytest.raises(VerifyException, match=r"after pass 'nothing' .* not legal here"):
        PassManager((Append(), Nothing()), (verify_each,)).run(AbeleContext(), ModuleOp([]))


def test_the_rule_that_broke_an_operation_is_named():
    class Late(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            if "late" in op.attributes:
                user = TestOp(op.results)
                rewriter.insert(user, InsertPoint.before(op))
                rewriter.insert(TestOp(), InsertPoint.before(op))
                del op.attributes["late"]

    @dataclass(frozen=True)
    class UseLate(ModulePass):
        name = "use-late"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            LocatingWalker(Late()).rewrite_module(op)

    module = ModuleOp([TestOp(result_types=[i32], attributes={"late": UnitAttr()})])
    with pytest.raises(VerifyException) as caught:
        PassManager((UseLate(),), (VerifyEach(),)).run(AbeleContext(), module)
    assert "is used before its definition; last changed by Late (" in str(caught.value)
