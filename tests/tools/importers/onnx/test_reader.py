import gc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.levels import NN
from abele.ir.context import AbeleContext
from abele.ir.errors import DoesNotFit, InputError
from abele.ir.provenance import origin
from abele.ir.verify import verify
from abele.passes.decompose import Decompose
from abele.tools import compile_model
from abele.tools.importers import NotConstantError, UnsupportedError, import_onnx
from abele.tools.importers.building import Names

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
NETWORKS = sorted(LIGHT.glob("light_*.onnx"))


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def model(nodes, inputs, outputs, weights=None, opset=22) -> onnx.ModelProto:
    """A model of float inputs by shape, outputs by name, and weights by array."""
    weights = weights or {}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    return made


def one(operator: str, *shapes, opset=22, weights=None, outputs=("y",), **attributes):
    """A model of one node: its inputs x0, x1, ... by shape, then its weights by array."""
    inputs = {f"x{i}": list(s) for i, s in enumerate(shapes)}
    weights = {f"w{i}": w for i, w in enumerate(weights or [])}
    node = helper.make_node(operator, [*inputs, *weights], list(outputs), "node", **attributes)
    return model([node], inputs, outputs, weights, opset)


def main_of(module) -> FuncOp:
    return next(op for op in module.walk() if isinstance(op, FuncOp))


def names_of(module, attribute: str) -> list[str]:
    return [name.data for name in main_of(module).attributes[attribute]]


def imported(proto, **options):
    module = import_onnx(proto, AbeleContext(), **options)
    verify(module, NN)
    return module


# What is imported


def test_inputs_outputs_weights_and_locations():
    proto = model(
        [
            helper.make_node("Conv", ["image", "w", "b"], ["h"], "conv1"),
            helper.make_node("Relu", ["h"], ["y"]),
            helper.make_node("Relu", ["y"], ["z"], "conv1"),
        ],
        {"image": [1, 3, 8, 8]},
        ["y", "z"],
        {"w": floats(4, 3, 3, 3), "b": floats(4), "unused": floats(9)},
    )
    module = imported(proto)
    assert names_of(module, "arg_names") == ["image"]
    assert names_of(module, "result_names") == ["y", "z"]
    states = [op for op in module.walk() if isinstance(op, nn.StateOp)]
    assert [s.sym_name.data for s in states] == ["w", "b"]
    assert (states[0].value.array == floats(4, 3, 3, 3)).all()
    body = list(main_of(module).body.block.ops)
    assert [op.name for op in body] == [
        *("nn.load", "nn.load", "nn.conv", "nn.reshape", "nn.add", "nn.relu", "nn.relu"),
        "func.return",
    ]
    assert [origin(op) for op in body[2:-1]] == [
        *("conv1/conv", "conv1/reshape", "conv1", "y", "conv1_1"),
    ]


def test_a_weight_that_is_also_an_input_is_not_an_input():
    proto = one("Relu", [2])
    proto.graph.initializer.append(numpy_helper.from_array(floats(2), "x0"))
    assert names_of(imported(proto), "arg_names") == []


def test_nothing_keeps_the_weights_of_a_file_that_has_been_read(tmp_path: Path):
    path = tmp_path / "gemm.onnx"
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    proto = model([node], {"x": [2, 3]}, ["y"], {"w": floats(3, 4)})
    path.write_bytes(proto.SerializeToString())
    # Objects of earlier tests, a million of them, are not looked through.
    gc.freeze()
    gc.disable()
    try:
        before = sum(isinstance(each, TensorProto) for each in gc.get_objects())
        module = imported(path)
        assert sum(isinstance(each, TensorProto) for each in gc.get_objects()) == before
    finally:
        gc.enable()
        gc.unfreeze()
    assert [op.sym_name.data for op in module.walk() if isinstance(op, nn.StateOp)] == ["w"]


def test_a_weight_called_main_does_not_clash_with_the_function():
    proto = model([helper.make_node("Relu", ["main"], ["y"])], {}, ["y"], {"main": floats(2)})
    verify(imported(proto))


def test_shape_parameters_are_consumed():
    module = imported(one("Reshape", [2, 6], weights=[ints(3, -1)]))
    assert [op.name for op in main_of(module).body.block.ops] == ["nn.reshape", "func.return"]
    assert not [op for op in module.walk() if isinstance(op, nn.StateOp)]


def test_parameters_may_be_computed_from_shapes():
    proto = model(
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Gather", ["s", "zero"], ["n"]),
            helper.make_node("Unsqueeze", ["n", "zeros"], ["n1"]),
            helper.make_node("Concat", ["n1", "minus"], ["shape"], axis=0),
            helper.make_node("Reshape", ["x", "shape"], ["y"]),
        ],
        {"x": [2, 3, 4]},
        ["y"],
        {"zero": np.array(0), "zeros": ints(0), "minus": ints(-1)},
    )
    module = imported(proto)
    assert [op.name for op in main_of(module).body.block.ops] == ["nn.reshape", "func.return"]


@pytest.mark.parametrize("path", NETWORKS, ids=lambda p: p.stem)
def test_the_light_networks_are_imported(path: Path):
    module = imported(path)
    outputs = onnx.load(path, load_external_data=False).graph.output
    shapes = [[d.dim_value for d in o.type.tensor_type.shape.dim] for o in outputs]
    returned = main_of(module).function_type.outputs
    assert [list(nn.shape_of(type_)) for type_ in returned] == shapes
    assert all(origin(op) for op in main_of(module).body.block.ops)


def test_there_are_nine_light_networks():
    assert len(NETWORKS) == 9


# Numerics, against onnxruntime


def same_as_onnxruntime(
    proto: onnx.ModelProto, inputs: dict[str, np.ndarray] | None = None
) -> None:
    module = imported(proto)
    inputs = inputs or {
        value.name: floats(*[d.dim_value for d in value.type.tensor_type.shape.dim], seed=i)
        for i, value in enumerate(proto.graph.input)
    }
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    given = run_reference(module, inputs).outputs
    for output, array in zip(proto.graph.output, expected, strict=True):
        got = given[output.name]
        assert got.shape == array.shape
        assert got.dtype == array.dtype
        np.testing.assert_allclose(got, array, rtol=1e-4, atol=1e-5)


