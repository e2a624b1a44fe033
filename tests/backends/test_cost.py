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


def test_a_product_with_few_columns_streams_its_rows_and_one_with_few_rows_its_columns():
    half = "float16", "float16", MK2
    assert cost.swapped_cycles(4, 256, 64, 1, 1, *half) == cost.amp_cycles(64, 256, 4, 1, 1, *half)
    assert method_of(512, 256, 16, 1, 1, *half[:2]) == "amp"
    assert method_of(16, 256, 512, 1, 1, *half[:2]) == "swapped"
    assert np.isinf(cost.swapped_cycles(4, 256, 64, 9, 1, *half))


def method_of(*sizes, **options):
    """The cheapest method of a contraction."""
    return cost.METHODS[int(cost.contraction_cycles(*sizes, MK2, **options).argmin())]


@given(sizes, sizes, sizes, st.integers(1, 25), st.integers(1, 40))
def test_contractions_are_priced_by_every_method_in_order(field, inputs, outputs, kernel, groups):
    shape = (field, inputs, outputs, kernel, groups)
    for types in [("float16", "float16"), ("float32", "float32"), ("int32", "int32")]:
        prices = cost.contraction_cycles(*shape, *types, MK2)
        assert len(prices) == len(cost.METHODS)
        for name, price in zip(cost.METHODS, prices, strict=True):
            assert price == getattr(cost, f"{name}_cycles")(*shape, *types, MK2)
            assert price == cost.contraction_cycles(*shape, *types, MK2, methods=[name])
        assert np.isfinite(prices).any()


# By hand, from the published formulas; seven lines each in the notes of poplibs' sources.


def test_slic_price_is_the_published_one():
    # A row of 10 for each worker: 17 + 10 + 15 + 5, one more where it zeroes; three windows of
    # 18 + 16 for weights and 20 to start; 28 + 15 and the branches' 1 + 13; 6 to return.
    windows = 3 * (34 + 20) + 13
    workers = 6 * 48 + 2 * 6 * 47
    price = cost.slic_cycles(60, 4, 4, 9, 1, "float16", "float16", MK2, field_rows=6)
    assert price == 28 + 15 + windows + workers + 1 + 6
    # With 8 units, 32-bit partials take two passes of one cycle less, and 3 cycles a row.
    workers = 6 * (17 + 11 + 3 + 2 * 19) + 2 * 6 * (17 + 10 + 3 + 2 * 19)
    price = cost.slic_cycles(60, 4, 4, 9, 1, "float16", "float32", MK2, field_rows=6)
    assert price == 28 + 15 + windows + workers + 1 + 6
    # Four groups of one channel: their weights are arranged by workers, 10 cycles each.
    arranged = cost.slic_cycles(60, 1, 1, 9, 4, "float16", "float16", MK2, field_rows=6)
    one = cost.slic_cycles(60, 4, 4, 9, 1, "float16", "float16", MK2, field_rows=6)
    assert arranged - one == 3 * (21 + 60 - 18)
    # Every second element: two cycles each from the third one on.
    strided = cost.slic_cycles(60, 4, 4, 9, 1, "float16", "float16", MK2, field_rows=6, stride=2)
    assert strided - one == 3 * 6 * (2 * 7 - 5)


def test_slic_is_for_16_bit_floats_and_short_strides():
    sizes = 60, 4, 4, 9, 1
    assert np.isinf(cost.slic_cycles(*sizes, "float32", "float32", MK2))
    assert np.isinf(cost.slic_cycles(*sizes, "int8", "int32", MK2))
    for stride in (0, 3):
        assert np.isinf(cost.slic_cycles(*sizes, "float16", "float16", MK2, stride=stride))
    assert method_of(784, 4, 4, 9, 1, "float16", "float16", field_rows=28) == "slic"
    assert method_of(784, 64, 64, 9, 1, "float16", "float16", field_rows=28) == "amp"


def test_a_sum_without_terms_takes_less_than_one_with_a_term():
    half = ("float16", "float16", MK2)
    for price in (cost.amp_cycles, cost.slic_cycles):
        none, one = (int(price(60, 4, 4, kernel, 1, *half)) for kernel in (0, 1))
        assert 0 < none < one


def test_horizontal_mac_price_is_the_published_one():
    # Two field elements a worker, three outputs of 8 inputs; groups of 23 + 15 + 10.
    price = cost.mac_cycles(12, 8, 3, 1, 2, "float32", "float32", MK2)
    assert price == 58 - 10 + 2 * (48 + 6 * (16 + 14 + 2 * (7 + 3 * (7 + 4))))
    price = cost.mac_cycles(12, 8, 3, 1, 2, "float16", "float16", MK2)
    assert price == 65 - 10 + 2 * (48 + 6 * (16 + 14 + 2 * (7 + 2 * (11 + 2 * 2))))
    price = cost.mac_cycles(12, 8, 3, 9, 2, "float32", "float32", MK2)
    assert price == 58 + 2 * (48 + 6 * (16 + 9 * (29 + 2 * (7 + 3 * (7 + 4)))))


