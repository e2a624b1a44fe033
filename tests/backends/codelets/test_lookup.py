import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from abele.backends.codelets.calls import Scratch, run_calls
from abele.backends.codelets.cells import Cells
from abele.backends.codelets.lookup import lookup
from abele.dialects.structured import Body

ROWS, WIDTH = 6, 3


def gathered(table: np.ndarray, indices: np.ndarray, first: int) -> np.ndarray:
    """What a cell with some rows of a table finds. first: the first row of the cell."""
    rows, count = len(table), len(indices)
    shape = (1, 1, 1, count, table.shape[1], rows)
    result = np.full((count, table.shape[1]), 99, table.dtype)
    reached = first + np.arange(rows)
    cells = Cells(
        Body("identity", "pick"),
        (
            np.broadcast_to(table.T[None, None, None, None], shape),
            np.broadcast_to(indices[None, None, None, :, None, None], shape),
        ),
        as_strided(result, shape, (0, 0, 0, *result.strides, 0)),
        (5,),
        relations=(np.broadcast_to(reached, shape),),
    )
    run_calls(lookup(cells, Scratch()))
    return result


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
def test_a_cell_finds_the_rows_that_it_holds_and_zeros_for_the_others(dtype):
    table = np.arange(ROWS * WIDTH).reshape(ROWS, WIDTH).astype(dtype) - 7
    indices = np.array([3, 8, 2, -1, 5, 3, 100])
    found = gathered(table, indices, first=2)
    inside = (indices >= 2) & (indices < 8)
    expected = np.where(inside[:, None], table[np.clip(indices - 2, 0, ROWS - 1)], 0)
    np.testing.assert_array_equal(found, expected)


def test_a_lookup_keeps_the_sign_of_zero_and_the_bits_of_nan():
    table = np.array([[-0.0], [0.0], [1.0]], np.float32)
    table[2] = np.array(0x7FC12345, np.uint32).view(np.float32)
    found = gathered(table, np.array([2, 0, 1]), first=0)
    assert found.view(np.uint32).ravel().tolist() == [0x7FC12345, 0x80000000, 0]


def test_a_body_without_matches_leaves_the_identity():
    table = np.ones((ROWS, WIDTH), np.float32)
    assert not gathered(table, np.array([40, -3]), first=0).any()
