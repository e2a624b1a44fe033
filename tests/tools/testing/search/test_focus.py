"""What a pass speaks of."""

from dataclasses import dataclass
from random import Random

import pytest

from abele.dialects import nn
from abele.dialects.structured import Structured
from abele.ir.pass_manager import parse_pipeline
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.pipelines import PASSES
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.search.contracts import with_apply
from abele.tools.testing.search.focus import about, named_operators


def _is_clip(op: object) -> bool:
    return isinstance(op, nn.ClipOp)


@dataclass(frozen=True)
class Mine(ModulePass):
    """Names one operation itself, one in a function beside it and one in a function inside."""

    name = "mine"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        def is_relu(each: object) -> bool:
            return isinstance(each, nn.ReluOp)

        for each in op.walk():
            if is_relu(each) or _is_clip(each) or isinstance(each, nn.AddOp):
                return


@dataclass(frozen=True)
class OfAll(ModulePass):
    """Names what all operators are."""

    name = "of-all"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        assert not any(isinstance(each, Structured) for each in op.walk())


def names(*passes: ModulePass) -> set[str]:
    operators = default_operators()
    return {operators.classes[i].name for i in named_operators(passes, operators)}


def test_the_operators_of_a_pass_are_those_that_its_code_names():
    assert names(Mine()) == {"nn.relu", "nn.clip", "nn.add"}


def test_a_wrapped_pass_names_the_same_operators():
    assert names(with_apply(Mine(), lambda ctx, op: None)) == names(Mine())


def test_a_base_class_of_nearly_all_operators_is_ignored():
    assert names(OfAll()) == set()
    assert names(OfAll(), Mine()) == names(Mine())


def test_programs_about_a_pass_have_its_operators_alone():
    operators = default_operators()
    few = named_operators([Mine()], operators)
    made: set[str] = set()
    for number in range(20):
        program = build(about(random_sketch(Random(number)), few), operators)
        made |= {op.name for op in program.module.walk()}
    assert {"nn.relu", "nn.clip", "nn.add"} <= made
    # A function of any kind may follow an operation, as nn.exp does here, so that they are fused.
    assert not made & {"nn.conv", "nn.matmul", "nn.reduce", "nn.concat", "nn.transpose"}


@pytest.mark.parametrize(
    ("own", "some"),
    [("canonicalize", {"nn.transpose", "nn.power"}), ("fold-scales", {"nn.conv", "nn.mul"})],
)
def test_the_operators_of_rules_are_those_of_their_patterns(own: str, some: set[str]):
    assert some <= names(*parse_pipeline(own, PASSES))