IMAGE = [2, 4, 7, 8]
VARIANCE = np.abs(floats(4, seed=3)) + np.float32(0.1)
CHANNELS = [floats(4, seed=i) for i in range(3)] + [VARIANCE]

OUTPUTS = ("y", "m", "v")
STATISTICS = ("y", "m", "v", "saved_m", "saved_v")

BOTH = [
    one("Conv", IMAGE, [6, 4, 3, 3], auto_pad="SAME_UPPER", strides=[2, 2]),
    one("Conv", IMAGE, [6, 4, 2, 2], auto_pad="SAME_LOWER"),
    one("Conv", IMAGE, [6, 4, 3, 3], auto_pad="VALID"),
    one("Conv", IMAGE, [6, 2, 3, 2], group=2, pads=[1, 0, 2, 1], dilations=[2, 1], strides=[1, 3]),
    one("Conv", [2, 4, 9], [3, 4, 2], weights=[floats(3)]),
    one("Conv", [1, 2, 4, 5, 6], [3, 2, 2, 2, 3], pads=[0, 1, 0, 1, 0, 1]),
    one("ConvTranspose", IMAGE, [4, 3, 3, 2], group=2, strides=[2, 3], pads=[1, 0, 0, 1]),
    one("ConvTranspose", IMAGE, [4, 3, 3, 3], strides=[2, 2], output_padding=[1, 0]),
    one(
        "ConvTranspose", IMAGE, [4, 3, 3, 3], strides=[2, 2], dilations=[2, 1], weights=[floats(3)]
    ),
    one("ConvTranspose", IMAGE, [4, 3, 3, 3], strides=[2, 2], output_shape=[14, 15]),
    one("ConvTranspose", IMAGE, [4, 3, 3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
    one("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 0, 1]),
    one("MaxPool", IMAGE, kernel_shape=[3, 3], auto_pad="SAME_LOWER", strides=[2, 2]),
    one("MaxPool", [2, 4, 9], kernel_shape=[4], strides=[3]),
    one("AveragePool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 0, 1]),
    one("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    one("AveragePool", [1, 2, 4, 5, 6], kernel_shape=[2, 2, 2], auto_pad="SAME_UPPER"),
    one("GlobalAveragePool", IMAGE),
    one("GlobalMaxPool", IMAGE),
    one("BatchNormalization", IMAGE, weights=CHANNELS, epsilon=0.01),
    one("LRN", IMAGE, size=3, alpha=0.5, beta=0.6, bias=1.5),
    one("Gemm", [3, 4], [4, 5], [5], alpha=0.5, beta=2.0),
    one("Gemm", [4, 3], [5, 4], [3, 1], transA=1, transB=1),
    one("MatMul", [2, 1, 3, 4], [5, 4, 6]),
    one("MatMul", [4], [2, 4, 3]),
    one("MatMul", [2, 3, 4], [4]),
    one("MatMul", [4], [4]),
    one("Flatten", IMAGE, axis=2),
    one("Transpose", IMAGE),
    one("Transpose", IMAGE, perm=[0, 2, 1, 3]),
    one("Concat", [2, 3], [2, 1], [2, 4], axis=1),
    one("Reshape", IMAGE, weights=[ints(0, -1, 2)]),
    one("Expand", [3, 1], weights=[ints(2, 1, 5)]),
    one("Add", [2, 1, 3], [4, 1]),
    one("Pow", [2, 3], weights=[np.float32(2.0)]),
    one("LeakyRelu", IMAGE, alpha=0.2),
    one("PRelu", IMAGE, [4, 1, 1]),
    one("Elu", IMAGE),
    one("Softplus", IMAGE),
    one("Floor", IMAGE),
    one("Sign", IMAGE),
    one("Less", IMAGE, IMAGE),
    one("Cast", IMAGE, to=TensorProto.INT32),
    one("Cast", IMAGE, to=TensorProto.BOOL),
    one("Tile", [2, 3], weights=[ints(2, 3)]),
    one("Gather", [5, 3], weights=[ints(4, 0, 0, 1)], axis=0),
    one("Gather", [5, 6], weights=[ints(4, 2, 0)], axis=1),
    one("Gather", [5, 6], weights=[np.array(3)], axis=1),
    one("SpaceToDepth", [1, 2, 4, 6], blocksize=2),
    one("DepthToSpace", [1, 8, 4, 6], blocksize=2),
    one("InstanceNormalization", IMAGE, weights=CHANNELS[:2]),
    one("Softmax", [3, 5], axis=1),
    one("Sum", [3], [1, 3], [2, 1]),
    one("Max", [3], [1, 3], [2, 1]),
]


@pytest.mark.parametrize("opset", [9, 22])
@pytest.mark.parametrize("proto", BOTH, ids=lambda p: p.graph.node[0].op_type)
def test_an_operator_computes_the_same_as_onnxruntime(proto: onnx.ModelProto, opset: int):
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.opset_import[0].version = opset
    same_as_onnxruntime(copy)


ONE_FORM = [
    one("Softmax", [2, 3, 4], opset=9),
    one("Softmax", [2, 3, 4], opset=22),
    one("LogSoftmax", [2, 3, 4], opset=9, axis=2),
    one("LogSoftmax", [2, 3, 4], opset=22, axis=0),
    one("Squeeze", [1, 3, 1], opset=9, axes=[0]),
    one("Squeeze", [1, 3, 1], weights=[ints(-1)]),
    one("Squeeze", [1, 3, 1]),
    one("Unsqueeze", [3], opset=9, axes=[0, 2]),
    one("Unsqueeze", [3], weights=[ints(-1, 0)]),
    one("Slice", [5, 6], opset=9, starts=[1, -3], ends=[9, -1]),
    one("Slice", [5, 6], weights=[ints(-1, 0), ints(-9, 5), ints(0, 1), ints(-2, 2)]),
    one("Slice", [5, 6], weights=[ints(4), ints(-7), ints(1), ints(-1)]),
    one("Slice", [6], weights=[ints(-10), ints(-20), ints(0), ints(-1)]),
    one("Slice", [6], weights=[ints(9), ints(-20), ints(0), ints(-4)]),
    one("Slice", [6], weights=[ints(9), ints(20)]),
    one("Split", [5, 6], opset=9, axis=1, outputs=("a", "b")),
    one("Split", [5, 6], opset=9, split=[1, 4], outputs=("a", "b")),
    one("Split", [5, 6], weights=[ints(1, 4)], outputs=("a", "b")),
    one("Split", [5, 6], axis=0, num_outputs=3, outputs=("a", "b", "c")),
    one("Pad", [3, 4], opset=9, pads=[1, 0, 0, 2], value=1.5),
    one("Pad", [3, 4], opset=9, pads=[1, 0, 2, 2], mode="reflect"),
    one("Pad", [3, 4], weights=[ints(1, -1, 0, 2), np.float32(2.5)]),
    one("Pad", [3, 4], weights=[ints(2, 1), np.float32(0), ints(-1)], mode="edge"),
    one("Pad", [3, 4], weights=[ints(2, 1), np.float32(0), ints(-1)], mode="wrap"),
    one("Clip", [9], opset=9, min=-0.5),
    one("Clip", [9], weights=[np.float32(-0.5), np.float32(0.5)]),
    one("Dropout", [9], opset=9, ratio=0.3),
    one("Dropout", [9], weights=[np.float32(0.3), np.bool_(False)], outputs=("y", "mask")),
    one("ReduceSum", [2, 3, 4], opset=9, axes=[1], keepdims=0),
    one("ReduceSum", [2, 3, 4], weights=[ints(-1, 0)]),
    one("ReduceSum", [2, 3, 4], noop_with_empty_axes=1),
    one("ReduceMean", [2, 3, 4], weights=[ints(-1)]),
    one("ReduceMax", [2, 3, 4], weights=[ints(1)], keepdims=0),
    one("ReduceLogSumExp", [2, 3, 4], opset=9, axes=[0, 2], keepdims=0),
    one("MaxPool", IMAGE, opset=12, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    one("MaxPool", IMAGE, opset=12, kernel_shape=[2, 2], dilations=[2, 3]),
    one(
        "AveragePool",
        IMAGE,
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 0, 0],
        ceil_mode=1,
        count_include_pad=1,
    ),
    one("AveragePool", IMAGE, kernel_shape=[2, 3], strides=[2, 3], ceil_mode=1),
    one("LayerNormalization", [2, 3, 4], weights=[floats(4), floats(4, seed=1)]),
    one("BatchNormalization", IMAGE, weights=CHANNELS, opset=15),
    one("GreaterOrEqual", [4], [4]),
    one("HardSwish", [9]),
    one("Mean", [4], [4]),
]


@pytest.mark.parametrize("proto", ONE_FORM, ids=lambda p: p.graph.node[0].op_type)
def test_each_form_of_an_operator_computes_the_same_as_onnxruntime(proto: onnx.ModelProto):
    same_as_onnxruntime(proto)


def of_types(proto: onnx.ModelProto, *dtypes) -> onnx.ModelProto:
    """The model with inputs of other types."""
    for value, dtype in zip(proto.graph.input, dtypes, strict=True):
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return proto


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_tensors_without_elements_are_joined_to_their_whole_size(axis: int):
    shapes = [[2, 0, 3], [2, 0, 3]]
    shapes[1][axis] += 4
    same_as_onnxruntime(one("Concat", *shapes, axis=axis))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bounds", [[], [-1.5], ["", 1.0]])
@pytest.mark.parametrize("opset", [9, 22])
def test_a_bound_that_is_not_given_is_the_last_finite_number(dtype, bounds, opset):
    names = dict(zip(("min", "max"), bounds, strict=False))
    attributes = {name: bound for name, bound in names.items() if bound != "" and opset < 11}
    proto = of_types(one("Clip", [5], opset=opset, **attributes), dtype)
    if opset >= 11:
        proto.graph.node[0].input.extend(name if b != "" else "" for name, b in names.items())
        proto.graph.initializer.extend(
            numpy_helper.from_array(dtype(bound), name)
            for name, bound in names.items()
            if bound != ""
        )
    x = np.array([-np.inf, -3, 0.5, 3, np.inf], dtype)
    got = run_reference(imported(proto), {"x0": x}).outputs["y"]
    last = np.finfo(dtype).max
    low = bounds[0] if bounds[:1] not in ([], [""]) else -last
    high = bounds[1] if bounds[1:] else last
    np.testing.assert_array_equal(got, np.clip(x, dtype(low), dtype(high)), strict=True)


def test_the_last_finite_number_is_above_a_lower_bound_that_is_infinite():
    got = run_reference(
        imported(one("Clip", [2], [])), {"x0": floats(2), "x1": np.array(np.inf, np.float32)}
    ).outputs["y"]
    np.testing.assert_array_equal(got, np.full(2, np.finfo(np.float32).max), strict=True)


def test_a_clip_with_a_nan_bound_returns_nan():
    proto = one("Clip", [3], weights=[np.float32(np.nan), np.float32(1)])
    got = run_reference(imported(proto), {"x0": floats(3)}).outputs["y"]
    assert np.isnan(got).all()


def test_the_statistics_of_float64_are_kept_in_float32():
    weights = [floats(4).astype(np.float64)]
    proto = of_types(
        one("LayerNormalization", [2, 4], weights=weights, outputs=OUTPUTS), np.float64
    )
    same_as_onnxruntime(proto, {"x0": floats(2, 4).astype(np.float64)})


def test_the_default_of_a_float_attribute_is_rounded_to_float32():
    weights = [np.array([n], np.float64) for n in (1, 0, 0, 0)]
    proto = of_types(one("BatchNormalization", [2, 1], weights=weights), np.float64)
    x = np.array([[1.0], [2.0]])
    got = run_reference(imported(proto), {"x0": x}).outputs["y"]
    np.testing.assert_allclose(got, x / np.sqrt(float(np.float32(1e-5))), 1e-12)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_a_transposed_kernel_shorter_than_its_stride_is_not_padded(mode: str):
    attributes = {"strides": [3, 2], "dilations": [1, 2], "auto_pad": mode}
    same_as_onnxruntime(one("ConvTranspose", [2, 3, 4, 5], [3, 2, 1, 2], **attributes))


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_output_padding_does_not_change_the_size_of_the_same(mode: str):
    attributes = {"strides": [2, 2], "output_padding": [1, 0], "auto_pad": mode}
    proto = one("ConvTranspose", [1, 2, 7, 6], [2, 3, 4, 3], **attributes)
    # The shape that ONNX infers adds output_padding.
    proto.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 14, 12])
    )
    same_as_onnxruntime(proto)


def test_logarithms_of_sums_of_integers_are_rounded_once():
    proto = of_types(one("ReduceLogSumExp", [3, 2], weights=[ints(1)], keepdims=0), np.int32)
    rows = np.array([[-2, -3], [3, 3], [-9, 0]], np.int32)
    got = run_reference(imported(proto), {"x0": rows}).outputs["y"]
    expected = np.log(np.exp(rows.astype(np.float64)).sum(1)).astype(np.int32)
    np.testing.assert_array_equal(got, expected, strict=True)


def test_roots_of_squares_of_integers_are_right_where_the_squares_are_not_held():
    proto = of_types(one("ReduceL2", [2, 2], weights=[ints(1)], keepdims=0), np.int32)
    rows = np.array([[300000, -400000], [3, 4]], np.int32)
    got = run_reference(imported(proto), {"x0": rows}).outputs["y"]
    np.testing.assert_array_equal(got, np.array([500000, 5], np.int32), strict=True)


def test_an_exponent_may_be_no_number():
    same_as_onnxruntime(one("Pow", [3], weights=[np.float32(np.nan)]))


def test_powers_of_integers_may_exceed_the_range_of_float16():
    proto = of_types(one("Pow", [3], [3]), np.int32, np.float16)
    powers = {"x0": np.array([20, -20, 7], np.int32), "x1": np.array([5, 5, 0], np.float16)}
    got = run_reference(imported(proto), powers).outputs["y"]
    np.testing.assert_array_equal(got, np.array([3200000, -3200000, 1], np.int32), strict=True)


LEARNING = [
    one("BatchNormalization", shape, weights=CHANNELS, opset=opset, outputs=OUTPUTS, **attributes)
    for shape in (IMAGE, [2, 4, 3], [3, 4], [1, 4, 2, 3, 2])
    for opset in (14, 22)
    for attributes in (
        {"training_mode": 1},
        {"training_mode": 1, "momentum": 0.25, "epsilon": 0.1},
    )
]


@pytest.mark.parametrize("proto", LEARNING)
def test_batch_normalisation_learns_as_in_onnxruntime(proto: onnx.ModelProto):
    same_as_onnxruntime(proto)


def test_batch_normalisation_learns_in_float32_where_the_mean_is_large():
    """float16 cannot hold the sum of these elements, nor the squares of what is left."""
    image = (1000 + 300 * floats(4, 2, 9, 9)).astype(np.float16)
    weights = [np.ones(2, np.float16), np.zeros(2, np.float16), *[np.zeros(2, np.float32)] * 2]
    proto = one(
        "BatchNormalization",
        [4, 2, 9, 9],
        weights=weights,
        outputs=OUTPUTS,
        training_mode=1,
        momentum=0.0,
    )
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    got = run_reference(imported(proto), {"x0": image}).outputs
    exact = image.astype(np.float64)
    mean, variance = exact.mean((0, 2, 3)), exact.var((0, 2, 3))
    assert [got[name].dtype for name in OUTPUTS] == [np.float16, np.float32, np.float32]
    np.testing.assert_allclose(got["m"], mean, 1e-5)
    np.testing.assert_allclose(got["v"], variance, 1e-5)
    expected = (exact - mean[:, None, None]) / np.sqrt(variance[:, None, None])
    np.testing.assert_allclose(got["y"], expected, 2e-3, 1e-3)


def narrow(operator: str, *shapes, weights=(), dtype=np.float16, **options) -> onnx.ModelProto:
    """A model of one node, whose inputs and weights of floats are narrower ones."""
    arrays = [w.astype(dtype) if w.dtype == np.float32 else w for w in weights]
    proto = one(operator, *shapes, weights=arrays, **options)
    for value in proto.graph.input:
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return proto


PAIR = [floats(3), floats(3, seed=1)]
LARGE = [
    (narrow("GlobalAveragePool", [1, 3, 80, 80]), 16, 1),
    (narrow("AveragePool", [1, 3, 12, 12], kernel_shape=[9, 9]), 3000, 10),
    (narrow("AveragePool", [1, 3, 12, 12], kernel_shape=[9, 9], pads=[2, 2, 2, 2]), 3000, 10),
    (narrow("LayerNormalization", [4, 50, 3], weights=PAIR), 0, 300),
    (
        narrow("LayerNormalization", [4, 64], weights=[floats(64)], outputs=OUTPUTS),
        100,
        300,
    ),
    (narrow("InstanceNormalization", [2, 3, 20, 20], weights=PAIR), 100, 300),
    (narrow("LRN", [1, 6, 4, 4], size=5, alpha=1e-3), 0, 1000),
    (narrow("BatchNormalization", [1, 4, 5], weights=CHANNELS), 0, 100),
    (narrow("ReduceMean", [4, 9000], weights=[ints(1)]), 16, 1),
    (narrow("ReduceMean", [4, 90], weights=[ints(1)], keepdims=0), 3000, 10),
    (narrow("Mean", [9], [9], [9]), 40000, 10),
    (narrow("ReduceL2", [4, 20], weights=[ints(1)]), 1000, 300),
    (narrow("ReduceSumSquare", [4, 20], weights=[ints(1)]), 20, 3),
    (narrow("ReduceLogSum", [4, 90], weights=[ints(1)]), 3000, 10),
    (narrow("ReduceLogSumExp", [4, 3000], weights=[ints(1)]), 100, 0.1),
    (narrow("Softmax", [2, 70000]), 0, 0.01),
    (narrow("LogSoftmax", [2, 70000]), 0, 0.01),
]


@pytest.mark.parametrize(("proto", "mean", "deviation"), LARGE)
def test_narrow_floats_are_summed_and_squared_in_float32(proto, mean: float, deviation: float):
    inputs = {
        value.name: (
            mean
            + deviation * floats(*[d.dim_value for d in value.type.tensor_type.shape.dim], seed=i)
        ).astype(np.float16)
        for i, value in enumerate(proto.graph.input)
    }
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    got = run_reference(imported(proto), inputs).outputs
    for output, array in zip(proto.graph.output, expected, strict=True):
        assert np.isfinite(array).all()
        assert got[output.name].dtype == array.dtype
        np.testing.assert_allclose(got[output.name], array, 3e-3, 3e-3)


def test_a_sum_of_three_may_exceed_the_range_of_float16():
    inputs = {f"x{i}": np.full(2, n, np.float16) for i, n in enumerate((60000, 60000, -60000))}
    got = run_reference(imported(narrow("Sum", [2], [2], [2])), inputs).outputs["y"]
    np.testing.assert_array_equal(got, np.full(2, 60000, np.float16), strict=True)


def test_bfloat16_is_averaged_in_float32():
    """bfloat16 counts no further than 256."""
    dtype = ml_dtypes.bfloat16
    proto = narrow("GlobalAveragePool", [1, 1, 40, 40], dtype=dtype)
    image = (3 + floats(1, 1, 40, 40)).astype(dtype)
    got = run_reference(imported(proto), {"x0": image}).outputs["y"]
    expected = image.astype(np.float64).mean().astype(dtype)
    np.testing.assert_array_equal(got, np.full((1, 1, 1, 1), expected), strict=True)


@pytest.mark.parametrize(
    "proto",
    [p for p in [*BOTH, *ONE_FORM, *LEARNING] if p.graph.node[0].op_type != "Cast"],
    ids=lambda p: p.graph.node[0].op_type,
)
def test_float32_stays_without_casts(proto: onnx.ModelProto):
    module = imported(proto)
    Decompose().apply(AbeleContext(), module)
    assert not [op for op in module.walk() if isinstance(op, nn.CastOp)]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_logarithms_of_sums_may_be_infinite(dtype):
    inf = np.inf
    rows = np.array([[-inf, -inf], [inf, 1], [inf, -inf], [-inf, 2], [inf, inf]], dtype)
    proto = narrow("ReduceLogSumExp", [5, 2], weights=[ints(1)], keepdims=0, dtype=dtype)
    got = run_reference(imported(proto), {"x0": rows}).outputs["y"]
    np.testing.assert_array_equal(got, np.array([-inf, inf, inf, 2, inf], dtype), strict=True)


def test_a_test_of_opset_6_may_name_statistics():
    proto = one(
        "BatchNormalization", IMAGE, weights=CHANNELS, opset=6, outputs=STATISTICS, is_test=1
    )
    del proto.graph.output[1:]
    image = floats(*IMAGE)
    scale, bias, mean, variance = (array[:, None, None] for array in CHANNELS)
    expected = (image - mean) / np.sqrt(variance + 1e-5) * scale + bias
    got = run_reference(imported(proto), {"x0": image}).outputs["y"]
    np.testing.assert_allclose(got, expected, 1e-4, 1e-5)


def indexed(shape, opset=22, **attributes) -> onnx.ModelProto:
    return one("MaxPool", shape, opset=opset, outputs=("y", "i"), **attributes)


INDEXED = [
    indexed([2, 3, 9], kernel_shape=[3]),
    indexed([2, 3, 9], kernel_shape=[3], strides=[2], pads=[2, 1], storage_order=1),
    indexed([2, 3, 9], opset=8, kernel_shape=[2], strides=[3]),
    indexed(IMAGE, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 2, 1]),
    indexed(IMAGE, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 2, 1], storage_order=1),
    indexed(IMAGE, kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 2, 0, 1]),
    indexed(IMAGE, kernel_shape=[3, 3], strides=[2, 3], ceil_mode=1),
    indexed(IMAGE, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER"),
    indexed(IMAGE, kernel_shape=[2, 4], strides=[3, 3], auto_pad="SAME_UPPER", storage_order=1),
    indexed(IMAGE, kernel_shape=[1, 1], strides=[2, 2], auto_pad="VALID"),
    indexed([2, 3, 5, 4, 6], kernel_shape=[2, 3, 2], strides=[2, 1, 2], pads=[1, 1, 0, 0, 1, 1]),
    indexed([2, 3, 5, 4, 6], kernel_shape=[2, 2, 3], dilations=[2, 1, 1], storage_order=1),
]


