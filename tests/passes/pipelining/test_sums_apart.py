"""Stages with sums of their own add up what one sum would."""

from __future__ import annotations

import numpy as np
import pytest
from some_tensors import context, counting, module_of
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.dialects import control, nn
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.pipelining.stages import loop_over_micro_batches, stage_of
from abele.passes.pipelining.sums_apart import sum_apart

WIDE, TABLE, ROWS = "tensor<6x4xf32>", "tensor<6x4xf16>", "tensor<2x4xf16>"

SCATTERED = f"""%u = nn.update "sum" %r, %i into %d axis 0 {{stage = 2 : i64}}
  : ({ROWS}, tensor<2x1xi32>, {TABLE}) -> {TABLE}"""
ADDED = f"%u = nn.add %d, %e {{stage = 2 : i64}} : ({TABLE}, {TABLE}) -> {TABLE}"


def summing(joined: str, stage: int = 0, extra: str = "") -> ModuleOp:
    """A loop that adds, for each micro-batch, what stage 2 makes of a table of another stage."""
    early = f"{{stage = {stage} : i64}}"
    return module_of(
        f"""
        func.func @main(%t: {TABLE}, %r: {ROWS}, %i: tensor<2x1xi32>, %z: {WIDE}) -> {WIDE} {{
          %0 = control.repeat 3 (%z) : ({WIDE}) -> ({WIDE}) {{
          ^bb0(%s: {WIDE}, %n: tensor<i32>):
            %d = nn.neg %t {early} : ({TABLE}) -> {TABLE}
            %e = nn.abs %t {{stage = 2 : i64}} : ({TABLE}) -> {TABLE}
            {joined}
            %w = nn.cast %u {{stage = 2 : i64}} : ({TABLE}) -> {WIDE}
            %a = nn.add %w, %s {{stage = 2 : i64}} : ({WIDE}, {WIDE}) -> {WIDE}
            {extra}
            control.yield %a : {WIDE}
          }} {{micro_batches}}
          func.return %0 : {WIDE}
        }}""",
        context(),
    )


def apart(module: ModuleOp) -> control.RepeatOp:
    """The loop, with sums apart."""
    (main,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    loop = loop_over_micro_batches(main)
    assert loop is not None
    own = {op: stage for op in loop.body.block.ops if (stage := stage_of(op)) is not None}
    sum_apart(loop, own)
    verify(module)
    found = loop_over_micro_batches(main)
    assert found is not None
    return found


def result(module: ModuleOp) -> np.ndarray:
    rows = counting((2, 4)).astype(np.float16)
    inputs = {
        "arg0": counting((6, 4)).astype(np.float16),
        "arg1": rows,
        "arg2": np.array([[4], [4]], np.int32),
        "arg3": counting((6, 4)) + 1,
    }
    return run_reference(module, inputs).outputs["out0"]


@pytest.mark.parametrize("joined", [SCATTERED, ADDED])
def test_two_stages_have_a_sum_each(joined: str):
    """The sums are of integers, so their order does not matter."""
    module = summing(joined)
    expected = result(module)
    loop = apart(module)
    assert len(loop.initial) == 2
    makers = [value.owner for value in loop.body.block.last_op.operands]
    assert [stage_of(op) for op in makers] == [0, 2]
    # What stage 0 makes is read in stage 0 alone.
    (early,) = (op for op in loop.body.block.ops if isinstance(op, nn.NegOp))
    assert {stage_of(use.operation) for use in early.results[0].uses} == {0}
    # The whole sum is needed where the weight is: on the chip of the later stage.
    assert [stage_of(use.operation) for use in loop.outputs[1].uses] == [2]
    np.testing.assert_array_equal(result(module), expected)


def test_three_stages_have_a_sum_each():
    joined = f"""%f = nn.abs %t {{stage = 1 : i64}} : ({TABLE}) -> {TABLE}
      %p = nn.add %d, %f {{stage = 1 : i64}} : ({TABLE}, {TABLE}) -> {TABLE}
      {SCATTERED.replace("%d", "%p")}"""
    module = summing(joined)
    expected = result(module)
    loop = apart(module)
    makers = [value.owner for value in loop.body.block.last_op.operands]
    assert sorted(stage_of(op) for op in makers) == [0, 1, 2]
    for part in (op for op in loop.body.block.ops if isinstance(op, nn.NegOp | nn.CastOp)):
        assert {stage_of(use.operation) for use in part.results[0].uses} == {stage_of(part)}
    np.testing.assert_array_equal(result(module), expected)


@pytest.mark.parametrize(
    ("stage", "extra"),
    [
        (2, ""),
        (0, f"%m = nn.add %d, %t {{stage = 1 : i64}} : ({TABLE}, {TABLE}) -> {TABLE}"),
        (0, f"%m = nn.neg %s {{stage = 2 : i64}} : ({WIDE}) -> {WIDE}"),
    ],
)
def test_one_sum_stays_where_one_stage_makes_all_or_others_read_a_part(stage: int, extra: str):
    module = summing(SCATTERED, stage, extra)
    before = str(module)
    apart(module)
    assert str(module) == before
