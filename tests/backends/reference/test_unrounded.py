import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from some_tensors import context, module_of
from xdsl.ir import Operation

from abele.backends.codelets.conversion import float_limits
from abele.backends.faults import IndexFault
from abele.backends.prices.codelets import rounds
from abele.backends.reference import TooManyIterations, run_reference, unrounded_outputs
from abele.backends.reference.operand_errors import Errors
from abele.dialects.levels import NN
from abele.dialects.structured import Structured
from abele.ir.errors import InputError
from abele.ir.support.number_kinds import is_floating
from abele.tools.driver.arrays import Array
from abele.tools.testing import Program, programs
from abele.tools.testing.oracle.oracles import BOUNDED

THIRDS = """
func.func @main(%x: tensor<4xELEMENT>) -> tensor<4xELEMENT> {
  %0 = nn.scale %x by 0.1 : (tensor<4xELEMENT>) -> tensor<4xELEMENT>
  %1 = nn.shift %0 by 100.0 : (tensor<4xELEMENT>) -> tensor<4xELEMENT>
  %2 = nn.shift %1 by -100.0 : (tensor<4xELEMENT>) -> tensor<4xELEMENT>
  func.return %2 : tensor<4xELEMENT>
}"""
"""A tenth of x: float32 loses two digits of it, float16 nearly all."""

X = np.array([1.0, -2.0, 3.0, -4.0])
KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


@pytest.mark.parametrize("element", KINDS)
def test_no_operation_rounds_its_result(element: str):
    module = module_of(THIRDS.replace("ELEMENT", element), context())
    inputs = {"arg0": X.astype(KINDS[element])}
    (found,) = unrounded_outputs(module, inputs).values()
    assert found.dtype == np.float64
    assert np.abs(found - X / 10).max() < 1e-13
    (rounded,) = run_reference(module, inputs).outputs.values()
    assert rounded.dtype == KINDS[element]
    error = np.abs(rounded.astype(np.float64) - X / 10).max()
    assert (error > 1e-7) == (element != "f64")


def test_a_float64_program_has_the_same_outputs_in_both_references():
    module = module_of(THIRDS.replace("ELEMENT", "f64"), context())
    exact = unrounded_outputs(module, {"arg0": X})
    rounded = run_reference(module, {"arg0": X}).outputs
    assert {name: array.tobytes() for name, array in exact.items()} == {
        name: array.tobytes() for name, array in rounded.items()
    }


def test_casts_between_floats_change_nothing():
    module = module_of(
        """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf16>) {
  %0 = nn.scale %x by 0.1 : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.cast %0 : (tensor<4xf32>) -> tensor<4xf16>
  %2 = nn.cast %1 : (tensor<4xf16>) -> tensor<4xf32>
  %3 = nn.scale %2 by 10000.0 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.cast %3 : (tensor<4xf32>) -> tensor<4xi32>
  %5 = nn.cast %4 : (tensor<4xi32>) -> tensor<4xf16>
  func.return %2, %4, %5 : tensor<4xf32>, tensor<4xi32>, tensor<4xf16>
}""",
        context(),
    )
    found = unrounded_outputs(module, {"arg0": X.astype(np.float32)})
    assert found["out0"].tolist() == (X * 0.1).tolist()
    assert found["out1"].dtype == np.int32
    assert found["out1"].tolist() == (X * 0.1 * 10000.0).astype(np.int32).tolist()
    assert found["out2"].tolist() == found["out1"].tolist()


def test_integers_and_booleans_are_those_of_the_other_reference():
    module = module_of(
        """
func.func @main(%x: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi1>, tensor<i64>) {
  %0 = nn.mul %x, %x : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  %1 = nn.less %0, %x : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
  %2 = nn.cast %0 : (tensor<4xi8>) -> tensor<4xi64>
  %3 = nn.reduce "prod" %2 axes [0] : (tensor<4xi64>) -> tensor<i64>
  func.return %0, %1, %3 : tensor<4xi8>, tensor<4xi1>, tensor<i64>
}""",
        context(),
    )
    inputs = {"arg0": np.array([100, -3, 17, 90], np.int8)}
    exact, rounded = unrounded_outputs(module, inputs), run_reference(module, inputs).outputs
    for name, array in rounded.items():
        assert exact[name].dtype == array.dtype
        assert np.array_equal(exact[name], array)


def test_inputs_states_and_constants_that_are_outputs_are_widened():
    module = module_of(
        """
nn.state @n : tensor<4xf16> = {n}
func.func @main(%x: tensor<4xf32>, %i: tensor<2xi32>)
    -> (tensor<4xf32>, tensor<4xf16>, tensor<4xf32>, tensor<2xi32>) {
  %0 = nn.load @n : tensor<4xf16>
  %1 = nn.constant {c} : tensor<4xf32>
  func.return %x, %0, %1, %i : tensor<4xf32>, tensor<4xf16>, tensor<4xf32>, tensor<2xi32>
}""",
        context(),
        n=X.astype(np.float16),
        c=X.astype(np.float32),
    )
    inputs = {"arg0": X.astype(np.float32), "arg1": np.array([1, 2], np.int32)}
    found = unrounded_outputs(module, inputs)
    assert [each.dtype.name for each in found.values()] == ["float64"] * 3 + ["int32"]
    assert found["out1"].tolist() == X.tolist()
    other = unrounded_outputs(module, inputs, {"n": 2 * X.astype(np.float16)})
    assert other["out1"].tolist() == (2 * X).tolist()


