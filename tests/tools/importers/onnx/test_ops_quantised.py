"""Quantised operators of ONNX on the machine, against definitions in exact integers and float64."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

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
