"""Norms under windows, and columns that are added up to an image."""

import numpy as np
import pytest

from .one_node import agree_with_onnx, computed, one_node


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_norm_of_padding_counts_nothing(order: int):
    x = floats(1, 2, 5, 4)
    model, inputs = one_node(
        "LpPool", x, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], p=order
    )
    (found,) = computed(model, inputs)
    padded = np.pad(np.abs(x), [(0, 0), (0, 0), (1, 1), (0, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2]
    norms = (windows.astype(np.float64) ** order).sum((-1, -2)) ** (1 / order)
    np.testing.assert_allclose(found, norms, rtol=1e-5)


def test_columns_overlap_in_an_image():
    image, block = np.array([5, 6]), np.array([2, 3])
    x = floats(2, 3 * 6, 3 * 3)
    attributes = {"strides": [2, 2], "pads": [0, 1, 1, 0], "dilations": [2, 1]}
    agree_with_onnx(*one_node("Col2Im", x[..., :6], image, block, known=2, **attributes))


@pytest.mark.parametrize("axes", [None, [2, -3]])
def test_an_image_is_cut_and_filled_around_its_centre(axes):
    shape = np.array([4, 2, 8][: 3 if axes is None else 2])
    attributes = {} if axes is None else {"axes": axes}
    agree_with_onnx(*one_node("CenterCropPad", floats(3, 5, 5), shape, known=1, **attributes))


@pytest.mark.parametrize("order", [0, 1])
def test_maxima_go_back_to_where_they_were(order: int):
    """Of equal elements the first counts; NaN is no maximum."""
    x = np.round(floats(2, 3, 6, 8))
    x[0, 0, 0, 0] = np.nan
    window = {"kernel_shape": [3, 2], "strides": [3, 2]}
    model, inputs = one_node("MaxPool", x, results=2, storage_order=order, **window)
    values, indices = computed(model, inputs)
    tiles = x.reshape(2, 3, 2, 3, 4, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 2, 4, 6)
    first = np.where(np.isnan(tiles), -np.inf, tiles).argmax(-1)
    np.testing.assert_array_equal(values, np.take_along_axis(tiles, first[..., None], -1)[..., 0])
    y = np.arange(2)[:, None] * 3 + first // 2
    z = np.arange(4) * 2 + first % 2
    plane = np.arange(6).reshape(2, 3, 1, 1) * 48
    np.testing.assert_array_equal(indices, plane + (y + 6 * z if order else 8 * y + z))
    if order == 0:
        (found,) = computed(*one_node("MaxUnpool", values, indices, **window))
        assert np.count_nonzero(found) == np.count_nonzero(values)
        np.testing.assert_array_equal(found.ravel()[indices.ravel()], values.ravel())


@pytest.mark.parametrize("shape", [(0, 0, 9), (0, 3, 2)])
def test_no_maxima_go_back_to_an_image_without_elements(shape: tuple[int, ...]):
    values, indices = np.zeros(shape, np.float32), np.zeros(shape, np.int64)
    (found,) = computed(*one_node("MaxUnpool", values, indices, kernel_shape=[1]))
    assert found.shape == shape
