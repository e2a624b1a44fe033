import numpy as np
import pytest

from abele.backends.prices.block_products import block_product_cycles
from abele.backends.target import PRESETS, resolve_target

MK2 = PRESETS["mk2"]
W = MK2.workers


@pytest.mark.parametrize(
    ("side", "start", "one_pass"), [(4, 17, 13 + 32), (8, 13, 14 + 62), (16, 13, 19 + 124)]
)
def test_blocks_of_16_bit_floats_take_the_published_cycles(side, start, one_pass):
    rows, blocks = 3, 12
    found = block_product_cycles(blocks, rows, (side, side), 32 * W, "float16", MK2)
    each = 16 + side * side * 2 / 8 + W * one_pass
    assert found == 30 + start * W + rows * (W + 17) + blocks * each


def test_elements_take_the_published_cycles():
    found = block_product_cycles(60, 12, (1, 1), 64, "float16", MK2)
    assert found == W * (33 + 2 * (11 + 8 * (14 + 3 * (5 - 1))))


def test_a_large_block_costs_as_much_as_its_blocks_of_16():
    whole = block_product_cycles(1, 1, (32, 32), 192, "float16", MK2)
    parts = block_product_cycles(4, 2, (16, 16), 192, "float16", MK2)
    assert whole == parts


def test_small_blocks_are_multiplied_element_by_element_where_that_is_faster():
    few = block_product_cycles(100, 10, (4, 4), 1, "float16", MK2)
    assert few == block_product_cycles(1600, 40, (1, 1), 1, "float16", MK2)
    assert block_product_cycles(9, 3, (16, 16), 96, "float16", MK2) < block_product_cycles(
        9 * 256, 48, (1, 1), 96, "float16", MK2
    )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_cycles_never_fall_with_more_blocks_rows_or_columns(dtype):
    many = np.arange(1, 40)
    for found in (
        block_product_cycles(many, 1, (8, 8), 32, dtype, MK2),
        block_product_cycles(40, many, (8, 8), 32, dtype, MK2),
        block_product_cycles(9, 3, (8, 8), many * 6, dtype, MK2),
    ):
        assert (np.diff(found) >= 0).all()
    assert block_product_cycles(0, 0, (8, 8), 32, dtype, MK2) == 0


def test_a_machine_without_conv_units_multiplies_elements():
    mesh = resolve_target("mk2,units=mac+outer")
    found = block_product_cycles(4, 2, (16, 16), 32, "float32", mesh)
    assert found == block_product_cycles(4 * 256, 32, (1, 1), 32, "float32", mesh)
