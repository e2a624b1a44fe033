"""Features and linear models."""

import numpy as np
import pytest
from onnx import numpy_helper

from abele.ir.errors import InputError

from .one_node import agree_with_onnx, computed, one_node

ML = "ai.onnx.ml"


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(3, 5), (5,)])
def test_features_are_extracted(shape):
    indices = np.array([[4, 0, 2]])
    agree_with_onnx(*one_node("ArrayFeatureExtractor", floats(*shape), indices, domain=ML))


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("Binarizer", {"threshold": 0.25}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("Normalizer", {"norm": "MAX"}),
        ("Scaler", {"offset": [0.5, 1.0, -1.0, 0.0], "scale": [2.0]}),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": np.nan}),
        ("Imputer", {"imputed_value_floats": [9.0], "replaced_value_float": 0.5}),
        (
            "LinearRegressor",
            {"coefficients": [*map(float, range(8))], "intercepts": [1.0, 2.0], "targets": 2},
        ),
    ],
)
def test_features_are_changed_row_by_row(operator: str, attributes):
    x = floats(3, 4)
    if operator == "Imputer":
        x[0, 1], x[2, 3] = np.nan, 0.5
    agree_with_onnx(*one_node(operator, x, domain=ML, **attributes))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize(("rows", "labels"), [(1, [7]), (1, [7, 9]), (3, [5, 6, 8])])
def test_a_linear_model_chooses_a_label(transform: str, rows: int, labels: list[int]):
    agree_with_onnx(
        *one_node(
            "LinearClassifier",
            floats(6, 4),
            domain=ML,
            results=2,
            classlabels_ints=labels,
            coefficients=floats(rows * 4).tolist(),
            intercepts=floats(rows).tolist(),
            post_transform=transform,
        )
    )


def test_labels_are_looked_up_or_have_a_default():
    x = np.array([[3, 1, 2], [7, 3, 3]])
    model, inputs = one_node(
        "LabelEncoder",
        x,
        domain=ML,
        version=4,
        keys_int64s=[3, 2, 7],
        values_floats=[0.5, np.inf, -1.0],
        default_float=9.0,
    )
    (found,) = computed(model, inputs)
    np.testing.assert_array_equal(found, np.array([[0.5, 9, np.inf], [-1, 0.5, 0.5]], np.float32))


def test_a_missing_number_may_be_a_key():
    model, inputs = one_node(
        "LabelEncoder",
        np.array([np.nan, 2, 5], np.float32),
        domain=ML,
        version=4,
        keys_tensor=numpy_helper.from_array(np.array([2, np.nan], np.float32)),
        values_tensor=numpy_helper.from_array(np.array([20, 30], np.int16)),
        default_tensor=numpy_helper.from_array(np.array([7], np.int16)),
    )
    (found,) = computed(model, inputs)
    np.testing.assert_array_equal(found, [30, 20, 7])
    assert found.dtype == np.int16


def test_features_of_several_inputs_are_put_side_by_side():
    inputs = (floats(3, 2), np.arange(3), floats(3, 1))
    model, given = one_node("FeatureVectorizer", *inputs, domain=ML, inputdimensions=[2, 1, 1])
    (found,) = computed(model, given)
    np.testing.assert_array_equal(found, np.column_stack(inputs).astype(np.float32))


def test_coefficients_must_fit_the_features():
    model, inputs = one_node("LinearRegressor", floats(2, 4), domain=ML, coefficients=[1.0] * 6)
    with pytest.raises(InputError, match="coefficients for 4 features"):
        computed(model, inputs)
