from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.fabrics.crossbar import Crossbar
from abele.backends.timetable.colours import colours, colours_of
from abele.backends.timetable.timetable import timetable
from abele.dialects.message_order import MessageOrder
from abele.ir.blob import Blob

from .some_moves import blocks, transposed


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40))
def test_no_sender_and_no_receiver_has_a_colour_twice(pairs: list[tuple[int, int]]):
    sender, receiver = np.array(pairs, np.int64).reshape(-1, 2).T
    found = colours(sender, receiver)
    for tile in (sender, receiver):
        assert len(set(zip(tile.tolist(), found.tolist(), strict=True))) == len(pairs)
    if pairs:
        most = max(np.bincount(sender).max(), np.bincount(receiver).max())
        assert found.max() < 1 << int(most - 1).bit_length()


@pytest.mark.parametrize("tiles", [4, 8, 16])
def test_colours_of_a_transpose_are_a_latin_square(tiles: int):
    free = Crossbar(send_cycles=0, receive_cycles=0, place_cycles=0)
    move = transposed(tiles, tiles, tiles)
    colour = Blob(colours_of(move.streams))
    parts = move.destination.parts, move.source.parts
    found = timetable([replace(move, order=MessageOrder((), colour, *parts))], free, tiles)
    assert found.cycles <= 1 << (tiles - 1).bit_length()


def test_a_stream_of_many_receivers_has_one_colour():
    move = replace(transposed(4, 4, 4), destination=blocks((4, 4), (1, 2), 2))
    assert len(colours_of(move.streams)) == len(move.streams.cell)
