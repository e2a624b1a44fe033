"""The preset machines reach what their vendor publishes, and say where their values come from."""

import pytest

from abele.backends.target import PRESETS, resolve_target
from abele.backends.target.presets import PRESET_VALUES


@pytest.mark.parametrize(
    ("name", "teraflops"),
    # The vendor's peaks: float16 with float16 and float32 partials, float32.
    [("mk1", (124.5, 124.5, 31.1)), ("mk2", (250, 125, 62.5)), ("bow", (350, 175, 87.5))],
)
def test_conv_units_reach_the_published_peaks(name, teraflops):
    target = resolve_target(name)
    pairs = [("float16", "float16"), ("float16", "float32"), ("float32", "float32")]
    for pair, peak in zip(pairs, teraflops, strict=True):
        units = target.conv_units(*pair)
        assert units is not None
        rate = 2 * units.macs_per_cycle * target.tiles * target.clock_hz
        assert rate / 1e12 == pytest.approx(peak, rel=0.01)


def test_only_c600_and_the_machine_of_tests_have_units_for_8_bit_floats():
    for name, target in PRESETS.items():
        units = target.conv_units("float8_e4m3fn", "float16")
        assert (units is not None) == name.startswith(("c600", "tiny"))


def test_every_value_of_a_preset_is_its_targets():
    for name, values in PRESET_VALUES.items():
        spelled = ",".join([name, *(f"{key}={own.value!r}" for key, own in values.items())])
        assert resolve_target(spelled) == PRESETS[name]
