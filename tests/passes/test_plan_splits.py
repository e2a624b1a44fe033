from math import prod

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr

from abele.dialects.abele import PlanAttr
from abele.dialects.structured import Movement, Structured
from abele.ir.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.passes.plan_splits import PlanSplits

from ..strategies import context

NET = """
builtin.module {
  func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<8x4xf32> {
    %0 = "nn.matmul"(%x, %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %1 = "nn.relu"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = "nn.transpose"(%1) <{permutation = array<i64: 1, 0>}>
      : (tensor<4x8xf32>) -> tensor<8x4xf32>
    func.return %2 : tensor<8x4xf32>
  }
}
"""


def _planned(target: str) -> tuple[str, Context]:
    made = context()
    module = parse_module(NET, made)
    PlanSplits(target).apply(made, module)
    module.verify()
    return print_module(module), made


def test_plans_are_written_on_operations_and_the_target_on_the_module(golden):
    golden(_planned("tiny:4")[0])


def test_all_that_computes_or_moves_has_a_plan():
    text, made = _planned("tiny:4")
    module = parse_module(text, made)
    for op in module.walk():
        assert isinstance(op.attributes.get("plan"), PlanAttr) == isinstance(
            op, Structured | Movement
        )


def test_the_target_is_spelled_as_short_as_it_can_be():
    text, made = _planned("mk2:1472,exchange.sync_cycles=118")
    assert parse_module(text, made).attributes["abele.target"] == StringAttr("mk2")


def test_planning_what_is_planned_changes_nothing():
    text, made = _planned("tiny:4")
    module = parse_module(text, made)
    PlanSplits("tiny:4").apply(made, module)
    assert print_module(module) == text


def test_work_is_split_as_finely_as_requested():
    for vertices in (None, 1, 32):
        made = context()
        module = parse_module(NET, made)
        PlanSplits("tiny:4", vertices_per_tile=vertices).apply(made, module)
        plans = {
            op.name: op.attributes["plan"].data for op in module.walk() if "plan" in op.attributes
        }
        relu = plans["nn.relu"]
        cell = [n // k for n, k in zip((4, 8), relu.split, strict=True)]
        wanted = {None: 6, 1: 1, 32: prod(cell)}[vertices]
        assert prod(relu.workers) <= wanted
        assert vertices is None or prod(relu.workers) == wanted
    with pytest.raises(InputError, match="0 vertices per tile"):
        PlanSplits("tiny:4", vertices_per_tile=0).apply(made, module)
