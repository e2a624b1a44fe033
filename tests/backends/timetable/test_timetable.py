from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.codelets.numerics import Placed
from abele.backends.evaluate.blocks import Blocks, copy_blocks
from abele.backends.fabrics.crossbar import Crossbar
from abele.backends.fabrics.ipu21 import Ipu21
from abele.backends.timetable.lanes import Windows, earliest
from abele.backends.timetable.moves import Move
from abele.backends.timetable.timetable import timetable
from abele.backends.timetable.words import carried
from abele.dialects.message_order import MessageOrder
from abele.ir.blob import Blob
from abele.ir.geometry.part_keys import applied, difference, part
from abele.ir.support.errors import InputError

from .event_loop import event_loop
from .some_moves import blocks, halo, moves, ordered, shifted, transposed

FREE = Crossbar(send_cycles=0, receive_cycles=0, place_cycles=0)
"""A fabric on which starting a send or a receive costs nothing."""


def memory_of(tiles: int) -> np.ndarray:
    """Different bytes at all addresses."""
    return np.random.default_rng(0).integers(1, 256, (tiles, 1024), np.uint8)


def copied(move: Move, memory: np.ndarray) -> np.ndarray:
    """The memory after the machine's copy."""
    memory = memory.copy()
    dtype = np.dtype(f"u{move.itemsize}")
    of, to = (
        Blocks(Placed(memory, address, dtype), layout)
        for address, layout in zip(move.address, (move.source, move.destination), strict=True)
    )
    copy_blocks([of], None, to)
    return memory


