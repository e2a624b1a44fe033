import re
import time
from pathlib import Path

import numpy as np
import pytest
import users_dialects

from abele.backends.target import named_target
from abele.dialects import nn
from abele.ir.text import parse_module
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.eliminate_dead import EliminateDead
from abele.tools.driver.context import new_context
from abele.tools.extensions import load_extensions
from abele.tools.testing import Miscompiled, check_pass, check_pipeline, programs
from abele.tools.testing.generators.program import Program
from abele.tools.testing.oracle.oracles import bounded_run
from abele.tools.testing.search import judge
from abele.tools.testing.search.judge import disagreement


class Spoil(ModulePass):
    """Multiplies where it should add."""

    name = "spoil"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, nn.AddOp):
                new = nn.MulOp(*each.operands)
                each.parent.insert_op_before(new, each)
                each.results[0].replace_all_uses_with(new.results[0])
                each.detach()
                each.erase()


def test_programs_that_only_a_pass_makes_runnable_are_compared_after_it(tmp_path: Path):
    with users_dialects.written(tmp_path) as (_, load):
        extensions = load_extensions(load)
        ((twice,),) = (each.operations for each in extensions.dialects)
        lower = extensions.passes["to-nn"]()
        below = "nn,partition,tile,exchange"
        generated = programs(operators=[twice, nn.ExpOp])
        report = check_pipeline((lower, below), programs=generated, examples=10, seed=1)
        assert report.examples == 10
        assert report.began_after["to-nn"] >= 5
        assert f"{report.began_after['to-nn']} compared with the program after to-nn" in str(report)
        with pytest.raises(Miscompiled, match="after pass 'spoil'") as caught:
            check_pipeline((lower, Spoil(), below), programs=generated, examples=10, seed=1)
        assert "nn.add" in str(caught.value)
        assert "mine.twice" not in str(caught.value).partition("The program before it")[2]


LOOKUP = """
builtin.module {
  func.func @main(%at: tensor<3xi32>) -> tensor<3xi32> {
    %0 = nn.gather %at, %at axis 0 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    func.return RETURNED : tensor<3xi32>
  }
}
"""


def lookup(returned: str, at: list[int]) -> Program:
    context = new_context()
    module = parse_module(LOOKUP.replace("RETURNED", returned), context)
    return Program(module, context, {"arg0": np.array(at, np.int32)}, named_target("tiny:1"))


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (("%0", [0, 3, 1]), ("%0", [0, 1, -4]), None),
        (("%0", [0, 3, 1]), ("%0", [0, 2, 1]), "the program runs; need the fault"),
        (("%0", [0, 2, 1]), ("%0", [0, 3, 1]), r"index 3 at \[1\] of an axis of 3 elements"),
    ],
)
def test_a_pass_keeps_the_faults_of_living_operations(before, after, problem):
    expected = bounded_run(lookup(*before))
    found = disagreement(expected, lookup(*after))
    assert (found is None) if problem is None else re.search(problem, found.text)


def test_a_pass_may_keep_or_drop_the_fault_of_a_dead_operation():
    dead = lookup("%at", [0, 3, 1])
    expected = bounded_run(dead)
    assert disagreement(expected, dead) is None
    EliminateDead().apply(dead.context, dead.module)
    assert disagreement(expected, dead) is None


class Ends(ModulePass):
    """Changes every program, and keeps its meaning."""

    name = "ends"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        last = [each for each in op.walk() if each.name == "func.return"]
        for each in last:
            each.parent.insert_op_before(nn.ConstantOp(np.float32(1)), each)


def test_a_program_that_takes_long_before_the_pass_is_no_failure_of_it(
    monkeypatch: pytest.MonkeyPatch,
):
    def slow(program: Program) -> None:
        end = time.process_time() + 5
        while time.process_time() < end:
            pass

    monkeypatch.setattr(judge, "expected_of", slow)
    report = check_pass(Ends(), examples=2, seed=1, limit=0.2)
    assert report.undecided == 2
