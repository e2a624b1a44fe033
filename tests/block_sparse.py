"""Matrices of which only some blocks are not 0."""

import numpy as np


def sparse_matrix(rng, shape, block, density, dtype=np.float32):
    """Integers in some blocks, and 0 in the others."""
    grid = [n // b for n, b in zip(shape, block, strict=True)]
    held = np.repeat(np.repeat(rng.random(grid) < density, block[0], 0), block[1], 1)
    return (held * rng.integers(1, 5, shape)).astype(dtype)
