"""Prices of contractions on the workers, computed by hand from the published formulas."""

import numpy as np

from abele.backends.prices.contractions.amp import amp_cycles
from abele.backends.prices.contractions.contraction import Contraction
from abele.backends.prices.contractions.workers import mac_cycles, outer_cycles, vmac_cycles
from abele.backends.target import resolve_target

from .some_contractions import method_of

MK2 = resolve_target("mk2")


def test_horizontal_mac_price_is_the_published_one():
    # Two field elements a worker, three outputs of 8 inputs; groups of 23 + 15 + 10.
    price = mac_cycles(Contraction.of(12, 8, 3, 1, 2, "float32", "float32"), MK2)
    assert price == 58 - 10 + 2 * (48 + 6 * (16 + 14 + 2 * (7 + 3 * (7 + 4))))
    price = mac_cycles(Contraction.of(12, 8, 3, 1, 2, "float16", "float16"), MK2)
    assert price == 65 - 10 + 2 * (48 + 6 * (16 + 14 + 2 * (7 + 2 * (11 + 2 * 2))))
    price = mac_cycles(Contraction.of(12, 8, 3, 9, 2, "float32", "float32"), MK2)
    assert price == 58 + 2 * (48 + 6 * (16 + 9 * (29 + 2 * (7 + 3 * (7 + 4)))))


def test_vertical_mac_price_is_the_published_one():
    # Two blocks of 8 groups, two elements a worker of 7 + 15 + 3 + 3 * 8, zeroed four at a time,
    # merged in 7 + 5 an element.
    price = vmac_cycles(Contraction.of(12, 1, 1, 9, 16, "float16", "float16"), MK2)
    assert price == 100 + 2 * (56 + 4 + 24 + 6 * (13 + 2 * 49) + 10 + 2 * 12)
    # Four blocks of 4, zeroed two at a time, merged in 9 + 2 * 5.
    price = vmac_cycles(Contraction.of(12, 1, 1, 9, 16, "float16", "float32"), MK2)
    assert price == 100 + 4 * (56 + 4 + 24 + 6 * (19 + 2 * 31) + 9 + 2 * 19)
    assert np.isinf(vmac_cycles(Contraction.of(12, 2, 1, 9, 16, "float16", "float16"), MK2))


def test_outer_product_price_is_the_published_one():
    def price(out: int, dtype: str):
        return outer_cycles(Contraction.of(12, 1, out, 1, 2, dtype, dtype), MK2)

    assert price(24, "float32") == 6 * (25 + 2 * (11 + 2 * (6 + (24 - 6) // 2)))
    assert price(5, "float32") == 6 * (25 + 2 * (11 + 2 * (10 + 2 * 5)))
    assert price(24, "float16") == 6 * (25 + 2 * (10 + 2 * (6 + (24 - 12) // 4)))
    assert price(6, "float16") == 6 * (25 + 2 * (10 + 2 * (10 + 15)))
    assert np.isinf(outer_cycles(Contraction.of(12, 2, 24, 1, 2, "float32", "float32"), MK2))
    assert np.isinf(price(24, "int32"))
    assert method_of(64, 1, 64, 1, 1, "float32", "float32") == "outer"


def test_depth_wise_convolution_does_not_pad_a_channel_to_sixteen():
    units = amp_cycles(Contraction.of(49, 1, 1, 9, 112, "float16", "float16"), MK2)
    assert vmac_cycles(Contraction.of(49, 1, 1, 9, 112, "float16", "float16"), MK2) < 0.2 * units
    assert method_of(49, 1, 1, 9, 112, "float16", "float16", stride=0) == "vmac"
