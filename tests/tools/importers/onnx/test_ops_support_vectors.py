"""Support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from abele.ir.errors import InputError
from abele.tools.importers import UnsupportedError

from .one_node import computed, one_node

ML = "ai.onnx.ml"
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
PARAMETERS = [0.3, 0.5, 2.0]
RANDOM = np.random.default_rng(8)
X = RANDOM.standard_normal((9, 4)).astype(np.float32)


def floats(*shape: int) -> list[float]:
    return RANDOM.standard_normal(shape).astype(np.float32).reshape(-1).tolist()


def agree(operator: str, kinds: tuple[int, ...], **attributes: Any) -> list[np.ndarray]:
    """Check the results of one node against onnxruntime's."""
    model, inputs = one_node(operator, X, domain=ML, results=len(kinds), opset=18, **attributes)
    model.ir_version = 9
    for output, kind in zip(model.graph.output, kinds, strict=True):
        output.type.tensor_type.elem_type = kind
    others = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    found = computed(model, inputs)
    for mine, other in zip(found, others, strict=True):
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
    return found


@pytest.mark.parametrize("one_class", [0, 1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_regressor_has_four_kernels(kernel: str, one_class: int):
    agree(
        "SVMRegressor",
        (TensorProto.FLOAT,),
        kernel_type=kernel,
        kernel_params=PARAMETERS,
        n_supports=5,
        one_class=one_class,
        support_vectors=floats(5, 4),
        coefficients=floats(5),
        rho=[0.25],
    )


def classifier(per_class: list[int], probabilities: bool) -> dict[str, Any]:
    """The attributes of a classifier with some support vectors per class."""
    random = np.random.default_rng(5)

    def floats(*shape: int) -> list[float]:
        return random.normal(size=shape).astype(np.float32).reshape(-1).tolist()

    classes, count = len(per_class), sum(per_class)
    pairs = classes * (classes - 1) // 2
    given = {
        "kernel_type": "RBF",
        "kernel_params": PARAMETERS,
        "classlabels_ints": [7, 3, 5, 1][:classes],
        "vectors_per_class": per_class,
        "support_vectors": floats(count, 4),
        "coefficients": floats(classes - 1, count),
        "rho": [0.1 * i for i in range(pairs)],
    }
    more = {"prob_a": [-2.0 - i for i in range(pairs)], "prob_b": floats(pairs)}
    return given | (more if probabilities else {})


@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("per_class", [[2, 3], [1, 2, 3], [2, 1, 1, 2]])
def test_a_classifier_counts_votes_of_pairs(per_class: list[int], probabilities: bool):
    attributes = classifier(per_class, probabilities)
    label, scores = agree("SVMClassifier", (TensorProto.INT64, TensorProto.FLOAT), **attributes)
    assert len({*label.tolist()}) > 1
    if probabilities:
        np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": [0.5]}, "1 rho; need 10 and 3"),
        ({"vectors_per_class": [1, 4]}, "2 vectors_per_class of 3 labels"),
        ({"support_vectors": [1.0] * 7}, "7 numbers in 5 vectors; the rows have 4"),
        ({"kernel_type": "COSINE"}, "kernel 'COSINE'"),
        ({"vectors_per_class": [0, 0, 0]}, "without support vectors"),
    ],
)
def test_a_damaged_classifier_is_refused(change: dict[str, Any], message: str):
    attributes = classifier([1, 2, 2], probabilities=False) | change
    model, inputs = one_node("SVMClassifier", X, domain=ML, results=2, **attributes)
    with pytest.raises((InputError, UnsupportedError), match=message):
        computed(model, inputs)
