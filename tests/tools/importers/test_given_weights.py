"""Weights that a user gives replace those of a model by name, in every front end."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.cli import app
from abele.tools.driver.cache.key import parts_of
from abele.tools.driver.context import new_context
from abele.tools.driver.request import Request
from abele.tools.importers.given_weights import given_weights
from abele.tools.importers.onnx.reader import import_onnx
from abele.tools.importers.safetensors import file_parts

Arrays = dict[str, np.ndarray]
RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(2, 4)).astype(np.float32)
OLD = {"fc.weight": np.ones((4, 3), np.float32), "fc.bias": np.zeros(3, np.float32)}
NEW = {name: RANDOM.normal(size=a.shape).astype(np.float32) for name, a in OLD.items()}

TEXT = """
nn.state @fc.weight : tensor<4x3xf32> = <[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] : tensor<4x3xf32>>
nn.state @fc.bias : tensor<3xf32> = <[0, 0, 0] : tensor<3xf32>>
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x3xf32>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %w = nn.load @fc.weight : tensor<4x3xf32>
  %b = nn.load @fc.bias : tensor<3xf32>
  %y = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %z = nn.add %y, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %z : tensor<2x3xf32>
}
"""


def saved(path: Path, arrays: Arrays, metadata: dict[str, str] | None = None) -> Path:
    path.write_bytes(b"".join(file_parts(metadata or {"format": "pt"}, arrays)))
    return path


def linear(**more: np.ndarray) -> onnx.ModelProto:
    """A linear layer in ONNX, with further weights that nothing reads."""
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[2, 4] x) => (float[2, 3] y) {'
        "  p = MatMul (x, w)  y = Add (p, b) }"
    )
    # The parser takes no dots in names.
    for node, name in zip(model.graph.node, OLD, strict=True):
        node.input[1] = name
    tensors = [numpy_helper.from_array(a, name) for name, a in {**OLD, **more}.items()]
    model.graph.initializer.extend(tensors)
    return model


@pytest.fixture(params=["onnx", "mlir"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"net.{request.param}"
    if request.param == "onnx":
        onnx.save(linear(), path)
    else:
        path.write_text(TEXT)
    return path


def run(model: object, **options: object) -> np.ndarray:
    return compile_model(model, "tiny:4", cache=False, **options).run({"x": X})["y"]


def test_tensors_of_a_file_replace_weights_by_name(model: Path, tmp_path: Path):
    found = run(model, weights=saved(tmp_path / "w.safetensors", NEW))
    np.testing.assert_allclose(found, X @ NEW["fc.weight"] + NEW["fc.bias"], rtol=1e-5)
    np.testing.assert_array_equal(run(model, weights=NEW), found)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats_are_converted_and_a_line_says_so(model: Path, dtype: type):
    given = {name: array.astype(dtype) for name, array in NEW.items()}
    said: list[str] = []
    exe = compile_model(model, "tiny:4", cache=False, weights=given, on_note=said.append)
    name = np.dtype(dtype).name
    assert (
        exe.notes
        == tuple(said)
        == (
            f"note: the arrays given: 2 tensors converted from {name} to float32: "
            "'fc.weight', 'fc.bias'",
        )
    )
    w, b = (given[each].astype(np.float32) for each in ("fc.weight", "fc.bias"))
    np.testing.assert_allclose(exe.run({"x": X})["y"], X @ w + b, rtol=1e-5)


def test_the_cache_tells_files_of_weights_apart_and_keeps_the_lines(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    path = saved(tmp_path / "w.safetensors", NEW)
    first = parts_of(Request(model, "tiny:4", weights=path))
    half = {name: array.astype(np.float16) for name, array in NEW.items()}
    saved(path, half)
    second = parts_of(Request(model, "tiny:4", weights=path))
    assert first is not None
    assert second is not None
    assert first["weights"] != second["weights"]
    assert {**first, "weights": ""} == {**second, "weights": ""}
    made = [compile_model(model, "tiny:4", weights=path) for _ in range(2)]
    assert made[1].is_from_cache
    assert made[0].notes == made[1].notes != ()


REFUSED = [
    ({"fc.weight": NEW["fc.weight"]}, "1 of the model's 2 weights are not in it: 'fc.bias';"),
    ({**NEW, "bn.scale": OLD["fc.bias"]}, "1 of its 3 tensors are not in the model: 'bn.scale' "),
    (
        {"fc.weight": NEW["fc.weight"], "fc.biases": NEW["fc.bias"]},
        r"not in it: 'fc.bias' \(it has 'fc.biases'\)",
    ),
    (
        {**NEW, "fc.weight": NEW["fc.weight"].T.copy()},
        r"'fc.weight' is float32\[3, 4\], and the model's float32\[4, 3\]",
    ),
    ({**NEW, "fc.bias": np.zeros(3, np.int8)}, "'fc.bias' is int8, and the model's float32"),
    ({f"module.{n}": a for n, a in NEW.items()}, r"may fit without 'module\.' before them"),
    ({n.removeprefix("fc."): a for n, a in NEW.items()}, r"may fit with 'fc\.' before them"),
    ({**NEW, "fc.bias": np.full(3, 1e300)}, r"'fc.bias' is float64, whose element 1e\+300 no"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_weights_that_do_not_belong_to_the_model_are_refused(
    model: Path, given: Arrays, message: str
):
    with pytest.raises(InputError, match=message):
        run(model, weights=given)


def test_a_long_list_of_names_is_cut(tmp_path: Path):
    given = {f"name{i}": np.zeros(1, np.float32) for i in range(100)}
    with pytest.raises(InputError) as raised:
        run(linear(), weights={**NEW, **given})
    assert "100 of its 102 tensors are not in the model: 'name0', 'name1', 'name2', ..." in str(
        raised.value
    )


def test_partial_weights_keep_what_the_file_lacks_and_leave_out_the_rest(model: Path):
    given = {"fc.weight": NEW["fc.weight"], "other": NEW["fc.bias"]}
    said: list[str] = []
    found = run(model, weights=given, partial_weights=True, on_note=said.append)
    np.testing.assert_allclose(found, X @ NEW["fc.weight"] + OLD["fc.bias"], rtol=1e-5)
    kept, left_out = said
    assert "1 of the 2 weights" in kept
    assert kept.endswith("keep their values: 'fc.bias'")
    assert left_out.endswith("are left out: 'other'")
    with pytest.raises(InputError, match="none of its 1 tensors is a weight of the model"):
        run(model, weights={"other": NEW["fc.bias"]}, partial_weights=True)


def test_counters_that_the_model_lacks_and_weights_that_nothing_reads_are_no_contradiction():
    said: list[str] = []
    given = {**NEW, "bn.num_batches_tracked": np.array(5), "unread": np.zeros(9, np.float32)}
    model = linear(unread=np.ones(9, np.float32))
    found = run(model, weights=given, on_note=said.append)
    np.testing.assert_array_equal(found, run(linear(), weights=NEW))
    (line,) = said
    assert line.endswith("are left out: 'bn.num_batches_tracked'")


def test_what_an_importer_computes_of_a_weight_uses_the_given_one():
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[6] x) => (float[a, b] y)'
        " <int64[2] shape = {3, 2}> { y = Reshape (x, shape) }"
    )
    given = {"shape": np.array([2, 3], np.int32)}
    exe = compile_model(model, "tiny:4", cache=False, weights=given)
    assert exe.outputs[0].shape == (2, 3)


def test_states_that_a_pass_has_folded_are_not_replaced(tmp_path: Path):
    """A program between two passes may hold a weight twice: as a state, and in a constant."""
    text = TEXT.replace("%y, %b :", "%y, %c :").replace(
        "  %z =", "  %c = nn.constant <[0, 0, 0] : tensor<3xf32>> : tensor<3xf32>\n  %z ="
    )
    path = tmp_path / "folded.mlir"
    path.write_text(text)
    with pytest.raises(InputError, match="1 of its 2 tensors are not in the model: 'fc.bias'"):
        run(path, weights=NEW)


def test_dumps_of_all_levels_take_weights(tmp_path: Path):
    model = tmp_path / "net.mlir"
    model.write_text(TEXT)
    given = {"fc.weight": NEW["fc.weight"]}
    compile_model(model, "tiny:4", dump_ir=tmp_path / "stages")
    found = run(model, weights=given, partial_weights=True)
    for name in ("12-convert-nn-to-partition", "15-allocate", "17-convert-tile-to-exchange"):
        path = tmp_path / "stages" / f"{name}.mlir"
        exe = compile_model(path, cache=False, weights=given, partial_weights=True)
        np.testing.assert_array_equal(exe.run({"x": X})["y"], found)


def test_shared_tensors_that_a_file_stores_once_are_found_by_each_name(tmp_path: Path):
    path = saved(tmp_path / "w.safetensors", {"emb": NEW["fc.bias"]}, {"head": "emb"})
    found = given_weights(path).arrays
    np.testing.assert_array_equal(found["head"], found["emb"])


def test_a_checkpoint_of_abele_holds_more_than_weights(tmp_path: Path):
    kept = {"fc.bias.momentum": NEW["fc.bias"], "train.unbiased.0": np.array(0.5, np.float32)}
    path = saved(tmp_path / "w.safetensors", {**NEW, **kept}, {"step": "3", "seed": "0"})
    np.testing.assert_array_equal(run(linear(), weights=path), run(linear(), weights=NEW))


def test_import_onnx_takes_weights(tmp_path: Path):
    path = saved(tmp_path / "w.safetensors", NEW)
    module = import_onnx(linear(), new_context(), weights=path)
    again = import_onnx(linear(), new_context(), weights=NEW)
    assert str(module) == str(again) != str(import_onnx(linear(), new_context()))
    with pytest.raises(InputError, match="not in it"):
        import_onnx(linear(), new_context(), weights={"fc.bias": NEW["fc.bias"]})


COMMANDS = ("run", "memory", "plan", "bisect", "graph")


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_a_file_of_another_model_with_code_2(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    onnx.save(linear(), "net.onnx")
    saved(Path("w.safetensors"), {"other": NEW["fc.bias"]})
    found = CliRunner().invoke(
        app, [command, "net.onnx", "--target", "tiny:4", "--weights", "w.safetensors"]
    )
    assert found.exit_code == 2
    (line,) = found.stderr.strip().splitlines()
    assert line.startswith("error: net.onnx: weights of w.safetensors: none of its 1 tensors")
    alone = CliRunner().invoke(app, [command, "net.onnx", "--partial-weights"])
    assert alone.exit_code == 2
    assert "--partial-weights without --weights" in alone.stderr
