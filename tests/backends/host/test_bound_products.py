"""Products have the bytes of NumPy's chains, in panels and blocks of any size, and those that share
an operand are one call."""

import numpy as np
import pytest

from abele.backends.codelets.calls import Array, Scratch
from abele.backends.codelets.ordered import TERMS, fused_matmul
from abele.backends.codelets.stamps import History
from abele.backends.host.bound_products import (
    FEW_UNITS,
    LEAST_PANELS,
    ROOM_BYTES,
    BoundProducts,
    Groups,
    Offsets,
    Partials,
    Products,
    block_panels,
    join_products,
)

pytest.importorskip("numba")
pytestmark = pytest.mark.each_form

SMALL = 4096
"""Bytes of a packed panel, of which many fit."""


@pytest.mark.parametrize("across", [1, 2, 7, 39, 200])
@pytest.mark.parametrize("panels", range(1, 180, 7))
def test_no_block_of_rows_is_shorter_than_its_columns_are_worth(panels: int, across: int):
    assert min(panels, LEAST_PANELS) <= block_panels(panels, across, SMALL) <= panels


def test_rows_are_cut_until_threads_have_enough_units():
    panels, across = 20 * LEAST_PANELS, 4
    blocks = -(-panels // block_panels(panels, across, SMALL))
    assert FEW_UNITS <= across * blocks < 2 * FEW_UNITS


def test_many_columns_leave_rows_whole():
    assert block_panels(100, FEW_UNITS, SMALL) == 100


def test_rows_that_fill_the_room_are_cut():
    size = ROOM_BYTES // (4 * LEAST_PANELS)
    assert block_panels(8 * LEAST_PANELS, FEW_UNITS, size) == 4 * LEAST_PANELS


MATRICES = Groups(batch=(), left=(0,), right=(2,), inner=(1,))
"""Axes of arrays over rows, terms and columns."""

SPECIAL = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42


def over_all(matrix: Array, axis: int) -> Array:
    """A matrix as an array over rows, terms and columns, which does not depend on one of them."""
    return np.lib.stride_tricks.as_strided(
        matrix,
        (*matrix.shape[:axis], 1, *matrix.shape[axis:]),
        (*matrix.strides[:axis], 0, *matrix.strides[axis:]),
    )


def arrays(x: Array, y: Array, out: Array) -> list[Array]:
    return [over_all(x, 2), over_all(y, 0), over_all(out, 1)]


def chains(x: Array, y: Array) -> Array:
    """The sums of products in the order of the machine."""
    total = np.zeros((len(x), y.shape[1]), np.float32)
    for first in range(0, x.shape[1], TERMS):
        part = np.empty_like(total)
        fused_matmul(x[:, first : first + TERMS], y[first : first + TERMS], part)
        total = part if first == 0 else total + part
    return total


@pytest.mark.parametrize("terms", [1, 37, 200])
@pytest.mark.parametrize("rows", [1, 9, 12, 31])
@pytest.mark.parametrize("is_special", [False, True])
def test_panels_of_any_width_have_the_bytes_of_chains(rows: int, terms: int, is_special: bool):
    rng = np.random.default_rng(rows)
    x, y = (rng.standard_normal(n, np.float32) for n in ((rows, terms), (terms, 69)))
    if is_special:
        for each in (x, y):
            which = rng.integers(0, 40 * len(SPECIAL), each.shape)
            for i, value in enumerate(SPECIAL):
                each[which == i] = value
    with np.errstate(all="ignore"):
        expected = chains(x, y)
    for width in range(1, 70):
        out = np.full((rows, 69), 7, np.float32)
        BoundProducts(Offsets.of(MATRICES, arrays(x, y[:, :width], out[:, :width])))(0)
        np.testing.assert_array_equal(out[:, :width], expected[:, :width], str(width))
        there = ~np.isnan(expected[:, :width])
        assert (np.signbit(out[:, :width]) == np.signbit(expected[:, :width]))[there].all(), width
        assert (out[:, width:] == 7).all(), width


BATCHES = Groups(batch=(0,), left=(1,), right=(3,), inner=(2,))
"""Axes of arrays over products, rows, terms and columns."""


@pytest.mark.parametrize("terms", [TERMS, TERMS + 1, 5 * TERMS + 3])
@pytest.mark.parametrize("rows", [5, 6, 11, 31])
def test_partials_of_many_terms_are_added_up_one_after_another(rows: int, terms: int):
    rng = np.random.default_rng(rows)
    x, y = (rng.standard_normal(n, np.float32) for n in ((3, rows, terms), (3, terms, 35)))
    first, *others = (chains(*pair) for pair in zip(x, y, strict=True))
    for each in others:
        first += each
    for width in range(1, 36):
        out = np.full((3, rows, 35), 7, np.float32)
        seen = over_all(x, 3), over_all(y[:, :, :width], 1), over_all(out[:, :, :width], 2)
        found = BoundProducts(Offsets.of(BATCHES, seen))
        found.add_up(Partials(out.ctypes.data, out.strides[0], ((1, 3),)))
        found(0)
        assert out[0, :, :width].tobytes() == first[:, :width].tobytes(), width
        assert (out[1:] == 7).all(), width
        assert (out[:, :, width:] == 7).all(), width


def products(x: Array, y: Array, out: Array, history: History) -> Products:
    """A call whose operands are variables that have been written whole."""
    view = MATRICES, arrays(x, y, out)
    for stamp in history.stamps:
        stamp.write(True)
    return Products(view, view, history.stamps, Scratch())


@pytest.mark.parametrize("is_known", [True, False])
def test_parts_of_a_product_are_one_call(is_known: bool):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 17), np.float32), rng.standard_normal((17, 49), np.float32)
    # Results are not as far apart as the rows and columns that they are of.
    out = np.zeros((35, 56), np.float32)
    history = History([np.array([i]) for i in range(2)], [True, True])
    rows = (slice(0, 7), slice(0, 7)), (slice(7, 30), slice(12, 35))
    columns = (slice(0, 42), slice(0, 42)), (slice(42, 49), slice(49, 56))
    parts = [
        products(x[row], y[:, column], out[row_result, column_result], history)
        for row, row_result in rows
        for column, column_result in columns
    ]
    calls = join_products([(part, ()) for part in parts])
    assert len(calls) == 1
    ((call, _),) = calls
    if not is_known:
        history.stamps[0].write(False)
    expected, product = np.zeros_like(out), chains(x, y)
    for row, row_result in rows:
        for column, column_result in columns:
            expected[row_result, column_result] = product[row, column]
    for _ in range(3):
        out[:] = 0
        call()
        assert out.tobytes() == expected.tobytes()


