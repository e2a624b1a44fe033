"""Cycles of training ResNet-50, an image and an update apart."""

import pytest

from abele.ir.errors import InputError
from abele.tools.workshop.images import Step, numbers_in


def test_an_image_has_its_share_of_what_is_no_update():
    assert Step(0, 0, 1000, 200, 0.0, 0.0).an_image(16) == 50


@pytest.mark.parametrize("text", ["", "0", "16,x", "-1"])
def test_batches_are_positive_numbers(text: str):
    with pytest.raises(InputError, match="is no number of images, such as 16"):
        numbers_in(text)
