import numpy as np
import pytest

from abele.tools.views.scan.blur import blurred


def test_a_blur_keeps_the_light_and_spreads_it_by_sigma():
    picture = np.zeros((101, 101), np.float32)
    picture[50, 50] = 7
    found = blurred(picture, 4.0)
    at = np.arange(101) - 50
    assert found.sum() == pytest.approx(7, rel=1e-3)
    assert (found * at**2).sum() / found.sum() == pytest.approx(16, rel=0.05)