def test_products_of_other_operands_stay_apart():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((8, 17), np.float32), rng.standard_normal((17, 20), np.float32)
    out = np.zeros((8, 20), np.float32)
    history = History([np.array([i]) for i in range(2)], [True, True])
    parts = [
        products(x[:4], y[:, :10], out[:4, :10], history),
        products(x[4:], y[:, 10:], out[4:, 10:], history),
    ]
    assert len(join_products([(part, ()) for part in parts])) == 2


def test_a_call_between_two_products_keeps_them_apart():
    x, y, out = (np.zeros((8, 8), np.float32) for _ in range(3))
    history = History([np.array([i]) for i in range(2)], [True, True])
    one, two = (products(x, y[:, at], out[:, at], history) for at in (slice(0, 4), slice(4, 8)))
    assert len(join_products([(one, ()), (print, ()), (two, ())])) == 3


def test_products_of_other_variables_stay_apart():
    x, y, out = (np.zeros((8, 8), np.float32) for _ in range(3))
    histories = [History([np.array([i]) for i in range(2)], [True, True]) for _ in range(2)]
    parts = [
        products(x, y[:, at], out[:, at], history)
        for at, history in zip((slice(0, 4), slice(4, 8)), histories, strict=True)
    ]
    assert len(join_products([(part, ()) for part in parts])) == 2
