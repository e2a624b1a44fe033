"""Which lines of passes are reached for the first time."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest

from abele.dialects import nn
from abele.ir.pass_manager import load_pass
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.pipelines import PASSES
from abele.tools.driver.context import new_context
from abele.tools.testing.search.reached import PATIENT, SELDOM, Reached

CONTEXT = new_context()


@dataclass(frozen=True)
class Branches(ModulePass):
    """Reaches one line more in a module with an operation, and one more with two."""

    name = "branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        count = len(op.body.block.ops)
        if count > 0:
            count += 1
        if count > 2:
            self.deeper()

    def deeper(self) -> None:
        """What only some modules reach."""


def module(operations: int) -> ModuleOp:
    return ModuleOp([nn.ConstantOp(np.ones(2, np.float32)) for _ in range(operations)])


def news(reached: Reached, tested: ModulePass, operations: int) -> bool:
    with reached.watching(tested):
        tested.apply(CONTEXT, module(operations))
    return reached.has_news()


def test_news_is_what_no_program_before_has_reached():
    reached, tested = Reached([Branches()]), Branches()
    with reached.session():
        found = [news(reached, tested, n) for n in (0, 0, 1, 1, 2, 2, 1)]
    assert found == [True, False, True, False, True, False, False]


def test_each_session_begins_anew():
    for _ in range(2):
        reached = Reached([Branches()])
        with reached.session():
            assert news(reached, Branches(), 2)
            assert not news(reached, Branches(), 2)


def test_other_passes_are_not_watched():
    reached = Reached([Branches()])
    with reached.session():
        assert not news(reached, load_pass("decompose", PASSES)(), 2)
    assert reached.lines == 0


def test_programs_that_reach_nothing_new_are_watched_less_often():
    reached, tested = Reached([Branches()]), Branches()
    with reached.session():
        assert news(reached, tested, 0)
        for _ in range(2 * PATIENT * SELDOM):
            assert not news(reached, tested, 0)
        assert any(news(reached, tested, 2) for _ in range(SELDOM))


def test_a_debugger_keeps_its_own_tracing():
    if sys.gettrace() is not None or hasattr(sys, "monitoring"):
        pytest.skip("there is a tracer already, or none is needed")

    def tracer(*_: object) -> None:
        return None

    reached = Reached([Branches()])
    sys.settrace(tracer)
    try:
        with reached.session():
            assert not news(reached, Branches(), 2)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(None)
