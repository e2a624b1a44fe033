"""Determinants by elimination."""

import numpy as np
import pytest

from abele.ir.errors import InputError

from .one_node import computed, one_node


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_determinants_of_a_batch(n: int):
    x = np.random.default_rng(n).standard_normal((2, 3, n, n)).astype(np.float32)
    (found,) = computed(*one_node("Det", x))
    np.testing.assert_allclose(found, np.linalg.det(x.astype(np.float64)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "rows",
    [[[0, 1], [1, 0]], [[0, 0, 2], [3, 0, 0], [0, 4, 0]], [[1, 2], [2, 4]], [[0, 0], [0, 0]]],
)
def test_rows_change_places_and_a_singular_matrix_has_0(rows):
    (found,) = computed(*one_node("Det", np.array(rows, np.float32)))
    np.testing.assert_allclose(found, np.linalg.det(np.array(rows, np.float64)), atol=1e-12)


def test_a_matrix_that_is_not_square_is_refused():
    with pytest.raises(InputError, match=r"matrix of shape \[2, 3\]; need two equal last axes"):
        computed(*one_node("Det", np.zeros((2, 3), np.float32)))
