"""T10's charges are those of plain loops."""

import numpy as np

from abele.tools.workshop.comparator.account import divided
from abele.tools.workshop.comparator.t10 import T10

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
