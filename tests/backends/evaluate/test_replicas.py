"""Tests for backends/evaluate/replicas.py."""

import numpy as np
import pytest

from abele.backends.codelets.numerics import Placed
from abele.backends.evaluate.blocks import Blocks, write_blocks
from abele.backends.evaluate.replicas import replicas_differ
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.space import AccessMap, AxisMap


def repeated(chips: int, copies: int) -> Layout:
    """Six elements in two parts, each of which several tiles of each chip hold."""
    grid = (Cut(copies, copies, chips=chips), Cut(6, 2))
    apart = 2 * copies // chips + 3 if chips > 1 else 0
    return Layout(grid, AccessMap((AxisMap(6, ((1, 1),)),)), 1, apart)


@pytest.mark.parametrize(("chips", "copies"), [(1, 3), (2, 2), (2, 6), (4, 4)])
def test_one_different_bit_of_any_replica_shows(chips: int, copies: int):
    layout = repeated(chips, copies)
    memory = np.zeros((layout.tiles.end + 1, 32), np.uint8)
    blocks = Blocks(Placed(memory, 8, np.dtype(np.float32)), layout)
    write_blocks(np.arange(6, dtype=np.float32), blocks)
    assert not replicas_differ(blocks)
    for tile in layout.tiles.of(np.arange(layout.cells)):
        for byte in (8, 19):
            memory[tile, byte] ^= 1
            assert replicas_differ(blocks)
            memory[tile, byte] ^= 1
    # What lies beside the blocks does not count.
    memory[:, :8] = 5
    memory[:, 20:] = np.arange(len(memory))[:, None]
    assert not replicas_differ(blocks)


def test_values_that_are_no_numbers_may_be_equal():
    layout = repeated(2, 2)
    memory = np.zeros((layout.tiles.end, 32), np.uint8)
    blocks = Blocks(Placed(memory, 0, np.dtype(np.float32)), layout)
    write_blocks(np.full(6, np.nan, np.float32), blocks)
    assert not replicas_differ(blocks)
