from unittest.mock import patch

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.ir import Block

from abele.backends.reference import related_points
from abele.backends.reference.structure import structure_value
from abele.dialects import nn

ROWS, WIDE, POINTS = 5, 3, 12


def update(combiner: str) -> nn.UpdateOp:
    """Updates of rows of a table."""
    shapes = [(POINTS, WIDE), (POINTS, 1), (ROWS, WIDE)]
    types = [TensorType(i32 if i == 1 else f32, shape) for i, shape in enumerate(shapes)]
    return nn.UpdateOp(*Block(arg_types=types).args, combiner, 0)


@pytest.mark.parametrize("combiner", ["sum", "max", "min", "prod", "last"])
@pytest.mark.parametrize("most", [1, 2 * WIDE, 5 * WIDE])
def test_points_that_are_merged_in_parts_give_the_same_as_all_at_once(combiner: str, most: int):
    rng = np.random.default_rng(0)
    structure = update(combiner).structure()
    updates = rng.integers(-3, 4, (POINTS, WIDE)).astype(np.float32)
    indices = rng.integers(-ROWS, ROWS, (POINTS, 1)).astype(np.int32)
    table = rng.integers(-3, 4, (ROWS, WIDE)).astype(np.float32)

    def value() -> np.ndarray:
        operands = [updates, indices, table]
        return structure_value(structure, operands, np.dtype(np.float32), (ROWS, WIDE))

    whole = value()
    with patch.object(related_points, "MOST_POINTS", most):
        np.testing.assert_array_equal(value(), whole)
    expected = table.copy()
    merge = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
    for row, index in zip(updates, indices[:, 0], strict=True):
        expected[index] = row if combiner == "last" else merge[combiner](expected[index], row)
    np.testing.assert_array_equal(whole, expected)
