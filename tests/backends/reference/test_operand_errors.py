"""Error bounds of chains with functions that are not defined everywhere."""

import numpy as np
import pytest

from abele.backends.reference import evaluate_structure
from abele.backends.reference.operand_errors import bounded_structure
from abele.backends.target import resolve_target
from abele.dialects.nn.elementwise import broadcast_space
from abele.dialects.structured import Body, Stage, Structure
from abele.ir.text import parse_module
from abele.tools.driver.arrays import Array
from abele.tools.driver.context import new_context
from abele.tools.testing import Program, bounded_run
from abele.tools.testing.oracle.oracles import Outcome


@pytest.mark.parametrize(("first", "bound"), [(0.5, np.inf), (np.nan, np.nan)])
def test_a_chain_may_leave_its_domain_after_a_number_but_not_after_nan(first: float, bound: float):
    space = broadcast_space(((2,), (2,)), (2,))
    structure = Structure(space, Body("pow", then=(Stage("neg"), Stage("log"))))
    operands = [np.array([first, 0.5], np.float16), np.full(2, 2, np.float16)]
    nothing = np.zeros(2, np.float16)
    found = bounded_structure(structure, operands, [np.zeros(2)] * 2, nothing)
    np.testing.assert_array_equal(found.error, [bound, np.inf])


QUANTISED = """
builtin.module {{
  func.func @main(%0: tensor<3xf32>, %1: tensor<3x2xi8>) -> tensor<1x2xi32>
      attributes {{arg_names = ["x", "w"], result_names = ["z"]}} {{
    %2 = nn.scale %0 by 0.1 : (tensor<3xf32>) -> tensor<3xf32>
    %3 = nn.round %2 : (tensor<3xf32>) -> tensor<3xf32>
    %4 = nn.cast %3 : (tensor<3xf32>) -> tensor<3xi8>
    %5 = nn.reshape %4 to [1, 3] : (tensor<3xi8>) -> tensor<1x3xi8>
    %6 = nn.matmul %5, %1 {into} : (tensor<1x3xi8>, tensor<3x2xi8>) -> tensor<1x2x{kind}>
    {last}
    func.return %7 : tensor<1x2xi32>
  }}
}}
"""


def quantised(into: str, kind: str, last: str, x: list[float]) -> Outcome:
    context = new_context()
    text = QUANTISED.format(into=into, kind=kind, last=last)
    weights = np.array([[3, 0], [1, 100], [5, 1]], np.int8)
    inputs = {"x": np.array(x, np.float32), "w": weights}
    module = parse_module(text, context)
    return bounded_run(Program(module, context, inputs, resolve_target("tiny:1")))


EXACT = ("into_i32", "i32", "%7 = nn.neg %6 : (tensor<1x2xi32>) -> tensor<1x2xi32>")
NARROW = ("", "i8", "%7 = nn.cast %6 : (tensor<1x2xi8>) -> tensor<1x2xi32>")


def test_a_number_half_way_between_two_integers_may_become_either():
    """The first element is 0.5 once it is rounded, and a little more before."""
    found = quantised(*EXACT, [5, 10, 20])
    assert found.outputs["z"].tolist() == [[-(1 + 10), -102]]
    np.testing.assert_array_equal(found.errors["z"], [[3, 0]])


def test_integers_away_from_a_step_are_exact():
    found = quantised(*EXACT, [6, 10, 20])
    np.testing.assert_array_equal(found.errors["z"], [[0, 0]])


def test_an_integer_that_may_wrap_may_be_any():
    """With 8 bits, 100 * (1 or 2) + 3 is below the limit once only."""
    found = quantised(*NARROW, [0, 15, 30])
    assert found.errors["z"][0, 0] == 1
    assert found.errors["z"][0, 1] == np.inf


def overflow(function: str, dtype: type, gives: type, error: float) -> tuple[Array, Array]:
    """A function of an infinite number, and the bound of its result."""
    structure = Structure(broadcast_space(((1,),), (1,)), Body(function))
    operands = [np.array([np.inf], dtype)]
    value, _ = evaluate_structure(structure, operands, np.dtype(gives), (1,))
    made = value.astype(gives)
    bounded = bounded_structure(structure, operands, [np.full(1, error)], made)
    return made, bounded.error


@pytest.mark.parametrize(
    ("dtype", "error", "largest"),
    [(np.float16, 64.0, 1 / 65504), (np.float16, 0.0, 0.0), (np.float32, 64.0, 1e-38)],
)
def test_a_narrow_number_that_overflows_may_be_kept_in_a_wider_type(
    dtype: type, error: float, largest: float
):
    made, bound = overflow("reciprocal", dtype, dtype, error)
    assert made.tolist() == [0]
    assert bound <= largest * 1.01
    assert bound >= largest * 0.99 or dtype is np.float32


@pytest.mark.parametrize("function", ["is_inf", "is_nan"])
def test_whether_a_number_is_infinite_is_certain(function: str):
    _, bound = overflow(function, np.float16, np.bool_, 64.0)
    assert bound == 0


@pytest.mark.parametrize(
    ("x", "error", "certain"), [(1e5, 0, True), (1e5, 1e4, True), (1e5, 4e4, False)]
)
def test_a_cast_to_infinity_is_certain(x: float, error: float, certain: bool):
    structure = Structure(broadcast_space(((1,),), (1,)), Body("identity"))
    operands, made = [np.array([x], np.float32)], np.array([np.inf], np.float16)
    found = bounded_structure(structure, operands, [np.full(1, error)], made)
    assert (found.error == 0) == certain