@pytest.mark.parametrize("proto", INDEXED)
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
def test_a_max_pool_says_where_as_onnxruntime_does(proto: onnx.ModelProto, ties: bool):
    (value,) = proto.graph.input
    image = floats(*[d.dim_value for d in value.type.tensor_type.shape.dim])
    if ties:
        image = np.where(image > 1.5, -np.inf, image.round()).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    values, indices = session.run(None, {"x0": image})
    got = run_reference(imported(proto), {"x0": image}).outputs
    np.testing.assert_array_equal(got["y"], values, strict=True)
    np.testing.assert_array_equal(got["i"], indices, strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16])
def test_indices_of_the_least_element_lie_in_the_image(dtype):
    """Where all elements are as small as the padding, the first of the image is the largest."""
    least = -np.inf if dtype == np.float16 else np.iinfo(dtype).min
    proto = indexed([1, 1, 3, 4], kernel_shape=[2, 3], dilations=[2, 1], pads=[1, 1, 0, 0])
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    proto.graph.input[0].type.tensor_type.elem_type = code
    image = np.full((1, 1, 3, 4), least, dtype)
    got = run_reference(imported(proto), {"x0": image}).outputs["i"]
    assert got.tolist() == [[[[4, 4, 5], [0, 0, 1]]]]


