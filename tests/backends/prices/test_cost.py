"""Prices against measurements on real chips, and against what no price may do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.codelets.loops import PUBLISHED
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.backends.prices import cost
from abele.backends.target import resolve_target

BOW = resolve_target("bow")
MK2 = resolve_target("mk2")

# Tile cycles of float32 additions, the cost of reading the counter included.
# tessellate-ipu@3ab241f: tests/lax/test_tile_lax_basic.py:550, tests/linalg/
# test_tile_linalg_jacobi.py:158 (scaled add); notebooks/01-tessellate-ipu-tile-api-basics.ipynb.
ADD_CYCLES = {64: 375, 512: 1043, 1024: 1860}
# Fitted to those three: what the two readings of the counter add.
BRACKET_CYCLES = 83


@pytest.mark.parametrize("elements", ADD_CYCLES)
def test_addition_price_meets_the_measured_cycles(elements):
    price = cost.elementwise_cycles(elements, 2, "add", "float32", BOW)
    assert price + BRACKET_CYCLES == pytest.approx(ADD_CYCLES[elements], rel=0.05)


def test_scaled_addition_price_is_the_published_one():
    # 32 vectors, six of them the busiest worker's.
    assert cost.scaled_add_cycles(64, "float32", MK2) == 57 + 6 * (25 + 3 * 5)
    assert cost.scaled_add_cycles(65, "float32", MK2) == 57 + 6 + 6 * (25 + 3 * 5)
    assert cost.scaled_add_cycles(64, "float16", MK2) == 57 + 6 * (25 + 3 * 2)
    assert cost.scaled_add_cycles(0, "float32", MK2) == 0
    assert cost.scaled_add_cycles(64, "int32", MK2) > 0


def test_a_stream_moves_24_bytes_per_cycle():
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


def test_exchange_costs_the_larger_direction():
    assert cost.least_exchange_cycles(0, 0, MK2) == 0
    assert cost.least_exchange_cycles(4000, 10, MK2) == cost.least_exchange_cycles(10, 4000, MK2)
    # 0.56 cycles for 2 bytes, once the farthest sender is there.
    assert cost.least_exchange_cycles(3570, 0, MK2) == pytest.approx(1000 + 190, abs=1)
    assert cost.sync_cycles(MK2) == 118


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_the_exchange_price_of_one_tile_equals_that_of_an_array(received: int, sent: int):
    one = cost.least_exchange_cycles_of_one(received, sent, MK2)
    assert one == cost.least_exchange_cycles(received, sent, MK2)


@pytest.mark.parametrize("function", sorted({*PUBLISHED, *SCALAR_FUNCTIONS}))
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


def test_functions_that_follow_add_up():
    functions = {(1, "relu", "float32"): 2, (2, "add", "float32"): 1, (2, "max", "float16"): 3}
    each = [times * cost.following_cycles([0, 7, 600], *f, MK2) for f, times in functions.items()]
    found = cost.all_following_cycles([0, 7, 600], functions, MK2)
    assert found.tolist() == np.sum(each, axis=0).tolist()
