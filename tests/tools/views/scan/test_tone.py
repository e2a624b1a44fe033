import numpy as np
import pytest

from abele.tools.views.scan.tone import Tone, brightest, exposed, finished


def light_of(size: int) -> np.ndarray:
    light = np.zeros((size, size, 4), np.float32)
    light[size // 2, size // 2] = (100, 0, 0, 100)
    light[size // 4, size // 4] = (0, 1, 0, 1)
    return light


def test_an_empty_sheet_is_dark_and_even():
    picture = finished(np.zeros((512, 512, 4), np.float32), Tone(), 1.0)
    assert np.ptp(picture.reshape(-1, 3), axis=0).max() == 0
    assert picture.max() < 40


@pytest.mark.parametrize("size", [256, 512, 1030])
def test_faint_and_bright_light_are_both_seen(size: int):
    light = light_of(size)
    picture = finished(light, Tone(), brightest(light, Tone())).astype(int)
    ground = picture[5, 5]
    assert picture[size // 2, size // 2, 0] > 200
    assert picture[size // 4, size // 4, 1] > ground[1] + 20
    assert picture[size // 4, size // 4].argmax() == 1


def test_bright_places_glow():
    light = light_of(512)
    light[250:262, 250:262] = (100, 0, 0, 100)
    picture = finished(light, Tone(), 100.0).astype(int)
    assert picture[256, 266, 0] > picture[5, 5, 0] + 10
    dull = finished(light, Tone(glow=()), 100.0).astype(int)
    assert dull[256, 266, 0] == dull[5, 5, 0]


def test_more_light_is_never_darker():
    shown = exposed(np.linspace(0, 5, 1000, dtype=np.float32), 0.001)
    assert (np.diff(shown.astype(int)) >= 0).all()