@pytest.mark.parametrize("level", ["nn", "partition", "tile", "exchange"])
@pytest.mark.parametrize(
    "proto",
    [indexed([1, 3, 9, 8], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]), LEARNING[1]],
    ids=["MaxPool", "BatchNormalization"],
)
def test_several_results_go_down_to_the_machine(proto: onnx.ModelProto, level: str):
    (value,) = proto.graph.input
    inputs = {"x0": floats(*[d.dim_value for d in value.type.tensor_type.shape.dim]).round(1)}
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    got = compile_model(proto, "tiny:4").run(inputs, at=level)
    for output, array in zip(proto.graph.output, expected, strict=True):
        assert got[output.name].dtype == array.dtype
        np.testing.assert_allclose(got[output.name], array, 1e-4, 1e-5)


@pytest.mark.parametrize(("operator", "expected"), [("ReduceMax", False), ("ReduceMin", True)])
def test_booleans_without_elements_have_a_largest_and_a_smallest(operator: str, expected: bool):
    proto = one(operator, [2, 0, 3], weights=[ints(1)])
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.BOOL
    got = run_reference(imported(proto), {"x0": np.zeros((2, 0, 3), np.bool_)}).outputs["y"]
    np.testing.assert_array_equal(got, np.full((2, 1, 3), expected), strict=True)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_become_channels_in_the_order_of_the_mode(mode: str):
    image = floats(1, 2, 4, 6)
    proto = one("SpaceToDepth", [1, 2, 4, 6], opset=28, blocksize=2, mode=mode)
    got = run_reference(imported(proto), {"x0": image}).outputs["y"]
    blocks = np.stack([image[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)], 2)
    expected = np.swapaxes(blocks, 1, 2) if mode == "DCR" else blocks
    np.testing.assert_array_equal(got, expected.reshape(1, 8, 2, 3))


