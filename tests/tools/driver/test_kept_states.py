"""Inputs that become states on the device."""

import numpy as np
import pytest

from abele.ir.errors import InputError
from abele.tools.driver.compile import compile_model

SUM = """
builtin.module {
  func.func @main(%x: tensor<4xf32>, %past: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      attributes {arg_names = ["x", "past"], result_names = ["present", "double"]} {
    %0 = nn.add %x, %past : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = nn.add %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0, %2 : tensor<4xf32>, tensor<4xf32>
  }
}
"""


@pytest.fixture
def running_sum(tmp_path):
    path = tmp_path / "sum.mlir"
    path.write_text(SUM)
    return path


def test_a_kept_input_holds_the_output_of_the_run_before(running_sum):
    exe = compile_model(running_sum, "tiny:4", keep={"past": "present"})
    assert [each.name for each in exe.inputs] == ["x"]
    assert [each.name for each in exe.outputs] == ["double"]
    x = np.arange(4, dtype=np.float32)
    for at in exe.levels:
        for iteration in (1, 2, 3):
            np.testing.assert_array_equal(exe.run({"x": x}, at=at)["double"], -2 * iteration * x)


def test_one_output_can_feed_two_inputs(tmp_path):
    path = tmp_path / "two.mlir"
    path.write_text(
        "func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>, %x: tensor<2xf32>)"
        " -> (tensor<2xf32>, tensor<2xf32>)"
        ' attributes {arg_names = ["a", "b", "x"], result_names = ["y", "z"]} {\n'
        "  %0 = nn.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
        "  %1 = nn.add %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
        "  func.return %1, %0 : tensor<2xf32>, tensor<2xf32>\n}\n"
    )
    exe = compile_model(path, "tiny:2", keep={"a": "y", "b": "y"})
    x = np.ones(2, np.float32)
    assert [exe.run({"x": x})["z"].tolist() for _ in range(3)] == [[0, 0], [2, 2], [6, 6]]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"pas": "present"}, "no input 'pas'; did you mean past"),
        ({"past": "presen"}, "no output 'presen'; did you mean present"),
    ],
)
def test_a_name_that_the_program_does_not_have_is_refused(running_sum, keep, message):
    with pytest.raises(InputError, match=message):
        compile_model(running_sum, "tiny:4", keep=keep)


def test_types_that_differ_are_refused(tmp_path):
    path = tmp_path / "cast.mlir"
    path.write_text(
        "func.func @main(%a: tensor<2xf32>) -> tensor<2xi32> {\n"
        "  %0 = nn.cast %a : (tensor<2xf32>) -> tensor<2xi32>\n"
        "  func.return %0 : tensor<2xi32>\n}\n"
    )
    with pytest.raises(InputError, match="the input is tensor<2xf32> and the output tensor<2xi32>"):
        compile_model(path, "tiny:2", keep={"arg0": "out0"})
