"""Gradients before and after a pass, and gradients against differences."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.levels import NN
from abele.ir.text import parse_module
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.differentiate import Differentiate
from abele.tools.driver.context import new_context
from abele.tools.testing import (
    Miscompiled,
    NotApplicable,
    Program,
    check_pass,
    difference,
    programs,
    run,
)
from abele.tools.testing.oracle.gradients import same_gradients, wrong_gradients
from abele.tools.testing.oracle.relations import expected_of

KIND = "tensor<3xf32>"


@pytest.mark.parametrize("name", ["canonicalize", "fuse-chains"])
def test_a_rewritten_program_has_the_gradients_of_the_program(name: str):
    normal = programs("nn", data=["normal"])
    report = check_pass(name, programs=normal, examples=12, seed=0, relation=same_gradients)
    assert report.held["same_gradients"] >= 4


def program(line: str) -> Program:
    context = new_context()
    text = f"""
    func.func @main(%x: {KIND}) -> {KIND} {{
      {line}
      %1 = nn.mul %0, %x : ({KIND}, {KIND}) -> {KIND}
      func.return %1 : {KIND}
    }}"""
    inputs = {"arg0": np.array([1, 2, -3], np.float32)}
    return Program(parse_module(text, context), context, inputs, resolve_target("tiny:1"))


def test_a_program_with_equal_results_and_other_gradients_is_found():
    whole, rounded = (program(f"%0 = nn.{op} %x : ({KIND}) -> {KIND}") for op in ("neg", "round"))
    negated = program(f"%r = nn.round %x : ({KIND}) -> {KIND} %0 = nn.neg %r : ({KIND}) -> {KIND}")
    assert difference(expected_of(whole), run(negated)) is None
    wrong = same_gradients(whole, negated, lambda each: each)
    assert wrong is not None
    assert wrong.startswith("differentiated: ")
    assert same_gradients(rounded, rounded, lambda each: each) is None


def test_a_program_without_gradients_is_left_out():
    bits = program(f"%0 = nn.bitcast %x : ({KIND}) -> {KIND}")
    with pytest.raises(NotApplicable, match="looks at the bits"):
        same_gradients(bits, bits, lambda each: each)


@dataclass(frozen=True)
class GradientsOfTwice(ModulePass):
    """Adds the gradients of twice the output."""

    name = "gradients-of-twice"
    takes = NN

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        Differentiate().apply(ctx, op)
        functions = (each for each in op.ops if isinstance(each, FuncOp))
        (main,) = (each for each in functions if each.sym_name.data == "main")
        last = main.body.block.last_op
        assert last is not None
        names = main.attributes["result_names"].data
        for i, name in enumerate(names):
            if name.data.startswith("grad."):
                twice = nn.AddOp(last.operands[i], last.operands[i])
                main.body.block.insert_op_before(twice, last)
                last.operands[i] = twice.result


def test_gradients_that_a_pass_adds_are_those_of_the_output(tmp_path: Path):
    report = check_pass("differentiate", examples=25, seed=0)
    assert report.changed > 10
    with pytest.raises(Miscompiled) as caught:
        check_pass(GradientsOfTwice(), examples=25, seed=0, folder=tmp_path / "found")
    assert caught.value.wrong.kind == "gradient"
    assert "along a random direction" in caught.value.wrong.text


def gradient(lines: str, found: str) -> str | None:
    """What is wrong with @main if it gives a value as the gradient of another one."""
    context = new_context()
    text = f"""
    func.func @main(%x: {KIND}) -> TYPES attributes {{result_names = NAMES}} {{
      {lines}
      func.return VALUES
    }}"""
    plain, more = text, text
    for word, one, other in (
        ("TYPES", KIND, f"({KIND}, {KIND})"),
        ("NAMES", '["y"]', '["y", "grad.arg0"]'),
        ("VALUES", f"%y : {KIND}", f"%y, {found} : {KIND}, {KIND}"),
    ):
        plain, more = plain.replace(word, one), more.replace(word, other)
    inputs = {"arg0": np.array([1, 2, -3], np.float32)}
    target = resolve_target("tiny:1")
    before, after = (
        Program(parse_module(each, context), context, inputs, target) for each in (plain, more)
    )
    return wrong_gradients(before, after)


def of_one(name: str, value: str = "%x", result: str = "%y") -> str:
    return f"{result} = nn.{name} {value} : ({KIND}) -> {KIND}"


def test_a_gradient_is_compared_away_from_the_edges_of_functions():
    doubled = of_one("square") + f"\n %g = nn.scale %x by 2.0 : ({KIND}) -> {KIND}"
    assert gradient(doubled, "%g") is None
    wrong = gradient(doubled, "%x")
    assert wrong is not None
    assert "grad.arg0: along a random direction, y grows by" in wrong
    # Away from its steps, a rounded number is constant.
    flat = of_one("round") + f"\n %g = nn.sub %x, %x : ({KIND}, {KIND}) -> {KIND}"
    assert gradient(flat, "%g") is None


def test_a_gradient_at_an_edge_that_no_input_moves_is_not_judged():
    # The difference is 0 at every place, where the slopes of relu to both sides differ.
    both = f"({KIND}, {KIND})"
    lines = f"%z = nn.sub %x, %x : {both} -> {KIND}\n" + of_one("abs", "%z")
    assert gradient(lines, "%z") is None
