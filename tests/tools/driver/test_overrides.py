"""A value that a user gives to an optional input of an ONNX model replaces the model's own."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner, Result

from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.cli import app
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.driver.load_program import load_executable
from abele.tools.driver.request import Request

X = np.array([[-1.5, 2.0, 0.5], [0.25, -3.0, 1.0]], np.float32)
BIAS = np.array([1, 2], np.float32)
SHAPE = np.array([4, 1], np.int64)


def gemm(version: int = 8) -> onnx.ModelProto:
    """x w + b, reshaped to a shape that the importer folds; w, b and shape may be given."""
    stored = {
        "w": np.array([[1, -2], [0.5, 3], [2, 0]], np.float32),
        "b": np.array([0.25, -1], np.float32),
        "shape": np.array([2, 2], np.int64),
    }
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    inputs += [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in stored.items()
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["m"]),
        helper.make_node("Reshape", ["m", "shape"], ["y"]),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["p", "q"])
    weights = [numpy_helper.from_array(a, name) for name, a in stored.items()]
    graph = helper.make_graph(nodes, "g", inputs, [y], weights)
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, ir_version=version, opset_imports=opset)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(gemm(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def given(tmp_path: Path, **arrays: np.ndarray) -> Path:
    np.savez(tmp_path / "x.npz", allow_pickle=False, **arrays)
    return tmp_path / "x.npz"


def run(model: Path, inputs: Path, *more: str | Path) -> Result:
    options = ("run", model, "--target", "tiny:2", "--inputs", inputs, *more)
    return CliRunner().invoke(app, [str(each) for each in options])


def expected(**arrays: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    # It warns of weights that are inputs.
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(gemm().SerializeToString(), options)
    return session.run(None, arrays)[0]  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("more", [{}, {"b": BIAS}, {"b": BIAS, "shape": SHAPE}, {"shape": SHAPE}])
def test_a_given_value_counts_and_the_models_own_otherwise(
    path: Path, tmp_path: Path, more: dict[str, np.ndarray]
):
    for _ in range(2):  # The second time, the program comes from the cache.
        result = run(path, given(tmp_path, x=X, **more), "--outputs", tmp_path / "y.npz")
        assert not result.exit_code, result.stderr
        with np.load(tmp_path / "y.npz") as outputs:
            np.testing.assert_allclose(outputs["y"], expected(x=X, **more), rtol=1e-6)


def test_python_gives_the_value_when_it_compiles(path: Path):
    own, other = (compile_model(path, "tiny:2", values=each) for each in ({}, {"b": BIAS}))
    np.testing.assert_allclose(other.run({"x": X})["y"], expected(x=X, b=BIAS), rtol=1e-6)
    np.testing.assert_allclose(own.run({"x": X})["y"], expected(x=X), rtol=1e-6)


def test_a_run_refuses_the_value_and_says_how_to_give_it(path: Path, tmp_path: Path):
    remedy = "input 'b' has a value in the model, .* --value b=.*values={'b': ...}"
    exe = compile_model(path, "tiny:2")
    with pytest.raises(InputError, match=remedy):
        exe.run({"x": X, "b": BIAS})
    exe.save(tmp_path / "m.abele")
    with pytest.raises(InputError, match=remedy):
        load_executable(tmp_path / "m.abele").run({"x": X, "b": BIAS})
    result = run(tmp_path / "m.abele", given(tmp_path, x=X, b=BIAS))
    assert result.exit_code == 2
    assert "compile the model with --value b=..." in result.stderr.replace("\n", " ")
    # An input that has got a value is no longer optional.
    with pytest.raises(InputError, match="no input 'b'; the program takes 'x'"):
        compile_model(path, "tiny:2", values={"b": BIAS}).run({"x": X, "b": BIAS})


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"b": BIAS.astype(np.float64)}, "input 'b' (float32[2]): got float64[2]"),
        ({"b": np.ones(3, np.float32)}, "input 'b' (float32[2]): got float32[3]"),
        ({"b": BIAS, "c": BIAS}, "no input 'c'; the program takes 'x' (float32[2, 3])"),
    ],
)
def test_what_does_not_fit_is_refused(path: Path, tmp_path: Path, arrays: dict, says: str):
    result = run(path, given(tmp_path, x=X, **arrays))
    assert result.exit_code == 2
    assert says in result.stderr.replace("\n", " ")


def test_before_version_4_no_initialiser_can_be_replaced(tmp_path: Path):
    onnx.save(gemm(version=3), tmp_path / "m.onnx")
    result = run(tmp_path / "m.onnx", given(tmp_path, x=X, b=BIAS))
    assert result.exit_code == 2
    assert "no input 'b'; the program takes 'x'" in result.stderr
    assert compile_model(tmp_path / "m.onnx", "tiny:2").run({"x": X})["y"].shape == (2, 2)


def test_bisect_takes_the_value_too(path: Path, tmp_path: Path):
    inputs = {"x": X, "b": BIAS, "shape": SHAPE}
    for model, arrays in ((path, given(tmp_path, **inputs)), (gemm(), inputs)):
        assert bisect(Request(model, "tiny:2"), inputs=arrays).passed


def test_a_damaged_list_of_optional_inputs_is_named(tmp_path: Path):
    text = tmp_path / "m.mlir"
    text.write_text("""builtin.module attributes {abele.optional_inputs = [1 : i64]} {
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> attributes {arg_names = ["x"]} {
        %0 = nn.neg %x : (tensor<2xf32>) -> tensor<2xf32>
        func.return %0 : tensor<2xf32>
      }
    }""")
    exe = compile_model(text, "tiny:2")
    with pytest.raises(InputError, match=r'abele.optional_inputs: .* need \["name", ...\]'):
        exe.run({"x": BIAS, "b": BIAS})
