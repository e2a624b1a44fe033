"""The relation between gradients before and after a pass."""

import numpy as np
import pytest

from abele.backends.target import resolve_target
from abele.ir.text import parse_module
from abele.tools.driver.context import new_context
from abele.tools.testing import NotApplicable, Program, check_pass, difference, programs, run
from abele.tools.testing.oracle.gradients import same_gradients
from abele.tools.testing.oracle.relations import expected_of

KIND = "tensor<3xf32>"


@pytest.mark.parametrize("name", ["canonicalize", "fuse-chains"])
def test_a_rewritten_program_has_the_gradients_of_the_program(name: str):
    normal = programs("nn", data=["normal"])
    report = check_pass(name, programs=normal, examples=15, seed=0, relation=same_gradients)
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
