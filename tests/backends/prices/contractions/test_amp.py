"""Prices of the conv units against measurements, and against what no price may do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.prices.contractions.amp import amp_cycles
from abele.backends.prices.contractions.contraction import Contraction
from abele.backends.target import resolve_target

MK2 = resolve_target("mk2")
BOW = resolve_target("bow")

# Tile cycles of out[N, 16] = lhs[N, 16] @ rhs[16, 16], float16, on every tile of a Bow.
# graphcore-research/tessellate-ipu@3ab241f, notebooks/IPU Peak Flops.ipynb, cell 18.
AMP_CYCLES = {16: 402.0, 64: 584.0, 256: 1352.0, 1024: 4424.0, 2048: 8525.34}

sizes = st.integers(1, 300)


@pytest.mark.parametrize("rows", AMP_CYCLES)
def test_amp_price_meets_the_measured_cycles(rows):
    price = amp_cycles(Contraction.of(rows, 16, 16, 1, 1, "float16", "float16"), BOW)
    assert price == pytest.approx(AMP_CYCLES[rows], rel=0.02)


@pytest.mark.parametrize(
    ("dtype", "partials", "peak"),
    [("float16", "float16", 64), ("float16", "float32", 32), ("float32", "float32", 16)],
)
def test_amp_approaches_its_peak_and_never_passes_it(dtype, partials, peak):
    for kernel in (1, 9):
        price = amp_cycles(Contraction.of(6000, 256, 256, kernel, 1, dtype, partials), MK2)
        rate = 6000 * 256 * 256 * kernel / price
        assert 0.9 * peak < rate <= peak


@given(sizes, sizes, sizes, st.integers(1, 25), st.integers(0, 3))
def test_more_work_is_never_cheaper_in_the_units(field, inputs, outputs, kernel, axis):
    shape = [field, inputs, outputs, kernel]
    more = list(shape)
    more[axis] *= 2
    small = amp_cycles(Contraction.of(*shape, 1, "float16", "float16"), MK2)
    large = amp_cycles(Contraction.of(*more, 1, "float16", "float16"), MK2)
    assert small <= large


def test_few_input_channels_take_several_kernel_rows_at_once():
    three = amp_cycles(Contraction.of(3025, 3, 96, 121, 1, "float16", "float16"), MK2)
    sixteen = amp_cycles(Contraction.of(3025, 16, 96, 121, 1, "float16", "float16"), MK2)
    assert three < 0.4 * sixteen