def test_constant_of_shape_and_constant():
    proto = model(
        [
            helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(ints(2, 3))),
            helper.make_node(
                "ConstantOfShape", ["s"], ["c"], value=numpy_helper.from_array(floats(1))
            ),
            helper.make_node("Constant", [], ["d"], value_floats=[1.0, 2.0, 3.0]),
            helper.make_node("Add", ["c", "d"], ["e"]),
            helper.make_node("Add", ["e", "x"], ["y"]),
        ],
        {"x": [2, 3]},
        ["y"],
    )
    same_as_onnxruntime(proto)


@pytest.mark.parametrize(
    ("size", "made"), [(128, {"constant"}), (256, {"constant", "expand"})], ids=["small", "large"]
)
def test_a_tensor_of_one_number_is_repeated_on_the_machine_if_it_is_large(
    size: int, made: set[str]
):
    """As fold-constants would leave it; its bytes would be the host's too."""
    proto = model(
        [
            helper.make_node(
                "ConstantOfShape", ["s"], ["c"], value=numpy_helper.from_array(floats(1))
            ),
            helper.make_node("Add", ["c", "x"], ["y"]),
        ],
        {"x": [size, 128]},
        ["y"],
        {"s": ints(size, 128)},
    )
    ops = {op.name.removeprefix("nn.") for op in main_of(imported(proto)).body.block.ops}
    assert ops - {"func.return"} == {*made, "add"}
    same_as_onnxruntime(proto)


