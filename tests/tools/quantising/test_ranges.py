import numpy as np
import pytest

from abele.ir.support.errors import InputError
from abele.tools.quantising.formats import FP8, INT8, SYMMETRIC, UINT8, Format, Scaling
from abele.tools.quantising.histogram import BINS, Histogram
from abele.tools.quantising.ranges import METHODS, Method


def seen(*arrays: np.ndarray) -> Histogram:
    found = Histogram()
    for each in arrays:
        found.add(each.astype(np.float32))
    return found


def test_a_histogram_widens_and_loses_no_number():
    random = np.random.default_rng(0)
    parts = [random.standard_normal(1000) * 10.0**i for i in range(-3, 4)]
    found = seen(np.zeros(5), *parts)
    whole = np.concatenate([np.zeros(5), *parts]).astype(np.float32)
    assert (found.low, found.high) == (whole.min(), whole.max())
    assert found.exponent is not None
    edges = np.linspace(-(2.0**found.exponent), 2.0**found.exponent, BINS + 1)
    assert np.array_equal(found.counts, np.histogram(whole, edges)[0])
    centres, counts = found.used()
    assert counts.sum() == whole.size
    assert (np.diff(centres) > 0).all()


def test_the_order_of_the_numbers_does_not_matter():
    random = np.random.default_rng(1)
    parts = [random.standard_normal(100) * scale for scale in (1, 100, 0.01)]
    first, second = seen(*parts), seen(*parts[::-1])
    assert np.array_equal(first.counts, second.counts)


@pytest.mark.parametrize("form", [UINT8, INT8, SYMMETRIC, FP8], ids=lambda form: form.name)
def test_a_whole_range_is_held_to_half_a_step(form: Format):
    values = np.linspace(-3, 5, 1001, dtype=np.float32)
    scaling = form.for_range(-3.0, 5.0, "x")
    error = np.abs(form.rounded(values, scaling) - values)
    # An 8-bit float has 4 significant bits.
    step = float(scaling.scale) if form is not FP8 else 2.0**-3 * np.abs(values)
    assert (error <= 0.5001 * step).all()
    assert form.rounded(np.zeros(1, np.float32), scaling) == 0


@pytest.mark.parametrize("form", [UINT8, INT8, FP8], ids=lambda form: form.name)
@pytest.mark.parametrize("method", METHODS)
def test_each_method_finds_a_scaling(method: Method, form: Format):
    random = np.random.default_rng(2)
    heavy = np.concatenate([random.standard_normal(20_000), [40.0]])
    scaling = METHODS[method](seen(heavy), form, "x")
    held = form.rounded(heavy.astype(np.float32), scaling)
    signal, noise = np.square(heavy[:-1]).sum(), np.square(held - heavy)[:-1].sum()
    assert 10 * np.log10(signal / noise) > 15


def test_one_far_number_does_not_widen_a_range_but_with_minmax():
    random = np.random.default_rng(3)
    heavy = seen(np.concatenate([random.standard_normal(100_000), [1000.0]]))
    scales = {name: float(find(heavy, UINT8, "x").scale) for name, find in METHODS.items()}
    assert scales["minmax"] > 3.9
    assert scales["percentile"] < 0.05
    # The square of what is cut off counts.
    assert scales["percentile"] < scales["mse"] < scales["minmax"]


def test_mse_finds_the_best_power_of_two():
    random = np.random.default_rng(4)
    values = random.standard_normal(50_000).astype(np.float32)
    found = METHODS["mse"](seen(values), FP8, "x")

    def error(scaling: Scaling) -> float:
        return float(np.square(FP8.rounded(values, scaling) - values).sum())

    every = [Scaling.of(2.0**e) for e in range(-12, 3)]
    assert error(found) <= 1.02 * min(map(error, every))


def test_zeros_have_a_scale():
    for form in (UINT8, INT8, SYMMETRIC, FP8):
        for find in METHODS.values():
            assert float(find(seen(np.zeros(4)), form, "x").scale) == 1


def test_numbers_beyond_the_last_scale_are_refused():
    with pytest.raises(InputError, match=r"'x': numbers up to 1e\+15; scales of fp8 go to 2\^31"):
        FP8.for_range(-1.0, 1e15, "'x'")
    with pytest.raises(InputError, match="need one that float32 holds"):
        UINT8.for_range(-1e41, 1e41, "'x'")
