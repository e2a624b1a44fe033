"""Accuracy and the area under the ROC curve, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.tools.driver.metrics import accuracy, area_under_curve, mean_loss
from abele.tools.driver.training import Settings


def settings(loss: str = "softmax_cross_entropy", **more: object) -> Settings:
    return Settings(loss, 0.1, "y", "target", **{"inside": False, **more})


BINARY = settings("binary_cross_entropy")


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30))
def test_the_area_is_the_share_of_pairs_in_order(samples: list[tuple[int, bool]]):
    scores, kinds = np.array(samples).T
    positive, negative = scores[kinds == 1], scores[kinds == 0]
    pairs = positive[:, None] - negative
    found = area_under_curve(scores[:, None].astype(np.float32), kinds[:, None], BINARY)
    if not pairs.size:
        assert found is None
    else:
        assert found == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)
        two = np.stack([np.zeros_like(scores), scores], 1)
        assert area_under_curve(two, kinds, settings(classes=2)) == pytest.approx(found)


def test_ignored_labels_count_in_no_figure():
    outputs = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
    targets, known = np.array([0, 0, -1]), settings(classes=2, ignored=-1)
    assert accuracy(outputs, targets, known) == 0.5
    assert mean_loss(np.array([1.0, 2.0, 0.0]), targets, known) == 1.5


def test_an_output_is_on_the_right_side_of_one_half():
    targets = np.array([[1.0], [0.0], [0.0]])
    outputs = np.array([[0.6], [0.4], [0.3]])
    assert accuracy(outputs, targets, settings("binary_cross_entropy", inside=True)) == 1.0
    # The same numbers as logarithms of odds are all positive.
    assert accuracy(outputs, targets, BINARY) == pytest.approx(1 / 3)


def test_distances_are_neither_right_nor_wrong():
    values = np.ones((3, 1))
    assert accuracy(values, values, settings("mean_square")) is None
    assert area_under_curve(values, values, settings("mean_square")) is None
