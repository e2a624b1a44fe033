"""Quantised operators of ONNX on the machine, against definitions in exact integers and float64."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from abele.backends.reference import run_reference
from abele.tools.driver.context import new_context
from abele.tools.importers.onnx.reader import import_onnx

from .test_conversions import run

RANDOM = np.random.default_rng(7)


def whole(dtype, *shape):
    limits = ml_dtypes.iinfo(dtype)
    return RANDOM.integers(int(limits.min), int(limits.max) + 1, shape).astype(dtype)


def quantise(x, scale, zero, dtype):
    limits = ml_dtypes.iinfo(dtype)
    ratio = np.rint(np.float32(x) / np.float32(scale))
    return np.clip(ratio + np.float32(zero), int(limits.min), int(limits.max)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int8, ml_dtypes.int4])
def test_a_quantised_number_is_rounded_half_to_even_and_limited(dtype):
    x = np.array([-1e9, -3.5, -0.5, 0.5, 1.5, 2.4, 1e9, np.inf], np.float32)
    zero = np.array(1, dtype)
    kind = {"int8": TensorProto.INT8, "int4": TensorProto.INT4}[np.dtype(dtype).name]
    (found,) = run("QuantizeLinear", [x, np.array(1, np.float32), zero], kind)
    np.testing.assert_array_equal(found, quantise(x, 1, 1, dtype))


@pytest.mark.parametrize("size", [3, 4])
def test_blocks_need_not_divide_the_axis(size):
    """With 6 elements in blocks of 4, the last block has 2."""
    x = RANDOM.standard_normal((2, 6, 3)).astype(np.float32)
    scale = RANDOM.uniform(0.1, 1, (2, -(-6 // size), 3)).astype(np.float32)
    zero = whole(np.uint8, *scale.shape)
    given = [x, scale, zero]
    (found,) = run("QuantizeLinear", given, TensorProto.UINT8, axis=1, block_size=size)
    each = [np.repeat(a, size, 1)[:, :6] for a in (scale, zero)]
    wanted = quantise(x, *each, np.uint8)
    np.testing.assert_array_equal(found, wanted)
    (back,) = run("DequantizeLinear", [found, scale, zero], 1, axis=1, block_size=size)
    exact = (wanted.astype(np.float64) - each[1]) * each[0]
    np.testing.assert_allclose(back, exact, rtol=2e-7, atol=0)


def test_scales_that_do_not_fit_are_refused_with_their_shape():
    x, scale = np.zeros((2, 6), np.float32), np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match="5 scales; need 1, or 6, as axis 1 has"):
        run("QuantizeLinear", [x, np.ones(5, np.float32)], TensorProto.UINT8)
    with pytest.raises(ValueError, match=r"scales of shape \[2, 2\] in blocks of 2; need \[2, 3\]"):
        run("QuantizeLinear", [x, scale], TensorProto.UINT8, axis=1, block_size=2)


@pytest.mark.parametrize(
    "shapes", [((3, 40), (40, 5)), ((2, 3, 1), (1, 5)), ((9,), (9, 4))], ids=str
)
@pytest.mark.parametrize("kinds", [(np.uint8, np.int8), (np.int8, np.uint8)], ids=str)
def test_products_of_8_bit_integers_are_exact(shapes, kinds):
    a, b = (whole(k, *s) for k, s in zip(kinds, shapes, strict=True))
    zeros = [np.array(3, kinds[0]), whole(kinds[1], shapes[1][-1])]
    (found,) = run("MatMulInteger", [a, b, *zeros], TensorProto.INT32)
    exact = (a.astype(np.int64) - 3) @ (b.astype(np.int64) - zeros[1])
    np.testing.assert_array_equal(found, exact.astype(np.int32))


def test_padding_of_an_integer_convolution_is_the_zero_point():
    image, weight = whole(np.uint8, 1, 2, 4, 4), whole(np.int8, 3, 2, 3, 3)
    zero = np.array(128, np.uint8)
    (found,) = run("ConvInteger", [image, weight, zero], TensorProto.INT32, pads=[1, 1, 1, 1])
    padded = np.pad(image.astype(np.int64) - 128, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    exact = np.einsum("ncyxij,ocij->noyx", windows, weight.astype(np.int64))
    np.testing.assert_array_equal(found, exact)


def test_a_quantised_convolution_has_scales_and_zero_points_per_channel():
    image, weight = whole(np.uint8, 2, 2, 5), whole(np.int8, 3, 2, 1)
    scales = np.array([0.01, 0.02, 0.005], np.float32)
    bias = np.array([1000, -2000, 0], np.int32)
    given = [image, np.array(0.1, np.float32), np.array(7, np.uint8)]
    given += [weight, scales, np.array([0, 0, 1], np.int8)]
    given += [np.array(0.07, np.float32), np.array(100, np.uint8), bias]
    (found,) = run("QLinearConv", given, TensorProto.UINT8)
    zero = np.array([0, 0, 1])[:, None]
    total = np.einsum("ncx,oc->nox", image.astype(np.int64) - 7, weight[..., 0] - zero)
    total = total + bias[:, None]
    factor = (np.float32(0.1) * scales / np.float32(0.07))[:, None]
    wanted = np.clip(np.rint(total * factor.astype(np.float64)) + 100, 0, 255)
    assert np.abs(found - wanted).max() <= 1
    assert (found != wanted).mean() < 0.05


def test_dynamic_quantisation_covers_0_and_all_elements():
    x = np.array([[0.5, 2.0], [1.5, 0.25]], np.float32)
    found, scale, zero = run("DynamicQuantizeLinear", [x], 2, 1, 2)
    assert float(scale) == np.float32(2 / 255)
    assert zero == 0
    np.testing.assert_array_equal(found, quantise(x, scale, 0, np.uint8))


# Operators of onnxruntime

U8, I8 = whole(np.uint8, 1, 4, 4, 4), whole(np.int8, 4, 3)
ROWS = whole(np.uint8, 5, 4)
BIAS = np.array([100, -50, 7], np.int32)


def scaled(array, scale, zero):
    return [array, np.array(scale, np.float32), np.array(zero, array.dtype)]


def result(scale, zero):
    return [np.array(scale, np.float32), np.array(zero, np.uint8)]


X = scaled(U8, 0.02, 120)
OF_RUNTIME = {
    "QLinearAdd": ([*X, *scaled(U8[:, :1], 0.05, 3), *result(0.1, 9)], {}),
    "QLinearMul": ([*X, *scaled(U8[:, :1], 0.05, 3), *result(0.2, 90)], {}),
    "QLinearSigmoid": ([*X, *result(1 / 255, 0)], {}),
    "QLinearLeakyRelu": ([*X, *result(0.02, 100)], {"alpha": 0.3}),
    "QLinearAveragePool": (
        [*X, *result(0.02, 120)],
        {"kernel_shape": [2, 2], "strides": [1, 2], "pads": [1, 0, 0, 1]},
    ),
    "QLinearGlobalAveragePool": ([*X, *result(0.01, 130)], {}),
    "QLinearSoftmax": ([*X, *result(1 / 255, 0)], {"axis": -1, "opset": 13}),
    "QLinearConcat": ([*result(0.04, 60), *X, *scaled(U8, 0.03, 7)], {"axis": 1}),
    "QLinearWhere": (
        [U8[:, :1] > 100, *X, *scaled(U8[:, :, :1], 0.05, 3), *result(0.06, 50)],
        {},
    ),
    "QGemm": (
        [*scaled(ROWS, 0.1, 7), *scaled(I8, 0.02, 0), BIAS, *result(0.5, 100)],
        {"alpha": 0.5},
    ),
    "MatMulIntegerToFloat": (
        [ROWS, I8, *(np.array(n, np.float32) for n in (0.1, [0.02, 0.01, 0.5]))],
        {},
    ),
    "DynamicQuantizeMatMul": (
        [RANDOM.standard_normal((5, 4)).astype(np.float32), I8, np.array(0.02, np.float32)],
        {},
    ),
}


def of_runtime(operator, given, **attributes):
    """The model of one node of onnxruntime's domain."""
    names = [f"x{i}" for i in range(len(given))]
    node = helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, given, strict=True)
    ]
    kind = TensorProto.FLOAT if "MatMul" in operator else TensorProto.UINT8
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", kind, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("operator", OF_RUNTIME)
def test_an_operator_of_onnxruntime_agrees_within_one_step(operator):
    runtime = pytest.importorskip("onnxruntime")
    given, attributes = OF_RUNTIME[operator]
    model = of_runtime(operator, given, **attributes)
    session = runtime.InferenceSession(model.SerializeToString())
    (wanted,) = session.run(None, {f"x{i}": a for i, a in enumerate(given)})
    context = new_context()
    found = run_reference(
        import_onnx(model, context), {f"x{i}": a for i, a in enumerate(given)}
    ).outputs["y"]
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    step = 1 if wanted.dtype == np.uint8 else 2e-6 * np.abs(wanted).max()
    assert np.abs(found.astype(np.float64) - wanted).max() <= step


def test_channels_at_the_end_are_refused_by_name():
    model = of_runtime("QLinearGlobalAveragePool", [*X, *result(0.01, 130)], channels_last=1)
    with pytest.raises(ValueError, match="channels_last is not supported; 0 is"):
        import_onnx(model, new_context())
