"""Matrices of which only some blocks are not 0."""

import numpy as np


def sparse_matrix(rng, shape, block, density, dtype=np.float32):
    """Integers in some blocks, and 0 in the others."""
    grid = [n // b for n, b in zip(shape, block, strict=True)]
    held = np.repeat(np.repeat(rng.random(grid) < density, block[0], 0), block[1], 1)
    return (held * rng.integers(1, 5, shape)).astype(dtype)


def random_blocks(rng, grid, block, count, dtype):
    """A list of blocks that repeat and are not sorted; indices count from the front or the end."""
    values = rng.integers(-3, 4, (count, *block)).astype(dtype)
    return values, *(rng.integers(-n, n, count) for n in grid)


def densified(values, rows, columns, grid):
    """The matrix of a list of blocks, as floats of 64 bits."""
    (high, wide), (_, height, width) = grid, values.shape
    matrix = np.zeros((high, height, wide, width))
    np.add.at(matrix, (rows, slice(None), columns), values)
    return matrix.reshape(high * height, wide * width)
