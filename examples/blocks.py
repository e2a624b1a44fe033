# blocks.py
"""Cholesky factors of many small matrices: a cell is one matrix."""

import numpy as np

from abele.tools.extensions import codelet, ulps


def positive_definite(random, shape):
    """Matrices that have factors."""
    a = random.normal(size=shape)
    return a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])


@codelet(
    space="b, i whole, j = i whole",
    reads={"a": "b, i, j"},
    writes={"factor": "b, i, j"},
    # i^3 / 6 products that are subtracted, two quotients for each element, a root for each column.
    cycles=lambda n, i: 40 + n * (2 * i**3 / 6 + 10 * i**2 / 2 + 40 * i),
    bound=ulps(64, of="largest"),
    samples={"a": positive_definite},
)
def cholesky(a):
    """The lower triangular matrix L with L L' = a. A column without a root is NaN."""
    rest, factor = a.copy(), np.zeros_like(a)
    for j in range(a.shape[1]):
        column = rest[:, j:, j]
        pivot = column[:, :1].copy()
        factor[:, j:, j] = column / np.sqrt(pivot)
        rest[:, j:, j:] -= column[:, :, None] * (column / pivot)[:, None, :]
    return factor