def test_a_large_mask_of_dropout_is_repeated_on_the_machine():
    proto = one("Dropout", [512, 512], outputs=["y", "mask"])
    assert "nn.expand" in {op.name for op in main_of(imported(proto)).body.block.ops}


@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 32, 1 << 32)], ids=["4 TiB", "2^64"])
def test_a_tensor_of_one_number_may_be_too_large_for_the_machine_alone(shape: tuple[int, ...]):
    proto = model(
        [
            helper.make_node("ConstantOfShape", ["s"], ["c"]),
            helper.make_node("ReduceSum", ["c"], ["r"]),
            helper.make_node("Add", ["r", "x"], ["y"]),
        ],
        {"x": [1]},
        ["y"],
        {"s": ints(*shape)},
    )
    with pytest.raises(DoesNotFit, match="nn.expand"):
        compile_model(proto, "tiny")


def test_an_even_window_of_channels_reaches_one_further_up():
    """As the standard says; onnxruntime takes odd sizes only."""
    image = floats(1, 5, 2)
    module = imported(one("LRN", [1, 5, 2], size=4, alpha=0.8, beta=0.5, bias=2.0))
    padded = np.pad(image.astype(np.float64), ((0, 0), (1, 2), (0, 0))) ** 2
    total = sum(padded[:, i : i + 5] for i in range(4))
    expected = image / np.sqrt(2.0 + 0.8 / 4 * total)
    np.testing.assert_allclose(run_reference(module, {"x0": image}).outputs["y"], expected, 1e-5)


# Symbolic dimensions


def test_a_symbolic_dimension_is_bound():
    module = imported(one("Relu", ["N", 3]), dims={"N": 5})
    assert nn.shape_of(main_of(module).body.block.args[0]) == (5, 3)


def test_an_unbound_dimension_names_its_remedy():
    with pytest.raises(InputError, match="input 'x0', which .* 'N', has no size; .* --dim N=1$"):
        imported(one("Relu", ["N", 3]))


def test_all_unbound_dimensions_are_named_at_once():
    with pytest.raises(InputError, match="calls 'S', has no size; .* add --dim S=1 --dim T=1$"):
        imported(one("Relu", ["N", "S", "T"]), dims={"N": 5})


def test_a_dimension_without_a_name_gets_one():
    with pytest.raises(InputError, match="axis 1 of input 'x0' has no size; .* --dim x0_1=1"):
        imported(one("Relu", [3, None]))
    imported(one("Relu", [3, None]), dims={"x0_1": 2})