def test_vertical_mac_price_is_the_published_one():
    # Two blocks of 8 groups, two elements a worker of 7 + 15 + 3 + 3 * 8, zeroed four at a time,
    # merged in 7 + 5 an element.
    price = cost.vmac_cycles(12, 1, 1, 9, 16, "float16", "float16", MK2)
    assert price == 100 + 2 * (56 + 4 + 24 + 6 * (13 + 2 * 49) + 10 + 2 * 12)
    # Four blocks of 4, zeroed two at a time, merged in 9 + 2 * 5.
    price = cost.vmac_cycles(12, 1, 1, 9, 16, "float16", "float32", MK2)
    assert price == 100 + 4 * (56 + 4 + 24 + 6 * (19 + 2 * 31) + 9 + 2 * 19)
    assert np.isinf(cost.vmac_cycles(12, 2, 1, 9, 16, "float16", "float16", MK2))


def test_outer_product_price_is_the_published_one():
    def price(out: int, dtype: str):
        return cost.outer_cycles(12, 1, out, 1, 2, dtype, dtype, MK2)

    assert price(24, "float32") == 6 * (25 + 2 * (11 + 2 * (6 + (24 - 6) // 2)))
    assert price(5, "float32") == 6 * (25 + 2 * (11 + 2 * (10 + 2 * 5)))
    assert price(24, "float16") == 6 * (25 + 2 * (10 + 2 * (6 + (24 - 12) // 4)))
    assert price(6, "float16") == 6 * (25 + 2 * (10 + 2 * (10 + 15)))
    assert np.isinf(cost.outer_cycles(12, 2, 24, 1, 2, "float32", "float32", MK2))
    assert np.isinf(price(24, "int32"))
    assert method_of(64, 1, 64, 1, 1, "float32", "float32") == "outer"


def test_scaled_addition_price_is_the_published_one():
    # 32 vectors, six of them the busiest worker's.
    assert cost.scaled_add_cycles(64, "float32", MK2) == 57 + 6 * (25 + 3 * 5)
    assert cost.scaled_add_cycles(65, "float32", MK2) == 57 + 6 + 6 * (25 + 3 * 5)
    assert cost.scaled_add_cycles(64, "float16", MK2) == 57 + 6 * (25 + 3 * 2)
    assert cost.scaled_add_cycles(0, "float32", MK2) == 0
    assert cost.scaled_add_cycles(64, "int32", MK2) > 0


def test_a_stream_moves_24_bytes_a_cycle():
    once, twice = cost.streamed_add_cycles([6000, 12000], "float32", MK2)
    assert 3 * 4 * 6000 / (twice - once) == 24


def test_staging_pays_for_runs_and_words():
    one = resolve_target("mk1")
    runs = cost.staging_cycles([0, 80, 160], [0, 10, 20], 8, one)
    assert runs[0] == 0
    assert runs[1] == 587 + 250 + 240
    assert runs[2] - runs[1] == 250 + 240
    short = cost.staging_cycles(80, 40, 2, one)
    assert short == 587 + np.ceil(80 * 5.148) + 40 * 24
    # Six workers share it on later chips.
    assert cost.staging_cycles(80, 10, 8, MK2) == 587 + np.ceil(490 / 6)


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
    assert together.shape == (len(cost.METHODS), 2, 4)
    for row, channels in enumerate((3, 64)):
        for column, elements in enumerate(field):
            alone = cost.contraction_cycles(elements, channels, 96, 9, 1, "float16", "float32", MK2)
            assert (together[:, row, column] == alone).all()


def test_units_that_a_machine_lacks_cost_the_earth():
    assert np.isinf(cost.amp_cycles(9, 16, 16, 1, 1, "int32", "int32", MK2))
    assert np.isinf(cost.amp_cycles(9, 16, 16, 1, 1, "float8_e5m2", "float16", MK2))
    c600 = resolve_target("c600")
    assert np.isfinite(cost.amp_cycles(9, 16, 16, 1, 1, "float8_e5m2", "float16", c600))
    for price in (cost.mac_cycles, cost.vmac_cycles, cost.slic_cycles, cost.outer_cycles):
        assert np.isinf(price(9, 1, 1, 1, 1, "float8_e4m3fn", "float16", MK2))
    assert np.isfinite(cost.mac_cycles(9, 1, 1, 1, 1, "float8_e4m3fn", "float16", c600))
    assert method_of(9, 16, 16, 1, 1, "int32", "int32") == "mac"


def test_depth_wise_convolution_does_not_pad_a_channel_to_sixteen():
    units = cost.amp_cycles(49, 1, 1, 9, 112, "float16", "float16", MK2)
    assert cost.vmac_cycles(49, 1, 1, 9, 112, "float16", "float16", MK2) < 0.2 * units
    assert method_of(49, 1, 1, 9, 112, "float16", "float16", stride=0) == "vmac"


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


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_the_exchange_of_one_tile_costs_what_an_array_says(received: int, sent: int):
    one = cost.exchange_cycles_of_one(received, sent, MK2)
    assert one == cost.exchange_cycles(received, sent, MK2)


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
