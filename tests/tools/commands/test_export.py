import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.driver.compile import compile_model

TEXT = """
builtin.module {
  nn.state @w : tensor<3xf32> = <[1.0, 2.0, 3.0] : tensor<3xf32>>
  nn.state @n : tensor<3xf32> = <[0.0, 0.0, 5.0] : tensor<3xf32>>
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %w = nn.load @w : tensor<3xf32>
    %n = nn.load @n : tensor<3xf32>
    %1 = nn.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %2 = nn.add %n, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    nn.store %2, @n : tensor<3xf32>
    func.return %1 : tensor<3xf32>
  }
}"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "net.mlir"
    path.write_text(TEXT)
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


@pytest.mark.parametrize("dialect", ["stablehlo", "linalg"])
def test_a_model_is_written_with_the_values_of_states_beside_it(model, tmp_path, dialect):
    out = tmp_path / "out.mlir"
    result = run(model, "-o", out, "--to", dialect)
    assert result.exit_code == 0, result.output
    assert "takes arg0, n; gives out0, n" in result.output
    assert f'"{dialect}.' in out.read_text()
    assert "abele" not in out.read_text()
    with np.load(tmp_path / "out.npz") as values:
        assert values.files == ["n"]
        np.testing.assert_array_equal(values["n"], [0, 0, 5])


def test_weights_are_arguments_if_asked(model, tmp_path):
    result = run(model, "-o", tmp_path / "out.mlir", "--arguments")
    assert "takes arg0, w, n; gives out0, n" in result.output
    with np.load(tmp_path / "out.npz") as values:
        assert values.files == ["w", "n"]


def test_what_was_written_runs_again(model, tmp_path):
    first, second = tmp_path / "first.mlir", tmp_path / "second.mlir"
    assert run(model, "-o", first).exit_code == 0
    assert run(first, "-o", second).exit_code == 0
    assert run(second, "-o", first).exit_code == 0
    assert first.read_text() == second.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "onnx"), "--to onnx: need one of stablehlo, linalg"),
        (("--passes", "nothing"), "nothing"),
        (("-o", "out.txt"), "out.txt: need a file that ends in .mlir"),
        (("-o", "net.mlir"), "net.mlir"),
    ],
)
def test_wrong_options_are_refused_with_code_2(model, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    given = arguments if "-o" in arguments else ("-o", "out.mlir", *arguments)
    result = run("net.mlir", *given)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_model_that_is_not_covered_leaves_no_file(tmp_path):
    path, out = tmp_path / "rest.mlir", tmp_path / "out.mlir"
    path.write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %1 = nn.fmod %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
        "  func.return %1 : tensor<4xf32>\n}\n"
    )
    result = run(path, "-o", out, "--to", "linalg")
    assert result.exit_code == 2
    assert "rest.mlir:2:3: nn.fmod: rem of f32" in result.output.replace("\n", " ")
    assert not out.exists()


@pytest.mark.parametrize("dialect", ["stablehlo", "linalg"])
def test_zeros_keep_their_signs(tmp_path, dialect):
    path, out = tmp_path / "zeros.mlir", tmp_path / "out.mlir"
    path.write_text(
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %c = nn.constant <[0.0, -0.0] : tensor<2xf32>> : tensor<2xf32>\n"
        "  %1 = nn.div %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
        "  func.return %1 : tensor<2xf32>\n}\n"
    )
    assert run(path, "-o", out, "--to", dialect).exit_code == 0
    exe = compile_model(out, "tiny:4", cache=False)
    found = exe.run({"arg0": np.ones(2, np.float32)}, at="nn")
    np.testing.assert_array_equal(next(iter(found.values())), [np.inf, -np.inf])


def test_states_may_have_any_name(tmp_path):
    path = tmp_path / "net.mlir"
    path.write_text(TEXT.replace("@n", "@file").replace("@w", "@allow_pickle"))
    result = run(path, "-o", tmp_path / "out.mlir", "--arguments")
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "out.npz") as values:
        assert values.files == ["allow_pickle", "file"]


def test_states_that_passes_add_have_values_too(tmp_path):
    path = tmp_path / "net.mlir"
    path.write_text(
        "nn.state @w : tensor<2x1xf32> = <[0.5, 2.0] : tensor<2x1xf32>>\n"
        "func.func @main(%x: tensor<3x2xf32>) -> tensor<3x1xf32> {\n"
        "  %w = nn.load @w : tensor<2x1xf32>\n"
        "  %1 = nn.matmul %x, %w : (tensor<3x2xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>\n"
        "  func.return %1 : tensor<3x1xf32>\n}\n"
    )
    result = run(path, "-o", tmp_path / "out.mlir", "--passes", "train{optimizer=adam}")
    assert result.exit_code == 0, result.output
    takes = result.output.split("takes ")[1].split(";")[0].split(", ")
    with np.load(tmp_path / "out.npz") as values:
        assert values.files == takes[2:]
        assert len(values.files) > 1
        np.testing.assert_array_equal(values["w"], [[0.5], [2.0]])


def test_shapes_of_inputs_give_sizes_to_free_dimensions(tmp_path):
    model, inputs = tmp_path / "net.onnx", tmp_path / "x.npz"
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 3])
        for name in ("x", "y")
    ]
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:])
    onnx.save(onnx.helper.make_model(graph), model)
    np.savez(inputs, x=np.zeros((5, 3), np.float32))
    out = tmp_path / "out.mlir"
    result = run(model, "-o", out)
    assert result.exit_code == 2
    assert "give the inputs (--inputs X.npz" in result.output
    result = run(model, "-o", out, "--inputs", inputs)
    assert result.exit_code == 0, result.output
    assert "tensor<5x3xf32>" in out.read_text()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"nothing": (3,)}, "x.npz: no input 'nothing'; the program takes 'arg0' (float32[3])"),
        ({"arg0": (4,)}, "x.npz: input 'arg0' (float32[3]): got the shape [4]"),
        ({"arg0": (3, 1)}, "x.npz: input 'arg0' (float32[3]): got the shape [3, 1]"),
        ({"arr_0": (3,)}, ""),
    ],
)
def test_inputs_fit_a_model_without_free_dimensions(model, tmp_path, monkeypatch, arrays, message):
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", **{name: np.zeros(shape, np.float32) for name, shape in arrays.items()})
    result = run("net.mlir", "-o", "out.mlir", "--inputs", "x.npz")
    assert result.exit_code == (2 if message else 0), result.output
    assert message in result.output.replace("\n", " ")


@pytest.mark.parametrize("source", ["nn", "stablehlo"])
def test_a_level_stands_for_its_passes(model, tmp_path, source):
    first, out = tmp_path / "first.mlir", tmp_path / "out.mlir"
    if source == "stablehlo":
        assert run(model, "-o", first).exit_code == 0
        model = first
    result = run(model, "-o", out, "--passes", "nn")
    assert result.exit_code == 0, result.output
    result = run(model, "-o", out, "--passes", "nn,partition")
    assert result.exit_code == 2
    assert "--passes nn,partition: lead to partition; need passes that" in result.output


def test_a_compiled_program_is_refused(model, tmp_path):
    program = tmp_path / "net.abele"
    compile_model(model, target="tiny:4").save(program)
    result = run(program, "-o", tmp_path / "out.mlir")
    assert result.exit_code == 2
    assert "net.abele: compiled already, so it cannot be written; need the model" in result.output