def test_an_unknown_dimension_is_refused():
    with pytest.raises(InputError, match="--dim Q=2: no such dimension; the model has N"):
        imported(one("Relu", ["N", 3]), dims={"N": 1, "Q": 2})


@pytest.mark.parametrize("size", [-1, "a", 1.5, True])
def test_a_dimension_needs_an_integer_of_elements(size: Any):
    with pytest.raises(InputError, match=f"--dim N={size}; need an integer, 0 or more"):
        imported(one("Relu", ["N", 3]), dims={"N": size})


def test_padding_that_wraps_repeats_what_it_removes_on_the_other_side():
    """docs/operators.md says where onnxruntime differs."""
    weights = [np.array([-1, 4]), np.array(9, np.float32), np.array([0])]
    module = imported(one("Pad", [5], weights=weights, mode="wrap"))
    x = np.arange(5, dtype=np.float32)
    assert run_reference(module, {"x0": x}).outputs["y"].tolist() == [1, 2, 3, 4, 0, 1, 2, 3]


def test_a_window_of_one_element_is_the_first_of_a_longer_one():
    """docs/operators.md says where onnxruntime differs."""
    module = imported(one("HannWindow", weights=[np.array(1)], periodic=0))
    assert run_reference(module, {}).outputs["y"].tolist() == [0]


def test_a_dimension_may_be_empty():
    found = run_reference(
        imported(one("Relu", ["N", 3]), dims={"N": 0}), {"x0": np.zeros((0, 3), np.float32)}
    )
    assert found.outputs["y"].shape == (0, 3)


# What is refused


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (
            one("ImageDecoder", [1], opset=22),
            r"node 'node': operator ImageDecoder of domain ai.onnx, opset 22: the operator is "
            r"not supported; \d+ others are \(docs/reference/onnx.md\); --load a .py with "
            r'@onnx_operator\("ImageDecoder"\) to add it$',
        ),
        (one("AveragePoool", [1]), r"\d+ others are .*; did you mean AveragePool or .*\?; --load"),
        (one("Zzz", [1]), r"the operator is not supported; \d+ others are [^?]*$"),
        (
            one("Relu", [1], domain="com.acme"),
            r"operator Relu of domain com.acme, which the model does not import: the domain is not "
            r"supported; operators of domain ai.onnx are; --load a .py with "
            r'@onnx_operator\("Relu", "com.acme"\) to add it$',
        ),
        (one("Relu", [1], opset=5), "opset 5 of domain ai.onnx is not supported; 6 to 28 are"),
        (
            one("BatchNormalization", IMAGE, weights=CHANNELS, opset=9, outputs=STATISTICS),
            "batch normalisation that learns is not supported; need the inference form",
        ),
        (
            one("BatchNormalization", IMAGE, weights=CHANNELS, opset=6),
            "batch normalisation that learns is not supported; need the inference form",
        ),
        (
            one("BatchNormalization", IMAGE, weights=CHANNELS, opset=15, outputs=("y", "m", "v")),
            "output 'm' reads 'm': the statistics of a batch normalisation that does not learn",
        ),
    ],
)
def test_the_unsupported_part_of_a_model_is_named(proto, message):
    with pytest.raises(UnsupportedError, match=message) as caught:
        imported(proto)
    assert isinstance(caught.value, NotImplementedError)
    assert isinstance(caught.value, InputError)


def test_a_parameter_that_depends_on_an_input_can_be_given_a_value():
    proto = one("Reshape", [6], [2])
    proto.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(NotConstantError, match=r"shape 'x1' depends on inputs \(x1\)") as caught:
        imported(proto)
    assert caught.value.inputs == ("x1",)
    module = imported(proto, values={"x1": ints(2, 3)})
    assert names_of(module, "arg_names") == ["x0"]
    assert nn.shape_of(main_of(module).function_type.outputs.data[0]) == (2, 3)


def with_input_type(proto, type_) -> onnx.ModelProto:
    proto.graph.input[0].type.CopyFrom(type_)
    return proto


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (onnx.ModelProto(), "it has no graph"),
        (model([], {"x": [1]}, []), "has no outputs"),
        (model([], {"x": [1]}, ["y"]), "output 'y' reads 'y', which is not an input, weight"),
        (one("Relu"), "operand 0 is missing; 0 are given"),
        (one("Conv", IMAGE, [6, 3, 3, 3]), r"node 'node' \(Conv\): image has 4 channels"),
        (one("Conv", IMAGE, [6, 4, 3, 3], strides=[1]), r"strides \[1\]; need 2 entries"),
        (one("Conv", IMAGE, [6, 4, 3, 3], pads=[1, 1]), r"pads \[1, 1\]; need 4, two per spatial"),
        (one("Conv", IMAGE, [6, 4, 3, 3], kernel_shape=[2, 2]), "the weights have"),
        (one("Conv", IMAGE, [6, 4, 3, 3], auto_pad="SAME"), "auto_pad 'SAME'; need one of"),
        (one("Conv", IMAGE, [6, 4, 3, 3], group="two"), "attribute group is a string; need a int"),
        (one("MaxPool", IMAGE), "attribute kernel_shape is missing"),
        (
            one("MaxPool", [1, 1, 4], kernel_shape=[2], storage_order=2, outputs=("y", "i")),
            "storage_order 2; need 0 or 1",
        ),
        (
            one("MaxPool", [1, 1, 4], kernel_shape=[2], opset=7, outputs=("y", "i")),
            "result 1 'i': the operator has 1",
        ),
        (one("Softmax", [2, 3], axis=2), r"axis 2 of rank 2; need -2..1"),
        (one("Reshape", [6], weights=[ints(4, -1)]), "6 elements do not divide by 4"),
        (one("Reshape", [6], weights=[ints(-1, -1)]), "-1 at most once"),
        (one("Reshape", [6], weights=[ints(2, 0)]), r"entry 1 is 0 but \[6\] is shorter"),
        (one("Reshape", [6], weights=[ints(7)]), "6 elements of .* which has 7; need as many"),
        (one("Squeeze", [2, 1], weights=[ints(0)]), "axis 0 has size 2; need 1"),
        (one("Slice", [6], weights=[ints(0), ints(1, 2)]), "1 starts, 2 ends"),
        (one("Split", [6], weights=[ints(1, 2)], outputs=("a", "b")), "axis 0 has 6"),
        (one("Cast", [6], to=99), "element type 99 does not exist in ONNX"),
        (one("Cast", [6], to=TensorProto.STRING), "elements of type STRING"),
        (with_input_type(one("Relu", [1]), onnx.TypeProto()), "input 'x0' has no type"),
        (
            with_input_type(
                one("Relu", [1]),
                helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [1])),
            ),
            "input 'x0' is a sequence; only tensors are supported",
        ),
        (
            with_input_type(one("Relu", [1]), helper.make_tensor_type_proto(1, None)),
            "input 'x0' has no shape",
        ),
        (
            model(
                [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["y"])],
                {"x": [1]},
                ["y"],
            ),
            "result 'y' is the name of an earlier value",
        ),
    ],
)
def test_a_bad_model_is_an_input_error_that_names_the_place(proto, message):
    with pytest.raises(InputError, match=message):
        imported(proto)