@given(moves())
def test_messages_bring_each_byte_of_a_copy_that_comes_from_another_tile_once(move: Move):
    before = memory_of(4)
    after = copied(move, before)
    found = carried(timetable([move], FREE, 4))
    assert len(Counter(zip(found.receiver.tolist(), found.destination.tolist(), strict=True))) == (
        len(found.receiver)
    )
    table = timetable([move], FREE, 4)
    sender = table.messages.tile[found.message]
    assert (sender != found.receiver).all()
    for k in range(min(move.itemsize, 4)):
        sent = before[sender, found.source + k]
        assert (after[found.receiver, found.destination + k] == sent).all()
    last = np.zeros(len(table.messages.tile), np.int64)
    np.maximum.at(last, found.message, found.place + found.size)
    assert (-(-last // 4) == table.messages.words).all()


@given(moves())
def test_an_event_loop_leaves_the_same_bytes_and_ends_in_the_same_cycle(move: Move):
    table = timetable([move], Crossbar(), 4)
    memory = memory_of(4)
    ran = event_loop(table, memory)
    assert ran.start == table.start.tolist()
    assert [ran.end[tile] for tile in range(4)] == table.ends.tolist()
    # What a tile copies within itself is no message.
    after, found = copied(move, memory), carried(table)
    for k in range(min(move.itemsize, 4)):
        where = found.receiver, found.destination + k
        memory[where] = after[where]
    assert (ran.memory == memory).all()


@given(st.lists(moves(), min_size=1, max_size=3))
def test_windows_of_a_lane_never_meet_and_come_in_order(some: list[Move]):
    table = timetable(some, Ipu21(), 4)
    windows, rank = table.windows, table.messages.rank
    assert (table.begin == table.start[windows.message] + windows.offset).all()
    assert (table.begin >= 0).all()
    for lane in np.unique(windows.lane):
        here = np.flatnonzero(windows.lane == lane)
        here = here[np.argsort(rank[windows.message[here]])]
        assert (table.begin[here][1:] >= (table.begin + windows.length)[here][:-1]).all()


def longest_paths(windows: Windows, rank: np.ndarray) -> list[int]:
    """The earliest starts, message by message."""
    free: dict[int, int] = {}
    start = [0] * len(rank)
    for message in np.argsort(rank):
        own = np.flatnonzero(windows.message == message)
        start[message] = max(
            free.get(int(windows.lane[k]), 0) - int(windows.offset[k]) for k in own
        )
        for k in own:
            free[int(windows.lane[k])] = (
                start[message] + int(windows.offset[k]) + int(windows.length[k])
            )
    return start


@given(st.lists(moves(), min_size=1, max_size=3))
def test_starts_are_the_longest_paths_through_the_lanes(some: list[Move]):
    table = timetable(some, Ipu21(), 4)
    least = longest_paths(table.windows, table.messages.rank)
    # The sender's own lane begins in cycle 0 or later, whatever its receivers' clocks say.
    assert table.start.tolist() == least


def test_messages_may_wait_for_each_other_longer_than_all_of_them_take():
    # Each message is heard by the next sender far later than it leaves, and by nobody else then.
    count, far = 6, 1000
    number = np.arange(count)
    windows = Windows(
        # The lane of the last message comes before those of the first one.
        (np.concatenate([2 * number, 2 * number + 1, 2 * number[1:] - 1]) + 1) % (2 * count),
        np.concatenate([number, number, number[1:]]),
        np.concatenate([0 * number, far + 0 * number, 0 * number[1:]]),
        np.ones(3 * count - 1, np.int64),
    )
    found = earliest(windows, number)
    assert found is not None
    assert found.start.tolist() == longest_paths(windows, number)
    assert found.start[-1] == (count - 1) * (far + 1)


@given(moves(), st.data())
def test_a_longer_message_ends_no_exchange_earlier(move: Move, data: st.DataObject):
    table = timetable([move], Crossbar(), 4)
    windows = table.windows
    if not len(windows.length):
        return
    longer = windows.length.copy()
    longer[data.draw(st.integers(0, len(longer) - 1))] += data.draw(st.integers(1, 9))
    later = earliest(replace(windows, length=longer), table.messages.rank)
    assert (later.start >= table.start).all()


@given(moves())
def test_twice_the_words_take_twice_as_long(move: Move):
    table = timetable([move], FREE, 4)
    twice = replace(table.windows, length=2 * table.windows.length)
    assert (earliest(twice, table.messages.rank).start == 2 * table.start).all()


@given(moves())
def test_an_exchange_takes_at_least_its_bound_and_at_most_the_sum_of_all_messages(move: Move):
    table = timetable([move], Crossbar(), 4)
    assert (table.ends >= table.bounds).all()
    longest = np.zeros(len(table.messages.tile), np.int64)
    np.maximum.at(longest, table.windows.message, table.windows.length)
    assert table.cycles <= max(int(longest.sum()), int(table.control.max()))


@pytest.mark.parametrize("tiles", [2, 3, 8, 13])
def test_a_latin_square_meets_the_bound(tiles: int):
    move = transposed(tiles, 4 * tiles, tiles)
    assert timetable([shifted(move, 1, 0, tiles)], FREE, tiles).cycles == 4 * (tiles - 1)
    if tiles > 2:
        assert timetable([move], FREE, tiles).cycles > 4 * (tiles - 1)


def test_a_halo_by_direction_meets_the_bound():
    move = halo((24, 24), (6, 6))
    signs = [applied("sign", difference(part("d", i), part("s", i))) for i in range(2)]
    best = timetable([ordered(move, *signs)], FREE, 36)
    assert best.cycles == best.bound
    assert timetable([move], FREE, 36).cycles > 4 * best.bound


def test_messages_of_52_words_follow_each_other_without_a_gap():
    move = Move("@a -> @b", blocks((208,), (4,)), blocks((208,), (1,)), None, 4)
    # The receiver is the tile that holds the first quarter.
    table = timetable([move], Crossbar(), 4)
    assert table.start.tolist() == [0, 52, 104]


def test_a_word_of_this_chip_takes_78_cycles_less_to_112_more_than_the_clocks_say():
    tiles = np.arange(1472)
    found = Ipu21().latency(np.repeat(tiles, 1472), np.tile(tiles, 1472))
    assert (found.min(), found.max()) == (-78, 112)
    assert round(float(found.mean()), 1) == -9.9
    assert not Crossbar().latency(tiles, tiles).any()


def test_pairs_that_want_the_same_words_receive_two_a_cycle():
    move = Move("@a -> @b", blocks((64,), (1,)), blocks((64,), (1,), 4), None, 4)
    sent = replace(move, destination=replace(move.destination, first_tile=2))
    assert timetable([sent], FREE, 8).cycles == 64
    assert timetable([replace(sent, width=64)], FREE, 8).cycles == 32
    half = replace(sent, destination=blocks((64,), (1,), 3), width=64)
    assert timetable([replace(half, address=(0, 512))], FREE, 8).cycles == 64


def test_colours_order_messages_and_there_is_one_for_each():
    move = transposed(3, 3, 3)
    best = timetable([shifted(move, 1, 0, 3)], FREE, 3)
    colours = Blob(np.array([0, 1, 1, 0, 0, 1]))
    by_colour = replace(move, order=MessageOrder((), colours, (1, 3), (3, 1)))
    table = timetable([by_colour], FREE, 3)
    assert table.cycles == best.cycles == 2
    few = replace(move, order=MessageOrder((), Blob(np.zeros(5, np.int64)), (1, 3), (3, 1)))
    with pytest.raises(InputError, match="@a -> @b: 5 colours of 6 messages; need one each"):
        timetable([few], FREE, 3)


def test_a_timetable_too_large_for_memory_is_refused_by_name():
    small = replace(transposed(4, 8, 4), name="@small -> @b")
    tiles = 3000
    large = replace(transposed(tiles, tiles, tiles), name="@large -> @b")
    with pytest.raises(InputError, match="@large -> @b: a timetable of 9,000,000 deliveries"):
        timetable([small, large], FREE, tiles)
