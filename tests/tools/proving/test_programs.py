"""Two programs of nn that compute the same, that do not, and that nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest

from abele.ir.support.errors import InputError
from abele.ir.text import parse_module
from abele.tools.driver.context import new_context
from abele.tools.proving.programs import Validation, validate

TYPES = "(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>) -> (tensor<4x5xf32>, tensor<4x3xf32>)"
BEFORE = f"""
func.func @main{TYPES} {{
  %0 = nn.scale %x by 2.0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = nn.matmul %0, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %2 = nn.relu %0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %1, %2 : tensor<4x5xf32>, tensor<4x3xf32>
}}
"""
AFTER = """
func.func @main(%a: tensor<4x3xf32>, %b: tensor<3x5xf32>) -> (tensor<4x5xf32>, tensor<4x3xf32>) {
  %0 = nn.scale %b by 2.0 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = nn.matmul %a, %0 : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %2 = nn.relu %a : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = nn.scale %2 by 2.0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %1, %3 : tensor<4x5xf32>, tensor<4x3xf32>
}
"""


def validated(before: str, after: str, seconds: float = 20.0) -> Validation:
    context = new_context()
    modules = [parse_module(text, context) for text in (before, after)]
    return validate(modules[0], modules[1], context, seconds=seconds)


def test_a_program_is_equal_to_itself_to_the_bit():
    found = validated(BEFORE, BEFORE)
    assert found.text == "proved for all values: equal to the bit (32 elements)"


def test_programs_that_compute_the_same_are_proved_equal_for_all_results():
    found = validated(BEFORE, AFTER)
    assert (found.kind, found.elements) == ("proved", 32)
    assert found.equality.startswith("equal up to rounding; NaN, infinities")


def test_programs_that_differ_come_with_inputs_that_show_it():
    found = validated(BEFORE, AFTER.replace("nn.relu", "nn.abs"))
    assert found.kind == "different"
    assert "need 0 exactly" in found.reason
    (x, w) = found.example.values()
    assert x[0, 0] < 0
    assert (w == 1).all()
    assert "arg0 = [[-1." in found.text


ONE, TWO = "(tensor<3xf32>) -> tensor<3xf32>", "(tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>"


def test_programs_that_differ_in_special_values_only_are_different_if_a_run_shows_it():
    head = "func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {\n"
    absorbed = f"%0 = nn.min %x, %y : {TWO}\n  %1 = nn.max %x, %0 : {TWO}\n  func.return %1"
    found = validated(
        f"{head}  {absorbed} : tensor<3xf32>\n}}", f"{head}  func.return %x : tensor<3xf32>\n}}"
    )
    assert found.kind == "different"
    assert np.isnan(found.example["arg1"]).any()
    twice = f"%0 = nn.neg %x : {ONE}\n  %1 = nn.neg %0 : {ONE}\n  func.return %1"
    same = validated(
        f"{head}  {twice} : tensor<3xf32>\n}}", f"{head}  func.return %x : tensor<3xf32>\n}}"
    )
    assert same.kind == "proved"


INTEGERS = """
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {{
  %0 = nn.mod %x, %y : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  {0}
  func.return %{1} : tensor<2xi32>
}}
"""


def test_a_question_that_takes_too_long_is_not_decided_and_both_programs_are_run():
    again = "%1 = nn.mod %0, %y : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>"
    found = validated(INTEGERS.format("", 0), INTEGERS.format(again, 1), seconds=0.5)
    assert found.kind == "not decided"
    assert "the solver was not done after" in found.text
    assert found.text.endswith("the results agree on 5 inputs")


REPEAT = """%2 = control.repeat 3 (%0) : (tensor<4x3xf32>) -> (tensor<4x3xf32>) {
  ^bb0(%y: tensor<4x3xf32>):
    %3 = nn.neg %y : (tensor<4x3xf32>) -> tensor<4x3xf32>
    control.yield %3 : tensor<4x3xf32>
  }"""


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            BEFORE.replace("%2 = nn.relu %0 : (tensor<4x3xf32>) -> tensor<4x3xf32>", REPEAT),
            "after: control.repeat at .*: proofs compare programs of one block, without control",
        ),
        (AFTER.replace("@main", "@other"), "after: no function @main with a body"),
        (
            "func.func @main(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {\n"
            "  func.return %x : tensor<4x3xf32>\n}",
            "before has 2 inputs, after has 1; need as many",
        ),
        (
            BEFORE.replace("5xf32", "5xf16").replace("4x3xf32", "4x3xf16"),
            "input 0 is tensor<4x3xf32> in before and tensor<4x3xf16> in after",
        ),
    ],
)
def test_programs_that_no_proof_can_read_are_refused_with_the_place(after: str, message: str):
    with pytest.raises(InputError, match=message):
        validated(BEFORE, after)
