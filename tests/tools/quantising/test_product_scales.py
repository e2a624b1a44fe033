from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools import Training
from abele.tools.cli import app
from abele.tools.driver.compile import compiled
from abele.tools.driver.request import Request
from abele.tools.quantising.product_scales import with_calibrated_scales

RANDOM = np.random.default_rng(3)
WEIGHTS = {
    "w1": RANDOM.normal(size=(8, 16)).astype(np.float32),
    "w2": RANDOM.normal(size=(16, 4)).astype(np.float32),
    "b": RANDOM.normal(size=4).astype(np.float32),
}
SAMPLES = {"x": (RANDOM.normal(size=(12, 8)) * 2000).astype(np.float32)}


def layers() -> onnx.ModelProto:
    """Two layers; the second one has a bias."""
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w1"], ["h"], "first"),
            helper.make_node("Relu", ["h"], ["r"], "relu"),
            helper.make_node("Gemm", ["r", "w2", "b"], ["y"], "second"),
        ],
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(value, name) for name, value in WEIGHTS.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


REQUEST = Request(layers(), "c600:4", precision="float8", batch=12, cache=False)


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(x @ WEIGHTS["w1"], 0) @ WEIGHTS["w2"] + WEIGHTS["b"]


def error(request: Request) -> float:
    (got,) = compiled(request).run(SAMPLES).values()
    want = expected(SAMPLES["x"])
    return float(np.linalg.norm(got.astype(np.float32) - want) / np.linalg.norm(want))


def test_large_activations_are_no_longer_cut_off():
    calibrated = with_calibrated_scales(REQUEST, SAMPLES)
    assert error(REQUEST) > 0.5
    assert error(calibrated) < 0.1


def test_scales_are_the_finest_that_hold_the_samples():
    passes = with_calibrated_scales(REQUEST, SAMPLES, "minmax").passes
    hidden = np.maximum(SAMPLES["x"] @ WEIGHTS["w1"], 0)
    first, second = (int(np.ceil(np.log2(np.abs(a).max() / 240))) for a in (SAMPLES["x"], hidden))
    assert f'scales="{first}/*:first","{second}/*:second/product"' in passes


def test_a_program_in_text_is_calibrated_too(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text("""
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = nn.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc("square")
  func.return %0 : tensor<2x2xf32>
}""")
    request = Request(path, "c600:4", precision="float8")
    samples = {"arg0": np.full((3, 2, 2), 960, np.float32)}
    assert '"2/2:square"' in with_calibrated_scales(request, samples).passes
    with pytest.raises(InputError, match="arrays z; need one for each input"):
        with_calibrated_scales(request, {"z": samples["arg0"]})


def test_a_step_of_training_takes_the_scales_of_its_forward_pass():
    train = Training(loss="mean_absolute", optimizer="sgd", learning_rate=1e-9)
    request = replace(REQUEST, train=train)
    data = {"x": SAMPLES["x"] / 4, "target": np.zeros((12, 4), np.float32)}
    want = np.abs(expected(data["x"])).mean()
    given, calibrated = (
        float(compiled(each).run(data)["loss"])
        for each in (request, with_calibrated_scales(request, data))
    )
    assert given < 0.7 * want
    assert calibrated == pytest.approx(want, rel=0.05)


@pytest.mark.parametrize(
    ("changes", "samples", "message"),
    [
        ({"precision": "float16"}, SAMPLES, "--calibrate without --precision float8"),
        ({"model": "p.abele"}, SAMPLES, "p.abele: compiled already; --calibrate needs the model"),
        ({}, {"z": SAMPLES["x"]}, "inputs: arrays z; need one for each input"),
        ({}, {"x": SAMPLES["x"][:, :3]}, "'x'|axis 1|size"),
        ({}, {"x": SAMPLES["x"] * np.float32(np.nan)}, "nan in 'x'"),
        ({}, {"x": SAMPLES["x"] * np.float32(6e34)}, "'second/product' is not finite"),
        ({}, {"x": SAMPLES["x"] * np.float32(1e30)}, "first: operand 0: .*leave its node in float"),
        ({"passes": "narrow-products,nn"}, SAMPLES, "--calibrate and the pipeline"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(changes, samples, message):
    with pytest.raises(InputError, match=message):
        with_calibrated_scales(replace(REQUEST, **changes), samples)


def test_commands_calibrate_on_a_file(tmp_path: Path):
    model, samples, program = (tmp_path / name for name in ("m.onnx", "x.npz", "m.abele"))
    model.write_bytes(layers().SerializeToString())
    np.savez(samples, **SAMPLES)
    shared = [str(model), "--target", "c600:4", "--batch", "12", "--calibrate", str(samples)]
    done = CliRunner().invoke(
        app, ["compile", *shared, "--precision", "float8", "-o", str(program)]
    )
    assert done.exit_code == 0, done.output
    assert program.exists()
    refused = CliRunner().invoke(app, ["compile", *shared, "-o", str(program)])
    assert refused.exit_code == 2
    assert "need both" in refused.stderr
