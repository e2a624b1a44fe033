"""What the parts of a plan are charged."""

import numpy as np
import pytest

from abele.backends.prices import cost
from abele.backends.prices.contractions.contraction import Contraction
from abele.backends.prices.contractions.methods import contraction_cycles
from abele.backends.target import resolve_target
from abele.passes.planner.charges import target_charges


@pytest.mark.parametrize("name", ["mk2", "tiny:8"])
def test_a_targets_charges_are_its_prices(name: str):
    target = resolve_target(name)
    charges = target_charges(target, np.dtype(np.float16))
    assert (charges.tiles, charges.bytes_per_tile) == (target.tiles, target.usable_bytes_per_tile)
    assert (charges.element_bytes, charges.partial_bytes) == (2, 4)
    product = Contraction.of(40, 64, 32, 1, 1, "float16", "float32")
    methods = contraction_cycles(product, target)
    assert charges.multiply_cycles(40, 64, 32) == methods.min()
    assert charges.receive_cycles(1000) == cost.least_exchange_cycles(1000, 0, target)
    assert charges.reduce_cycles(99.5, 7) == cost.reduce_cycles(100, 7, "float32", target)
