"""Rows of products are cut into blocks for threads, which are worth packing columns for."""

import pytest

from abele.backends.host.bound_products import FEW_UNITS, LEAST_PANELS, ROOM_BYTES, block_panels

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
