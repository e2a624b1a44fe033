"""Passes of the level stablehlo are tested by the kit as those of any other level."""

from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given, settings
from xdsl.ir import Operation

from abele.dialects import nn
from abele.dialects.levels import NN, STABLEHLO
from abele.dialects.stablehlo import SliceOp
from abele.ir.errors import InputError
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes import convert_stablehlo_to_nn
from abele.passes.stablehlo_to_nn.conversion import Lower
from abele.passes.stablehlo_to_nn.table import TABLE
from abele.tools.testing import (
    Miscompiled,
    PassFailed,
    Program,
    check_pass,
    check_pipeline,
    programs,
)
from abele.tools.testing.search.fuzz import jobs
from abele.tools.testing.search.pass_level import level_for
from abele.tools.testing.search.settings import CheckOptions, CheckSettings


@dataclass(frozen=True)
class SwapSubtract(ModulePass):
    """Swap the operands of each difference, which is wrong. stablehlo -> stablehlo."""

    name = "swap-subtract"
    takes = STABLEHLO
    leaves = STABLEHLO

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if each.name == "stablehlo.subtract":
                each.operands[0], each.operands[1] = each.operands[1], each.operands[0]


@dataclass(frozen=True)
class DropWholeSlices(ModulePass):
    """Remove slices that keep all elements."""

    name = "drop-whole-slices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, SliceOp) and each.operand.type == each.result.type:
                each.result.replace_all_uses_with(each.operand)
                assert each.parent is not None
                each.parent.erase_op(each)


def test_a_wrong_pass_of_a_user_is_found_and_its_program_becomes_one_operation():
    with pytest.raises(Miscompiled) as failure:
        check_pass(SwapSubtract(), examples=200, seed=1, operators=["stablehlo.subtract"])
    assert failure.value.program.level == STABLEHLO
    kept = [op for op in failure.value.program.module.walk() if op.name.startswith("stablehlo.")]
    assert [op.name for op in kept] == ["stablehlo.subtract"]


def test_a_right_pass_passes_on_programs_of_the_operations_that_its_code_names():
    found = level_for(DropWholeSlices(), CheckSettings())
    assert (found.level, found.why) == ("stablehlo", "its code names operations of stablehlo")
    report = check_pass(DropWholeSlices(), examples=40, seed=1)
    assert report.changed > 2


def test_the_pass_that_leads_to_nn_is_checked_on_programs_of_stablehlo():
    report = check_pass("convert-stablehlo-to-nn", examples=25, seed=1, guided=False)
    assert report.level == "stablehlo"
    assert report.changed >= report.examples - 2 > 15


def test_there_are_jobs_from_stablehlo():
    names = {"convert-stablehlo-to-nn", "stablehlo -> exchange, as planned"}
    found = jobs(operators=["stablehlo.gather", "nn.add"])
    for name, check in found.items():
        own = "stablehlo.gather" if name in names else "nn.add"
        assert isinstance(check, partial)
        assert check.keywords["operators"] == (own,)
    assert names <= found.keys()
    with pytest.raises(InputError, match="steps of training are programs of nn"):
        jobs(["train"], level="stablehlo")
    with pytest.raises(InputError, match="steps of training are programs of nn"):
        check_pipeline(level="stablehlo", training=True, examples=1)


MISTAKES: dict[str, Lower] = {
    "stablehlo.reverse": lambda op, new: [new.value(op.operand)],
    "stablehlo.select": lambda op, new: TABLE["stablehlo.select"](_swapped(op, 1, 2), new),
    "stablehlo.shift_right_arithmetic": TABLE["stablehlo.shift_right_logical"],
    "stablehlo.dynamic_update_slice": lambda op, new: [new.value(op.operand)],
    "stablehlo.scatter": lambda op, new: [new.value(each) for each in op.inputs],
    "stablehlo.subtract": lambda op, new: [new.add(nn.SubOp(*new.operands(op)[::-1]))],
    # This remainder has the sign of the divisor.
    "stablehlo.remainder": lambda op, new: [new.add(nn.ModOp(*new.operands(op)))],
}
"""Wrong lowerings, by operation."""


def _swapped(op: Operation, a: int, b: int) -> Operation:
    """The operation, from now on with two of its operands swapped."""
    op.operands[a], op.operands[b] = op.operands[b], op.operands[a]
    return op


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_lowering_of_an_operation_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    planted = {**convert_stablehlo_to_nn.TABLE, name: MISTAKES[name]}
    monkeypatch.setattr(convert_stablehlo_to_nn, "TABLE", planted)
    options: CheckOptions = {"examples": 40, "seed": 1, "guided": False, "reduce_seconds": 0.0}
    with pytest.raises((Miscompiled, PassFailed)):
        check_pass("convert-stablehlo-to-nn", operators=[name], **options)


@given(programs("stablehlo"))
@settings(max_examples=5, deadline=None)
def test_programs_of_stablehlo_are_a_strategy(program: Program):
    assert program.level in (STABLEHLO, NN)