IN_REGIONS = """
func.func @tenth(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = nn.scale %x by 0.1 : (tensor<4xf16>) -> tensor<4xf16>
  func.return %0 : tensor<4xf16>
}
func.func @main(%x: tensor<4xf16>, %yes: tensor<i1>) -> tensor<4xf16> {
  %0 = control.repeat 3 (%x) : (tensor<4xf16>) -> tensor<4xf16> {
  ^bb0(%y: tensor<4xf16>):
    %a = func.call @tenth(%y) : (tensor<4xf16>) -> tensor<4xf16>
    %b = nn.add %a, %x : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
    control.yield %b : tensor<4xf16>
  }
  %1 = control.if %yes : tensor<i1> -> (tensor<4xf16>) {
    %c = nn.softmax %0 axis 0 : (tensor<4xf16>) -> tensor<4xf16>
    control.yield %c : tensor<4xf16>
  } else {
    control.yield %x : tensor<4xf16>
  }
  func.return %1 : tensor<4xf16>
}"""


def test_calls_loops_branches_and_parts_of_composites_are_not_rounded():
    module = module_of(IN_REGIONS, context())
    inputs = {"arg0": X.astype(np.float16), "arg1": np.array(True)}
    (found,) = unrounded_outputs(module, inputs).values()
    y = X
    for _ in range(3):
        y = y * 0.1 + X
    expected = np.exp(y) / np.exp(y).sum()
    assert np.abs(found - expected).max() < 1e-14
    inputs["arg1"] = np.array(False)
    assert unrounded_outputs(module, inputs)["out0"].tolist() == X.tolist()


HALVED = """
func.func @main(%x: tensor<f16>) -> tensor<f16> {
  %0 = control.while (%x) : (tensor<f16>) -> tensor<f16> {
  ^bb0(%y: tensor<f16>):
    %zero = nn.scale %y by 0.0 : (tensor<f16>) -> tensor<f16>
    %p = nn.less %zero, %y : (tensor<f16>, tensor<f16>) -> tensor<i1>
    control.condition %p : tensor<i1>
  } do {
  ^bb0(%y: tensor<f16>):
    %h = nn.scale %y by 0.5 : (tensor<f16>) -> tensor<f16>
    control.yield %h : tensor<f16>
  }
  func.return %0 : tensor<f16>
}"""


def test_a_loop_that_only_rounding_ends_has_too_many_iterations():
    module = module_of(HALVED, context())
    inputs = {"arg0": np.array(1, np.float16)}
    assert run_reference(module, inputs, max_turns=100).outputs["out0"] == 0
    with pytest.raises(TooManyIterations, match="not done after 100 iterations"):
        unrounded_outputs(module, inputs, max_turns=100)


def test_inputs_have_the_dtypes_of_the_program():
    module = module_of(THIRDS.replace("ELEMENT", "f16"), context())
    with pytest.raises(InputError, match=r"input 'arg0': float64\[4\]; need float16\[4\]"):
        unrounded_outputs(module, {"arg0": X})


def infinite_on_overflow(array: Array, error: Errors) -> Errors:
    """Any value is right where a float overflows: exact arithmetic does not."""
    if not is_floating(array.dtype):
        return error
    held = np.abs(array.astype(np.float64)) < float_limits(array.dtype).largest
    return np.where(held | np.isnan(array), error, np.inf)


def test_the_bits_of_integers_are_integers_of_the_same_width():
    module = module_of(
        """
        func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
          %0 = nn.bitcast %x : (tensor<2xi32>) -> tensor<2xi32>
          func.return %0 : tensor<2xi32>
        }""",
        context(),
    )
    found = unrounded_outputs(module, {"arg0": np.array([1, -1], np.int32)})
    assert found["out0"].dtype == np.int32


def _rounds(op: Operation) -> bool:
    return isinstance(op, Structured) and rounds(op.structure().body.function)


@settings(max_examples=60)
@given(programs("nn"))
def test_both_references_agree_within_the_bound_of_generated_programs(program: Program):
    try:
        expected = BOUNDED[NN](program, infinite_on_overflow)
    except IndexFault:
        with pytest.raises(IndexFault):
            unrounded_outputs(program.module, program.inputs)
        return
    if not expected.decided or any(map(_rounds, program.module.walk())):
        # Exact arithmetic leaves out what a program rounds on purpose.
        return
    exact = unrounded_outputs(program.module, program.inputs)
    assert exact.keys() == expected.outputs.keys()
    for name, rounded in expected.outputs.items():
        error = np.broadcast_to(expected.errors[name], rounded.shape)
        assert exact[name].dtype == (np.float64 if is_floating(rounded.dtype) else rounded.dtype)
        with np.errstate(all="ignore"):
            a, b = exact[name].astype(np.float64), rounded.astype(np.float64)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            near = np.abs(a - b) <= error
        assert (same | near | np.isinf(error)).all(), (name, a, b, error)
