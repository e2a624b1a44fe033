"""Cycles of training ResNet-50, an image and an update apart."""

import pytest

from abele.ir.errors import InputError
from abele.tools import Training, compile_model
from abele.tools.workshop.images import Step, numbers_in, update_cycles


def test_an_update_counts_apart_unless_a_gradient_is_computed_with_it():
    def update(optimizer: str) -> tuple[int, int]:
        training = Training(optimizer=optimizer)
        exe = compile_model("examples/digits.onnx", "tiny:4", batch=4, train=training, cache=False)
        return update_cycles(exe), exe.profile["phases"]["update"]["cycles"]

    # sgd computes most updates together with their gradients. Adam reads each gradient twice.
    own, whole = update("sgd")
    assert 0 < own < 0.5 * whole
    own, whole = update("adam")
    assert own == pytest.approx(whole, rel=0.1)


def test_an_image_has_its_share_of_what_is_no_update():
    assert Step(0, 0, 1000, 200, 0.0, 0.0).an_image(16) == 50


@pytest.mark.parametrize("text", ["", "0", "16,x", "-1"])
def test_batches_are_positive_numbers(text: str):
    with pytest.raises(InputError, match="is no number of images, such as 16"):
        numbers_in(text)
