"""Inputs that become states on the device."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.dialects.exchange import VariableOp
from abele.ir.errors import InputError
from abele.tools.driver.compile import compile_model
from abele.tools.driver.session import Session

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


def step_text(y: str = "nn.sub %w, %s : (tensor<2xf32>, tensor<2xf32>)", kind: str = "f32") -> str:
    return f"""
builtin.module {{
  nn.state @"p['w']" : tensor<2xf32> = <[1.0, 1.0] : tensor<2xf32>>
  nn.state @"p['b']" : tensor<2xf32> = <[5.0, 5.0] : tensor<2xf32>>
  func.func @main(%x: tensor<2xf32>, %s: tensor<2xf32>)
      -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x{kind}>)
      attributes {{arg_names = ["x", "s[0].count"],
                  result_names = ["result[0]['w']", "result[0]['b']", "result[1][0].count",
                                  "y"]}} {{
    %w = nn.load @"p['w']" : tensor<2xf32>
    %b = nn.load @"p['b']" : tensor<2xf32>
    %0 = nn.add %w, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %1 = nn.add %b, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = nn.add %s, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %3 = {y} -> tensor<2x{kind}>
    func.return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x{kind}>
  }}
}}
"""


@pytest.fixture
def step(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(step_text())
    return path


def test_nested_names_keep_all_leaves_in_states_and_inputs(step):
    exe = compile_model(step, "tiny:2", keep={"p": "result[0]", "s": "result[1]"})
    assert [each.name for each in exe.inputs] == ["x"]
    assert [each.name for each in exe.outputs] == ["y"]
    x = np.full(2, 3, np.float32)
    assert [exe.run({"x": x})["y"].tolist() for _ in range(2)] == [[1, 1], [1, 1]]
    assert {name: array[0] for name, array in exe.states.items()} == {
        "p['w']": 7,
        "p['b']": 20,
        "s[0].count": 6,
    }


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"p": "result[1]"}, r"--keep p\['w'\]=result\[1\]\['w'\]: no output"),
        ({"p": "result[0]", "p['w']": "y"}, r"\"p\['w'\]\" is given twice"),
        ({"p['c']": "y"}, r"no input \"p\['c'\]\""),
    ],
)
def test_nested_names_without_an_output_for_each_leaf_are_refused(step, keep, message):
    with pytest.raises(InputError, match=message):
        compile_model(step, "tiny:2", keep=keep)


def test_a_state_keeps_no_output_of_another_type(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(step_text("nn.cast %w : (tensor<2xf32>)", "i32"))
    with pytest.raises(InputError, match="the state is tensor<2xf32> and the output tensor<2xi32>"):
        compile_model(path, "tiny:2", keep={"p['w']": "y"})


def test_a_weight_that_an_importer_may_have_computed_with_keeps_nothing():
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    weight = numpy_helper.from_array(np.ones(2, np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    with pytest.raises(InputError, match="--keep w=y: this is a weight of the model, which the"):
        compile_model(model, "tiny:2", keep={"w": "y"})


CACHE = """
func.func @main(%cache: tensor<4x8xf32>, %x: tensor<1x8xf32>, %i: tensor<1x1xi32>)
    -> (tensor<4x8xf32>, tensor<4xf32>)
    attributes {arg_names = ["cache", "x", "i"], result_names = ["after", "sums"]} {
  %0 = nn.relu %x : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %1 = nn.update "last" %0, %i into %cache axis 0
      : (tensor<1x8xf32>, tensor<1x1xi32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = nn.reduce "sum" %1 axes [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  func.return %1, %2 : tensor<4x8xf32>, tensor<4xf32>
}"""


def test_programs_of_several_precisions_share_a_cache(tmp_path):
    """The cache is narrow in a program that would cast it in every run, and cast when it moves."""
    (tmp_path / "step.mlir").write_text(CACHE)
    given = {"keep": {"cache": "after"}, "cache": False}
    programs = {
        name: compile_model(tmp_path / "step.mlir", "tiny:4", precision=precision, **given)
        for name, precision in (("narrow", "float16"), ("wide", None))
    }
    assert [state_type(exe, "cache") for exe in programs.values()] == ["float16", "float32"]
    session = Session(programs)
    rng, held = np.random.default_rng(0), np.zeros((4, 8), np.float32)
    for turn, row in enumerate((0, 3, 1, 1, 2)):
        x = rng.normal(size=(1, 8)).astype(np.float32)
        held[row] = np.maximum(x, 0)
        name = ("narrow", "wide")[turn % 2]
        found = session.run({"x": x, "i": np.array([[row]], np.int32)}, name)
        np.testing.assert_allclose(found["sums"], held.sum(1), rtol=2e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rule", [0, 1, 2])
def test_a_number_too_large_for_a_narrow_cache_becomes_what_the_target_makes_of_it(tmp_path, rule):
    (tmp_path / "step.mlir").write_text(CACHE.replace('"sum"', '"max"'))
    target = f"tiny:4,rounding.overflow={rule}"
    given = {"keep": {"cache": "after"}, "cache": False}
    session = Session(
        {
            "narrow": compile_model(
                tmp_path / "step.mlir", target, precision="float16", rounding="nearest", **given
            ),
            "wide": compile_model(tmp_path / "step.mlir", target, **given),
        }
    )
    x = np.full((1, 8), 1e6, np.float32)
    for row, name in enumerate(("wide", "narrow")):
        found = session.run({"x": x, "i": np.array([[row]], np.int32)}, name)
    # The narrow program has cast the second row itself, and the session the first one.
    np.testing.assert_array_equal(found["sums"][:2], [[np.inf, 65504, np.nan][rule]] * 2)


def state_type(exe, name):
    return next(
        op.dtype.name
        for op in exe.module_at("exchange").walk()
        if isinstance(op, VariableOp) and op.state is not None and op.symbol == name
    )
