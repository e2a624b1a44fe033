"""Prices against measurements on real chips, and against what no price may do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends import cost
from abele.backends.target import resolve_target

BOW = resolve_target("bow")
MK2 = resolve_target("mk2")

# Tile cycles of out[N, 16] = lhs[N, 16] @ rhs[16, 16], float16, on every tile of a Bow.
# graphcore-research/tessellate-ipu@3ab241f, notebooks/IPU Peak Flops.ipynb, cell 18.
AMP_CYCLES = {16: 402.0, 64: 584.0, 256: 1352.0, 1024: 4424.0, 2048: 8525.34}

# Tile cycles of float32 additions, the cost of reading the counter included.
# tessellate-ipu@3ab241f: tests/lax/test_tile_lax_basic.py:550, tests/linalg/
# test_tile_linalg_jacobi.py:158 (scaled add); notebooks/01-tessellate-ipu-tile-api-basics.ipynb.
ADD_CYCLES = {64: 375, 512: 1043, 1024: 1860}
# Fitted to those three: what the two readings of the counter add.
BRACKET_CYCLES = 83

sizes = st.integers(1, 300)


@pytest.mark.parametrize("rows", AMP_CYCLES)
def test_amp_price_meets_the_measured_cycles(rows):
    price = cost.amp_cycles(rows, 16, 16, 1, 1, "float16", "float16", BOW)
    assert price == pytest.approx(AMP_CYCLES[rows], rel=0.02)


@pytest.mark.parametrize("elements", ADD_CYCLES)
def test_addition_price_meets_the_measured_cycles(elements):
    price = cost.elementwise_cycles(elements, 2, "add", "float32", BOW)
    assert price + BRACKET_CYCLES == pytest.approx(ADD_CYCLES[elements], rel=0.05)


@pytest.mark.parametrize(
    ("dtype", "partials", "peak"),
    [("float16", "float16", 64), ("float16", "float32", 32), ("float32", "float32", 16)],
)
def test_amp_approaches_its_peak_and_never_passes_it(dtype, partials, peak):
    for kernel in (1, 9):
        price = cost.amp_cycles(6000, 256, 256, kernel, 1, dtype, partials, MK2)
        rate = 6000 * 256 * 256 * kernel / price
        assert 0.9 * peak < rate <= peak


@given(sizes, sizes, sizes, st.integers(1, 25), st.integers(1, 40))
def test_contraction_takes_its_cheapest_method(field, inputs, outputs, kernel, groups):
    shape = (field, inputs, outputs, kernel, groups)
    for types in [("float16", "float16"), ("float32", "float32"), ("int32", "int32")]:
        by_method = {
            "amp": cost.amp_cycles(*shape, *types, MK2),
            "mac": cost.mac_cycles(*shape, *types, MK2),
            "vmac": cost.vmac_cycles(*shape, *types, MK2),
        }
        price = cost.contraction_cycles(*shape, *types, MK2)
        method = str(cost.contraction_method(*shape, *types, MK2))
        assert price == min(by_method.values()) == by_method[method]


@given(sizes, sizes, sizes, st.integers(1, 25), st.integers(0, 3))
def test_more_work_is_never_cheaper_in_the_units(field, inputs, outputs, kernel, axis):
    shape = [field, inputs, outputs, kernel]
    more = list(shape)
    more[axis] *= 2
    small = cost.amp_cycles(*shape, 1, "float16", "float16", MK2)
    large = cost.amp_cycles(*more, 1, "float16", "float16", MK2)
    assert small <= large


def test_arrays_of_candidates_get_what_each_gets_alone():
    field = np.array([1, 5, 49, 3025])
    inputs = np.array([[3], [64]])
    together = cost.contraction_cycles(field, inputs, 96, 9, 1, "float16", "float32", MK2)
    assert together.shape == (2, 4)
    assert together.dtype == np.int64
    for row, channels in enumerate((3, 64)):
        for column, elements in enumerate(field):
            alone = cost.contraction_cycles(elements, channels, 96, 9, 1, "float16", "float32", MK2)
            assert together[row, column] == alone


def test_units_that_a_machine_lacks_cost_the_earth():
    assert np.isinf(cost.amp_cycles(9, 16, 16, 1, 1, "int32", "int32", MK2))
    assert np.isinf(cost.amp_cycles(9, 16, 16, 1, 1, "float8_e5m2", "float16", MK2))
    c600 = resolve_target("c600")
    assert np.isfinite(cost.amp_cycles(9, 16, 16, 1, 1, "float8_e5m2", "float16", c600))
    assert cost.contraction_method(9, 16, 16, 1, 1, "int32", "int32", MK2) == "mac"


def test_depth_wise_convolution_does_not_pad_a_channel_to_sixteen():
    method = cost.contraction_method(49, 1, 1, 9, 112, "float16", "float16", MK2)
    assert method == "vmac"


def test_few_input_channels_take_several_kernel_rows_at_once():
    three = cost.amp_cycles(3025, 3, 96, 121, 1, "float16", "float16", MK2)
    sixteen = cost.amp_cycles(3025, 16, 96, 121, 1, "float16", "float16", MK2)
    assert three < 0.4 * sixteen


def test_exchange_costs_the_larger_direction():
    assert cost.exchange_cycles(0, 0, MK2) == 0
    assert cost.exchange_cycles(4000, 10, MK2) == cost.exchange_cycles(10, 4000, MK2)
    # 0.56 cycles for 2 bytes, once the farthest sender is there.
    assert cost.exchange_cycles(3570, 0, MK2) == pytest.approx(1000 + 190, abs=1)
    assert cost.sync_cycles(MK2) == 118


@pytest.mark.parametrize("function", sorted(cost.LOOPS))
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_every_function_has_a_price_that_grows_with_the_block(function, dtype):
    prices = cost.elementwise_cycles(np.array([0, 1, 100, 10_000]), 1, function, dtype, MK2)
    assert prices[0] == 0
    assert np.all(np.diff(prices) > 0)


def test_unknown_function_costs_the_assumed_loop():
    known = cost.elementwise_cycles(600, 1, "exp", "float32", MK2)
    assert cost.elementwise_cycles(600, 1, "erf", "float32", MK2) > known


def test_reduction_shares_outputs_or_depth():
    assert cost.reduce_cycles(100, 1, "float32", MK2) == 0
    assert cost.reduce_cycles(0, 9, "float32", MK2) == 0
    # One long sum is shared by depth: about a sixth of what one worker alone would take.
    alone = 6 * 2 * 60_000 / 4
    assert cost.reduce_cycles(1, 60_000, "float32", MK2) < 0.2 * alone
    assert cost.reduce_cycles(600, 9, "float16", MK2) < cost.reduce_cycles(600, 9, "float32", MK2)


def test_moving_bytes():
    assert np.all(cost.copy_cycles([0, 8, 80], MK2) == [0, 289, 298])
    assert cost.fill_cycles(0, MK2) == 0
    assert cost.fill_cycles(4800, MK2) == 12 + 6 * (26 + 100)
    prices = cost.rearrange_cycles(1000, [2, 4, 8, 64], MK2)
    assert prices[0] > prices[1] > prices[2] == prices[3]


@pytest.mark.parametrize("function", ["add", "max", "relu", "exp", "unheard_of"])
def test_a_function_that_follows_starts_nothing_and_stores_nothing(function):
    for elements in (0, 6, 6000):
        follows = cost.following_cycles(elements, 1, function, "float32", MK2)
        alone = cost.elementwise_cycles(elements, 1, function, "float32", MK2)
        assert follows < alone or elements == 0
    # Without the load and store of its loop, a vector of two at a time on each of six workers.
    assert cost.following_cycles(6000, 1, "relu", "float32", MK2) == 6000 // 2
    assert cost.following_cycles(6000, 2, "add", "float32", MK2) == 6000
