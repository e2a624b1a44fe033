"""Resize and Upsample: what they compute, and what of it is a movement."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx
from abele.tools.onnx_backend import AbeleBackend

ROI, SCALES, SIZES = "roi", "scales", "sizes"


def resize(shape, opset=19, operator="Resize", **given):
    """A model of one node. roi, scales and sizes are operands, the others attributes."""
    kinds = {ROI: np.float32, SCALES: np.float32, SIZES: np.int64}
    known = {name: np.array(given.pop(name), kinds[name]) for name in kinds if name in given}
    names = ["x", "scales"] if opset < 11 else ["x", *(n if n in known else "" for n in kinds)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **given)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in known.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def image(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def kinds(model) -> list[str]:
    return [op.name for op in import_onnx(model, AbeleContext()).walk() if op.name[:3] == "nn."]


def computed(model, x: np.ndarray) -> np.ndarray:
    return run_reference(import_onnx(model, AbeleContext()), {"x": x}).outputs["y"]


def agrees(model, x: np.ndarray) -> None:
    (other,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(computed(model, x), other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        {"scales": [1, 1, 1.5, 0.6], "mode": "linear", "antialias": 1},
        {"sizes": [1, 2, 3, 9], "mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
        {"sizes": [7, 4], "axes": [3, 2], "keep_aspect_ratio_policy": "not_larger"},
        {
            "scales": [1, 1, 2, 3],
            "roi": [0, 0, 0.3, -0.1, 1, 1, 1.2, 0.8],
            "coordinate_transformation_mode": "tf_crop_and_resize",
            "extrapolation_value": 5.0,
            "mode": "linear",
        },
    ],
)
def test_images_are_resized_as_the_standard_says(given):
    agrees(resize((1, 2, 5, 7), **given), image(1, 2, 5, 7))


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
def test_nearest_elements_are_a_movement_without_a_table(coordinates: str, rounding: str):
    for made in (3, 8, 13, 20):
        model = resize(
            (5,),
            sizes=[made],
            coordinate_transformation_mode=coordinates,
            nearest_mode=rounding,
        )
        assert "nn.gather" not in kinds(model)
        agrees(model, image(5))


def test_a_whole_factor_repeats_elements_where_they_are():
    model = resize(
        (1, 2, 3, 4),
        scales=[1, 1, 2, 2],
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    assert kinds(model) == ["nn.reshape", "nn.expand", "nn.reshape"]
    agrees(model, image(1, 2, 3, 4))


def test_a_machine_repeats_and_leaves_out_elements():
    x = image(6, 5)
    (found,) = AbeleBackend.run_model(resize((6, 5), sizes=[15, 3]), [x])
    np.testing.assert_array_equal(
        found, x[[0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5]][:, [0, 2, 4]]
    )


def test_a_long_axis_is_interpolated_by_taps_and_not_by_a_large_matrix():
    model = resize((2, 200), sizes=[2, 330], mode="linear")
    assert "nn.matmul" not in kinds(model)
    assert kinds(model).count("nn.resample") == 2
    agrees(model, image(2, 200))


def test_upsample_counts_from_the_first_element():
    model = resize((1, 1, 2, 2), 9, "Upsample", scales=[1, 1, 2, 3], mode="linear")
    found = computed(model, np.array([[[[0, 3], [6, 9]]]], np.float32))
    np.testing.assert_allclose(found[0, 0, 0], [0, 1, 2, 3, 3, 3], atol=1e-6)
    np.testing.assert_allclose(found[0, 0, :, 0], [0, 3, 6, 6], atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scales": [1, 2]}, "scales .1.0, 2.0.; need 3 positive numbers"),
        ({"scales": [1, 0, 1]}, "scales .1.0, 0.0, 1.0.; need 3 positive"),
        ({}, "neither scales nor sizes"),
        ({"scales": [1, 1, 2], "mode": "nearby"}, "mode 'nearby'; need one of nearest, linear"),
        ({"scales": [1, 1, 2], "antialias": 1}, "antialias of nearest elements"),
        ({"sizes": [1, 1], "axes": [1, 1]}, "axes .1, 1. repeat"),
    ],
)
def test_parameters_that_contradict_are_refused(given, message: str):
    with pytest.raises(InputError, match=message):
        import_onnx(resize((2, 3, 4), **given), AbeleContext(), lenient=True)
