import numpy as np
import pytest
from scipy import ndimage

from abele.tools.views.scan.blur import blur


def test_a_blur_keeps_the_light_and_spreads_it_by_sigma():
    picture = np.zeros((101, 101), np.float32)
    picture[50, 50] = 7
    blur(picture, 4.0)
    at = np.arange(101) - 50
    assert picture.sum() == pytest.approx(7, rel=1e-3)
    assert (picture * at**2).sum() / picture.sum() == pytest.approx(16, rel=0.05)


@pytest.mark.parametrize(
    ("shape", "sigma"), [((40, 300), 1.5), ((30, 20), 12.0), ((20, 1100, 4), 2.0), ((9, 8, 3), 0.6)]
)
def test_a_blur_is_that_of_scipy_channel_by_channel(shape: tuple[int, ...], sigma: float):
    values = np.random.default_rng(0).random(shape, np.float32)
    sigmas = (sigma, sigma, 0)[: len(shape)]
    wanted = ndimage.gaussian_filter(values, sigmas, truncate=3, mode="constant")
    blur(values, sigma)
    assert values == pytest.approx(wanted, abs=1e-6)


def test_a_blur_narrower_than_half_a_value_changes_nothing():
    values = np.random.default_rng(0).random((5, 6), np.float32)
    before = values.copy()
    blur(values, 0.1)
    assert np.array_equal(values, before)
