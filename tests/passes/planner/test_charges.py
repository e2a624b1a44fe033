"""What the parts of a plan are charged."""

import numpy as np
import pytest

from abele.backends import cost
from abele.backends.contractions.contraction import Contraction
from abele.backends.contractions.methods import contraction_cycles
from abele.backends.target import resolve_target
from abele.passes.planner.charges import T10, divided, target_charges

from . import comparator_in_loops as loops


def test_quotients_are_rounded_up_exactly():
    n = np.arange(1, 2000)
    assert (divided(n[:, None], n) == -(-n[:, None] // n)).all()
    assert divided(2**52 - 1, 2) == 2**51


def test_the_comparators_fits_are_those_of_plain_loops():
    sizes = [1, 2, 3, 6, 7, 15, 16, 17, 100, 683]
    cells = np.array([(m, k, n) for m in sizes for k in sizes for n in sizes]).T
    expected = [loops.multiply_cycles(*cell) for cell in cells.T.tolist()]
    assert T10.multiply_cycles(*cells).tolist() == expected
    outputs = np.array([0.5, 1, 2, 2.5, 3, 4, 5, 8, 9, 12, 16.5, 24, 25, 48, 49, 480, 16432, 16433])
    for copies in (2, 3, 10, 40):
        expected = [loops.reduce_cycles(n, copies) for n in outputs.tolist()]
        assert T10.reduce_cycles(outputs, copies).tolist() == expected
    assert T10.pair_cycles(outputs).tolist() == [loops.add_two_cycles(n) for n in outputs.tolist()]


def test_a_product_in_parts_costs_the_comparator_at_least_the_whole():
    cells = np.random.default_rng(0).integers(1, 400, (3, 4000))
    parts = np.random.default_rng(1).integers(1, 8, (3, 4000))
    in_parts = parts.prod(axis=0) * T10.multiply_cycles(*divided(cells, parts))
    assert (in_parts >= T10.multiply_cycles(*cells)).all()


@pytest.mark.parametrize("name", ["mk2", "tiny:8"])
def test_a_targets_charges_are_its_prices(name: str):
    target = resolve_target(name)
    charges = target_charges(target, np.dtype(np.float16))
    assert (charges.tiles, charges.bytes_per_tile) == (target.tiles, target.usable_bytes_per_tile)
    assert (charges.element_bytes, charges.partial_bytes) == (2, 4)
    product = Contraction.of(40, 64, 32, 1, 1, "float16", "float32")
    methods = contraction_cycles(product, target)
    assert charges.multiply_cycles(40, 64, 32) == methods.min()
    assert charges.receive_cycles(1000) == cost.exchange_cycles(1000, 0, target)
    assert charges.reduce_cycles(99.5, 7) == cost.reduce_cycles(100, 7, "float32", target)
