"""All methods of computing a contraction."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.prices.contractions.amp import amp_cycles, swapped_cycles
from abele.backends.prices.contractions.contraction import Contraction
from abele.backends.prices.contractions.methods import METHODS, contraction_cycles, methods_of
from abele.backends.prices.contractions.slic import slic_cycles
from abele.backends.prices.contractions.workers import mac_cycles, outer_cycles, vmac_cycles
from abele.backends.target import resolve_target

from .some_contractions import method_of

MK2 = resolve_target("mk2")

sizes = st.integers(1, 300)


def test_a_product_with_few_columns_streams_its_rows_and_one_with_few_rows_its_columns():
    half = "float16", "float16"
    swapped = swapped_cycles(Contraction.of(4, 256, 64, 1, 1, *half), MK2)
    assert swapped == amp_cycles(Contraction.of(64, 256, 4, 1, 1, *half), MK2)
    assert method_of(512, 256, 16, 1, 1, *half) == "amp"
    assert method_of(16, 256, 512, 1, 1, *half) == "swapped"
    assert np.isinf(swapped_cycles(Contraction.of(4, 256, 64, 9, 1, *half), MK2))


@given(sizes, sizes, sizes, st.integers(1, 25), st.integers(1, 40))
def test_contractions_are_priced_by_every_method_in_order(field, inputs, outputs, kernel, groups):
    shape = (field, inputs, outputs, kernel, groups)
    for types in [("float16", "float16"), ("float32", "float32"), ("int32", "int32")]:
        contraction = Contraction.of(*shape, *types)
        prices = contraction_cycles(contraction, MK2)
        assert len(prices) == len(METHODS)
        for name, price in zip(METHODS, prices, strict=True):
            assert price == METHODS[name].price(contraction, MK2)
            assert price == contraction_cycles(contraction, MK2, methods=[name])
        assert np.isfinite(prices).any()


def test_a_target_has_the_methods_of_its_units():
    assert list(methods_of(MK2)) == ["amp", "slic", "mac", "vmac", "outer", "swapped"]
    some = resolve_target("mk2,units=outer+amp")
    assert list(methods_of(some)) == ["amp", "outer", "swapped"]
    sizes = Contraction.of(9, 16, 16, 1, 1, "float16", "float16")
    assert len(contraction_cycles(sizes, some)) == 3


def test_slic_is_for_16_bit_floats_and_short_strides():
    sizes = 60, 4, 4, 9, 1
    assert np.isinf(slic_cycles(Contraction.of(*sizes, "float32", "float32"), MK2))
    assert np.isinf(slic_cycles(Contraction.of(*sizes, "int8", "int32"), MK2))
    for stride in (0, 3):
        assert np.isinf(
            slic_cycles(Contraction.of(*sizes, "float16", "float16", stride=stride), MK2)
        )
    assert method_of(784, 4, 4, 9, 1, "float16", "float16", field_rows=28) == "slic"
    assert method_of(784, 64, 64, 9, 1, "float16", "float16", field_rows=28) == "amp"


def test_an_empty_sum_is_cheaper_than_one_with_a_term():
    half = "float16", "float16"
    none, one = (Contraction.of(60, 4, 4, kernel, 1, *half) for kernel in (0, 1))
    for price in (amp_cycles, slic_cycles):
        assert 0 < int(price(none, MK2)) < int(price(one, MK2))


def test_an_array_of_candidates_has_the_prices_of_each_one():
    field = np.array([1, 5, 49, 3025])
    inputs = np.array([[3], [64]])
    rest = 96, 9, 1, "float16", "float32"
    together = contraction_cycles(Contraction.of(field, inputs, *rest), MK2)
    assert together.shape == (len(METHODS), 2, 4)
    for row, channels in enumerate((3, 64)):
        for column, elements in enumerate(field):
            alone = contraction_cycles(Contraction.of(elements, channels, *rest), MK2)
            assert (together[:, row, column] == alone).all()


def test_units_that_a_machine_lacks_have_an_infinite_price():
    assert np.isinf(amp_cycles(Contraction.of(9, 16, 16, 1, 1, "int32", "int32"), MK2))
    assert np.isinf(amp_cycles(Contraction.of(9, 16, 16, 1, 1, "float8_e5m2", "float16"), MK2))
    c600 = resolve_target("c600")
    assert np.isfinite(amp_cycles(Contraction.of(9, 16, 16, 1, 1, "float8_e5m2", "float16"), c600))
    narrow = Contraction.of(9, 1, 1, 1, 1, "float8_e4m3fn", "float16")
    for price in (mac_cycles, vmac_cycles, slic_cycles, outer_cycles):
        assert np.isinf(price(narrow, MK2))
    assert np.isfinite(mac_cycles(narrow, c600))
    assert method_of(9, 16, 16, 1, 1, "int32", "int32") == "mac"
