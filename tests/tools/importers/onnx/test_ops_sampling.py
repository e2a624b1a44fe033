"""Images that are read at computed places."""

from itertools import product

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import UnsupportedError, import_onnx

RANDOM = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def node(operator: str, *operands: np.ndarray, opset: int = 20, weights: int = 0, **attributes):
    """A model of one node, whose last operands are weights, and its inputs."""
    named = {f"x{i}": array for i, array in enumerate(operands)}
    count = len(operands) - weights
    inputs = dict(list(named.items())[:count])
    graph = helper.make_graph(
        [helper.make_node(operator, list(named), ["y"], **attributes)],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(a, n) for n, a in list(named.items())[count:]],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), inputs


def agrees(model, inputs) -> np.ndarray:
    mine = run_reference(import_onnx(model, AbeleContext()), inputs).outputs["y"]
    (other,) = ReferenceEvaluator(model).run(None, inputs)
    np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
    return mine


@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (1, 1, 2, 3, 2)])
def test_places_in_and_far_outside_of_an_image_are_sampled_as_the_standard_says(shape):
    rank = len(shape) - 2
    image, grid = floats(*shape), 1.5 * floats(shape[0], *[2] * rank, rank)
    for mode, padding, corners in product(
        ("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)
    ):
        if mode == "cubic" and rank == 3:
            continue
        agrees(
            *node("GridSample", image, grid, mode=mode, padding_mode=padding, align_corners=corners)
        )


def test_nearest_samples_have_the_bits_of_the_image():
    image = np.array([[[[-0.0, 1e-40], [np.inf, 3]]]], np.float32)
    grid = np.array([[[[-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5]]]], np.float32)
    model, inputs = node("GridSample", image, grid, mode="nearest", padding_mode="border")
    found = run_reference(import_onnx(model, AbeleContext()), inputs).outputs["y"]
    assert found.tobytes() == image.reshape(-1)[:3].tobytes()


@pytest.mark.parametrize("corners", [0, 1])
def test_an_affine_grid_is_a_product(corners: int):
    size = np.array([2, 1, 3, 4])
    agrees(*node("AffineGrid", floats(2, 2, 3), size, weights=1, align_corners=corners))


def test_a_region_is_the_mean_or_the_maximum_of_its_samples():
    rois = np.array([[-1, 0.5, 3, 4.5], [2, 2, 2.5, 9]], np.float32)
    for mode, coordinates in (("avg", "half_pixel"), ("max", "output_half_pixel")):
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
        batch = np.array([1, 0])
        agrees(
            *node(
                "RoiAlign",
                np.abs(floats(2, 3, 5, 6)),
                rois,
                batch,
                opset=16,
                output_height=2,
                output_width=3,
                sampling_ratio=2,
                spatial_scale=0.7,
                **attributes,
            )
        )


def test_samples_without_a_fixed_number_are_refused():
    model, _ = node("RoiAlign", floats(1, 1, 4, 4), floats(1, 4), np.array([0]), opset=16)
    with pytest.raises(UnsupportedError, match="sampling_ratio 0.*need 1 or more"):
        import_onnx(model, AbeleContext())


def test_a_convolution_with_offsets_has_groups_masks_and_a_bias():
    image, weight = floats(1, 4, 3, 3), floats(6, 2, 2, 2)
    offsets, bias, mask = 0.5 * floats(1, 16, 2, 2), floats(6), floats(1, 8, 2, 2)
    agrees(
        *node("DeformConv", image, weight, offsets, bias, mask, opset=19, group=2, offset_group=2)
    )


def test_a_grid_of_another_image_is_refused():
    model, _ = node("GridSample", floats(2, 1, 3, 3), floats(1, 2, 2, 2))
    with pytest.raises(InputError, match=r"grid of shape \[1, 2, 2, 2\] for an image of \[2, 1"):
        import_onnx(model, AbeleContext(), lenient=True)
