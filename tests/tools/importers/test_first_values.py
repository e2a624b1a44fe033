"""The first values of weights come from their names and shapes."""

import numpy as np

from abele.tools.importers.first_values import fans, generator_of


def test_fans_count_the_positions_of_a_window():
    assert fans((2, 3, 5, 7)) == (3 * 5 * 7, 2 * 5 * 7)
    assert fans((4, 9)) == (9, 4)
    assert fans((6,)) == (1, 6)


def test_one_name_draws_one_value():
    first, again, other = (generator_of(name).random(8) for name in ("fc", "fc", "conv"))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