def test_a_missing_file_is_an_input_error(tmp_path: Path):
    with pytest.raises(InputError, match="missing.onnx: cannot be read: No such file"):
        imported(tmp_path / "missing.onnx")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        imported(tmp_path)


SMALL = model(
    [
        helper.make_node("Conv", ["x", "w"], ["h"], "conv", strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Reshape", ["r", "s"], ["y"], "reshape"),
    ],
    {"x": [1, 2, 6, 6]},
    ["y"],
    {"w": floats(2, 2, 3, 3), "s": ints(1, -1)},
).SerializeToString()


def import_or_refuse(folder: Path, data: bytes) -> None:
    path = folder / "model.onnx"
    path.write_bytes(data)
    try:
        imported(path)
    except InputError as error:
        assert str(path) in str(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@given(st.integers(0, len(SMALL)))
@settings(max_examples=50)
def test_a_truncated_file_is_imported_or_refused(folder: Path, length: int):
    import_or_refuse(folder, SMALL[:length])


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(folder: Path, data: bytes):
    import_or_refuse(folder, data)


@given(st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=4))
@settings(max_examples=100)
def test_a_damaged_file_is_imported_or_refused(folder: Path, changes: list[tuple[int, int]]):
    data = bytearray(SMALL)
    for position, value in changes:
        data[position] = value
    import_or_refuse(folder, bytes(data))


# External data


def external(folder: Path, array: np.ndarray, **entries: object) -> Path:
    """A model file whose weight w lies elsewhere."""
    proto = model([helper.make_node("Relu", ["w"], ["y"])], {}, ["y"], {"w": array})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize(("elements", "mapped"), [(100, False), (1 << 19, True)])
def test_external_data_are_read_or_mapped(tmp_path: Path, elements: int, mapped: bool):
    array = floats(elements)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/w.bin").write_bytes(b"12345678" + array.tobytes())
    module = imported(external(tmp_path, array, location="data/w.bin", offset=8))
    value = next(op for op in module.walk() if isinstance(op, nn.StateOp)).value.array
    assert (value == array).all()
    assert isinstance(value, np.memmap) == mapped


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "weight 'w': external data in ''; need a path below the model's folder"),
        ({"location": "../w.bin"}, "external data in '../w.bin'; need a path below"),
        ({"location": "/etc/passwd"}, "external data in '/etc/passwd'; need a path below"),
        ({"location": "link"}, "'link' links to a place outside the model's folder"),
        ({"location": "missing"}, "there is no file 'missing' of external data"),
        ({"location": "short"}, "bytes 0..400 of 'short', which has 8"),
        ({"location": "short", "offset": "-1"}, "offset '-1' of external data; need a number"),
        ({"location": "short", "length": 8}, r"8 bytes of external data; float32\[100\] has 400"),
    ],
)
def test_external_data_out_of_place_are_refused(tmp_path: Path, entries, message: str):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "w.bin").write_bytes(floats(100).tobytes())
    (inside / "link").symlink_to(tmp_path / "w.bin")
    (inside / "short").write_bytes(b"12345678")
    with pytest.raises(InputError, match=message):
        imported(external(inside, floats(100), **entries))


def test_a_model_in_memory_has_no_external_data(tmp_path: Path):
    path = external(tmp_path, floats(2), location="w.bin")
    with pytest.raises(InputError, match="in 'w.bin', but the model has no folder"):
        imported(onnx.load(path, load_external_data=False))


# Models that take long unless each part is looked at once


def test_a_parameter_that_is_read_twice_at_each_step_is_computed_once():
    doublings = [helper.make_node("Add", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(60)]
    proto = model(
        [
            *doublings,
            helper.make_node("Sub", ["s60", "s60"], ["zero"]),
            helper.make_node("Add", ["zero", "four"], ["shape"]),
            helper.make_node("Reshape", ["x", "shape"], ["y"]),
        ],
        {"x": [2, 2]},
        ["y"],
        {"s0": ints(1), "four": ints(4)},
    )
    assert nn.shape_of(main_of(imported(proto)).body.block.last_op.operands[0]) == (4,)


def test_names_that_repeat_are_numbered_without_trying_all_numbers():
    names = Names({"main"})
    assert [names.unique(name) for name in ("a", "a_1", "a", "a", "main")] == [
        *("a", "a_1", "a_2", "a_3", "main_1")
    ]
    for _ in range(50_000):
        names.unique("a")
    assert names.unique("a") == "a_50004"


def test_padding_that_would_take_long_to_count_is_refused():
    huge = one("AveragePool", [1, 1, 4], kernel_shape=[2**31], pads=[2**30, 2**30])
    with pytest.raises(UnsupportedError, match=r"node 'node'.*at most 2\^24 on each side is"):
        imported(huge)
