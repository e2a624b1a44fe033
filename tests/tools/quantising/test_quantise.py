from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from abele.dialects import partition
from abele.ir.support.errors import InputError
from abele.tools import compile_model, quantise
from abele.tools.quantising.quantise import Quantised

from .networks import model

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples" / "digits.onnx"


@cache
def samples() -> dict[str, np.ndarray]:
    images = np.load(ROOT / "examples" / "digits.npz")["x"]
    return {"x": images, "target": np.load(ROOT / "examples" / "digit_labels.npy")}


@cache
def digits(to: str = "int8", target: str = "tiny:16") -> Quantised:
    return quantise(DIGITS, samples(), to=to, target=target, batch=16)  # type: ignore[arg-type]


def peer(made: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """onnxruntime without its optimisations, which move quantisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(made.SerializeToString(), options)


@pytest.mark.parametrize(("to", "target"), [("int8", "tiny:16"), ("fp8", "c600:16")])
def test_digits_keep_their_accuracy(to: str, target: str):
    found = digits(to, target)
    onnx.checker.check_model(found.model)
    assert found.judged is not None
    scores = found.judged.outputs["scores"]
    assert found.judged.samples == scores.compared == 74
    assert scores.accuracy is not None
    assert scores.accuracy_in_float is not None
    assert scores.accuracy >= scores.accuracy_in_float - 0.01
    assert scores.share is not None
    assert scores.share >= 0.98
    assert found.after.weight_bytes < 0.6 * found.before.weight_bytes
    assert found.choice.products == ("node_conv2d", "node_conv2d_1", "node_linear")


def test_the_written_model_gives_what_onnxruntime_gives():
    made = digits().model
    images = samples()["x"][:16]
    (expected,) = peer(made).run(None, {"x": images})
    exe = compile_model(made, "tiny:16", batch=16)
    (got,) = exe.run({"x": images}).values()
    # A step of the last tensor that is rounded moves a sum by one product at most.
    assert np.abs(got - expected).max() < 0.02 * np.abs(expected).max()
    assert (got.argmax(1) == expected.argmax(1)).all()


def test_integers_are_within_one_step_of_onnxruntimes():
    """The tensors that quantise themselves, as outputs."""
    made = onnx.ModelProto()
    made.CopyFrom(digits().model)
    names = [node.output[0] for node in made.graph.node if node.op_type == "QuantizeLinear"]
    for name in names:
        made.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None))
    images = samples()["x"][:4]
    expected = dict(zip(names, peer(made).run(names, {"x": images}), strict=True))
    got = compile_model(made, "tiny:16", batch=4, lenient=True).run({"x": images})
    for name in names:
        steps = np.abs(got[name].astype(int) - expected[name].astype(int))
        assert steps.max() <= 1
        assert (steps > 0).mean() < 0.01


def test_the_levels_give_the_same_bytes():
    """Sums of products of 8-bit integers are exact in float32 here, whatever their order."""
    exe = compile_model(digits().model, "tiny:16", batch=16)
    images = {"x": samples()["x"][:16]}
    machine = exe.run(images)["scores"]
    assert machine.tobytes() == exe.run(images, at="partition")["scores"].tobytes()


def test_kept_nodes_stay_in_float():
    found = quantise(DIGITS, samples(), target="tiny:16", batch=16, keep=["linear$"])
    assert found.choice.kept == ("node_linear",)
    (gemm,) = (node for node in found.model.graph.node if node.op_type == "Gemm")
    assert list(gemm.input) == ["_unsafe_view", "classes.weight", "classes.bias"]


def test_a_table_of_sensitivity_has_each_product_the_worst_first():
    found = quantise(DIGITS, samples(), target="tiny:16", batch=16, sensitivity=32)
    losses = [each.judged.main.decibels for each in found.sensitivity if each.judged.main]
    assert {each.node for each in found.sensitivity} == set(found.choice.products)
    assert losses == sorted(losses)
    assert found.judged is not None
    assert found.judged.main is not None
    assert min(losses) >= found.judged.main.decibels - 1


def test_scales_follow_from_the_samples_that_are_not_judged_by():
    """Samples to judge by are far larger here, and change no scale."""
    images = samples()["x"]
    first = quantise(DIGITS, {"x": images[:40]}, target="tiny:4", validation_data={"x": images})
    other = quantise(
        DIGITS, {"x": images[:40]}, target="tiny:4", validation_data={"x": 100 * images[:8]}
    )
    assert first.model == other.model


def normalised(bias: float) -> onnx.ModelProto:
    """A convolution, a normalisation, a residual, a bias, and a product of two inputs."""
    random = np.random.default_rng(0)
    node = helper.make_node
    return model(
        [
            node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], name="conv"),
            node("BatchNormalization", ["c", "g", "h", "m", "v"], ["n"], name="norm"),
            node("Add", ["n", "x"], ["a"], name="add"),
            node("Relu", ["a"], ["r"], name="relu"),
            node("ConvTranspose", ["r", "t", "tb"], ["u"], group=2, name="up"),
            node("Flatten", ["u"], ["f"], name="flat"),
            node("MatMul", ["f", "k"], ["y0"], name="product"),
            node("Transpose", ["y0"], ["yt"], name="turn"),
            node("MatMul", ["y0", "yt"], ["y"], name="square"),
        ],
        {"x": (1, 4, 5, 5)},
        {"y": (1, 1)},
        {
            "w": random.standard_normal((4, 4, 3, 3)).astype(np.float32),
            "g": random.uniform(0.5, 2, 4).astype(np.float32),
            "h": random.standard_normal(4).astype(np.float32),
            "m": random.standard_normal(4).astype(np.float32),
            "v": random.uniform(0.5, 2, 4).astype(np.float32),
            "t": random.standard_normal((4, 2, 2, 2)).astype(np.float32),
            "tb": np.array([1.0, bias, 0.0, -2.0], np.float32),
            "k": random.standard_normal((144, 3)).astype(np.float32),
        },
        opset=13,
    )


@pytest.mark.parametrize(("to", "bias"), [("int8", 3.0), ("int8", 1e7), ("fp8", 3.0)])
def test_all_kinds_of_products_are_quantised(to: str, bias: float):
    """A bias of 1e7 is too large for the scales of its weights, so these are wider."""
    random = np.random.default_rng(5)
    data = {"x": random.standard_normal((24, 4, 5, 5)).astype(np.float32)}
    # With few samples, others are often larger than all of them, and are cut off.
    found = quantise(
        normalised(bias),
        data,
        to=to,  # type: ignore[arg-type]
        target="c600:4",
        validation_data=data,
    )
    onnx.checker.check_model(found.model, full_check=True)
    assert found.choice.products == ("conv", "up", "product", "square")
    kinds = [node.op_type for node in found.model.graph.node]
    assert "BatchNormalization" not in kinds
    assert found.judged is not None
    assert found.judged.main is not None
    assert found.judged.main.decibels > (30 if to == "int8" else 20)
    (expected,) = peer(found.model).run(None, {"x": data["x"][:1]})
    (got,) = compile_model(found.model, "c600:4").run({"x": data["x"][:1]}).values()
    assert np.abs(got / expected - 1).max() < 0.05


def test_runs_may_be_given_whole():
    """An axis of runs before those of the input, for inputs without samples."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    made = model([node], {"x": (5, 4)}, {"y": (5, 3)}, {"w": np.eye(4, 3, dtype=np.float32)})
    random = np.random.default_rng(0)
    data = {"x": random.standard_normal((12, 5, 4)).astype(np.float32)}
    found = quantise(made, data, target="tiny:2")
    assert found.judged is not None
    assert found.judged.samples == 3


def test_onnxruntimes_own_quantiser_is_no_better(tmp_path: Path):
    """With minmax and per-channel weights, as there."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    images = samples()["x"]

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter([{"x": each[None]} for each in images[:223]])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.rest, None)

    path = tmp_path / "theirs.onnx"
    quantize_static(
        str(DIGITS),
        str(path),
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    ours = quantise(
        DIGITS,
        {"x": images[:223]},
        target="tiny:16",
        validation_data={"x": images[223:]},
        method="minmax",
    )
    held = {"x": images[223:]}
    (exact,) = peer(onnx.load(DIGITS)).run(None, held)

    def noise(made: onnx.ModelProto) -> float:
        (found,) = peer(made).run(None, held)
        return float(np.square(found - exact).sum())

    assert noise(ours.model) < 1.1 * noise(onnx.load(path))


def test_a_model_that_is_quantised_already_is_refused():
    with pytest.raises(InputError, match=r"\(QuantizeLinear\): the model is quantised already"):
        quantise(digits().model, samples())


BAD_NUMBER = samples()["x"].copy()
BAD_NUMBER[5, 0, 3, 2] = np.nan


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"x": BAD_NUMBER}, {}, r"nan in 'x' at \[5, 0, 3, 2\]; need finite numbers"),
        ({"x": np.full_like(BAD_NUMBER, np.inf)}, {}, r"in 'x' at \[0, 0, 0, 0\]"),
        ({"x": samples()["x"][:, :, :7]}, {}, r"contradicts|shape"),
        ({"x": samples()["x"][:0]}, {}, "0 of 'x'; need as many of each, and one or more"),
        ({}, {}, "arrays none; need one for each input"),
        ({"y": samples()["x"]}, {}, "arrays y; need one for each input"),
        ({"x": samples()["x"].astype(np.float64)}, {}, "has elements float64; need float32"),
        (samples(), {"keep": ["nothing"]}, "--keep nothing: no node has such a name"),
        (samples(), {"keep": ["("]}, r"--keep \(: no regular expression"),
        (samples(), {"keep": ["node"]}, "no products of float32 numbers are left"),
        (samples(), {"to": "fp8", "target": "mk2"}, r"--to fp8 --target mk2: it has no units"),
        (samples(), {"to": "int4"}, "to 'int4'; need one of int8, fp8"),
        (samples(), {"method": "best"}, "method 'best'; need one of minmax"),
        (samples(), {"validation": 1.5}, "1.5 of 297 samples"),
        ({"x": samples()["x"], "target": np.zeros(3, int)}, {}, "need an integer for each of 297"),
    ],
)
def test_bad_input_is_refused_with_one_message(
    data: dict[str, np.ndarray], options: dict[str, object], message: str
):
    with pytest.raises(InputError, match=message):
        quantise(DIGITS, data, **{"target": "tiny:4", **options})  # type: ignore[arg-type]


def test_a_model_without_products_is_refused():
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, 4)}, {"y": (1, 4)}, {})
    with pytest.raises(InputError, match="no products to quantise; need a Conv, "):
        quantise(made, {"x": np.ones((4, 4), np.float32)})


def test_a_float_model_that_overflows_is_refused():
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    last = helper.make_node("MatMul", ["y", "v"], ["z"])
    weights = {"w": np.full((4, 4), 1e30, np.float32), "v": np.ones((4, 2), np.float32)}
    made = model([node, last], {"x": (1, 4)}, {"z": (1, 2)}, weights)
    with pytest.raises(InputError, match="'y' is not finite in the run of sample 0"):
        quantise(made, {"x": np.full((3, 4), 1e30, np.float32)})


def one_product(weight: float) -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    weights = {"w": np.full((4, 2), weight, np.float32)}
    return model([node], {"x": (1, 4)}, {"y": (1, 2)}, weights)


def test_numbers_that_no_scale_reaches_are_refused():
    data = {"x": np.full((3, 4), 1e30, np.float32)}
    with pytest.raises(InputError, match=r"'x': numbers up to 1e\+30; scales of fp8 go to 2\^31"):
        _ = quantise(one_product(1e-20), data, to="fp8", target="c600:4")


def test_a_weight_that_no_scale_reaches_is_refused_with_its_name():
    data = {"x": np.full((3, 4), 1e-20, np.float32)}
    with pytest.raises(InputError, match=r"weight 'w': numbers up to 1e\+30; scales of fp8"):
        _ = quantise(one_product(1e30), data, to="fp8", target="c600:4")


def test_fp8_gives_the_same_classes_when_the_rest_is_float16():
    how = {"target": "c600:16", "batch": 16, "precision": "float16"}
    found = quantise(DIGITS, samples(), to="fp8", **how)  # type: ignore[arg-type]
    exe = compile_model(found.model, **how)  # type: ignore[arg-type]
    quarters = [
        op
        for op in exe.module_at("partition").walk()
        if isinstance(op, partition.ComputeOp) and op.structure().body.is_scaled_product
    ]
    assert len(quarters) == len(found.choice.products)
    assert found.judged is not None
    assert found.judged.main is not None
    assert found.judged.main.share is not None
    assert found.judged.main.share >= 0.98


def test_one_sample_is_enough_but_says_little():
    found = quantise(DIGITS, {"x": samples()["x"][:1]}, target="tiny:4")
    assert found.judged is None
    assert "one sample, and none to judge by: agreement is unknown" in found.notes
