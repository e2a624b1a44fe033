from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.fabrics.crossbar import Crossbar
from abele.backends.fabrics.ipu21 import Ipu21
from abele.backends.faults import MachineFault
from abele.backends.timetable.check import check_timetable
from abele.backends.timetable.lanes import Windows
from abele.backends.timetable.moves import Move
from abele.backends.timetable.timetable import Timetable, timetable

from .some_moves import blocks, halo, moves, shifted, transposed


@given(st.lists(moves(), min_size=1, max_size=3))
def test_every_timetable_that_is_derived_can_run(some: list[Move]):
    for fabric in (Crossbar(), Ipu21()):
        check_timetable(timetable(some, fabric, 4), fabric)


def a_cycle_earlier(table: Timetable) -> Timetable:
    start, begin = table.start.copy(), table.begin.copy()
    late = int(np.argmax(start))
    start[late] -= 1
    begin[table.windows.message == late] -= 1
    return replace(table, start=start, begin=begin)


def swapped(table: Timetable) -> Timetable:
    start = table.start.copy()
    first, last = np.flatnonzero(table.messages.tile == 0)[[0, -1]]
    start[[first, last]] = start[[last, first]]
    begin = start[table.windows.message] + table.windows.offset
    return replace(table, start=start, begin=begin)


def wrong_multiplexer(table: Timetable) -> Timetable:
    message = table.windows.message.copy()
    into = np.flatnonzero(table.windows.lane % 2 == 1)
    message[into[0]] = (message[into[0]] + 1) % len(table.start)
    return replace(table, windows=replace(table.windows, message=message))


def late_receiver(table: Timetable) -> Timetable:
    begin = table.begin.copy()
    begin[np.flatnonzero(table.windows.lane % 2 == 1)[-1]] += 1
    return replace(table, begin=begin)


def too_long(table: Timetable) -> Timetable:
    words = table.messages.words + 4148
    return replace(table, messages=replace(table.messages, words=words))


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (a_cycle_earlier, "meet on the lane (in|out) of tile"),
        (swapped, "meet on the lane"),
        (wrong_multiplexer, "tile \\d+ listens to"),
        (late_receiver, "the lane in of tile \\d+ is taken from cycle \\d+"),
        (too_long, "4152 words; need 1 to 4148"),
    ],
)
def test_a_planted_fault_is_named(fault: Callable[[Timetable], Timetable], why: str):
    # All lanes are busy all the time.
    move = shifted(transposed(4, 16, 4), 1, 0, 4)
    table = timetable([move], Crossbar(), 4)
    with pytest.raises(MachineFault, match=f"message \\d+ of @a -> @b, from tile \\d.*{why}"):
        check_timetable(fault(table), Crossbar())


def test_half_a_pair_is_named():
    table = timetable([halo((8,), (4,))], Crossbar(), 4)
    wide = np.ones_like(table.messages.wide)
    table = replace(table, messages=replace(table.messages, wide=wide))
    with pytest.raises(MachineFault, match="64 bits wide to tile 2, but not to tile 3"):
        check_timetable(table, Crossbar())


def paired() -> Timetable:
    """Words of tile 0 that the other tile of its pair and tiles 2 and 3 hear, two a cycle."""
    move = Move("@a -> @b", blocks((8,), (1,)), blocks((8,), (1,), 4), None, 4, width=64)
    return timetable([move], Crossbar(), 4)


def without(table: Timetable, lane: int) -> Timetable:
    """The timetable without the window of a lane."""
    kept = table.windows.lane != lane
    assert not kept.all()
    names = ("lane", "message", "offset", "length")
    windows = Windows(*(getattr(table.windows, name)[kept] for name in names))
    return replace(table, windows=windows, begin=table.begin[kept])


def on(table: Timetable, lane: int, other: int) -> Timetable:
    """The timetable with one more window, on another lane than the one it is like."""
    like = int(np.flatnonzero(table.windows.lane == lane)[0])
    names = ("lane", "message", "offset", "length")
    again = [np.append(e, e[like]) for e in (getattr(table.windows, name) for name in names)]
    again[0][-1] = other
    return replace(table, windows=Windows(*again), begin=np.append(table.begin, table.begin[like]))


def shorter(table: Timetable, lane: int) -> Timetable:
    """The timetable with a window that is a cycle too short."""
    length = table.windows.length - (table.windows.lane == lane)
    return replace(table, windows=replace(table.windows, length=length))


def later(table: Timetable, lane: int) -> Timetable:
    """The timetable with a window that begins a cycle late."""
    return replace(table, begin=table.begin + (table.windows.lane == lane))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (without(paired(), 0), "does not take the lane out of tile 0"),
        (without(paired(), 2), "does not take the lane out of tile 1"),
        (on(paired(), 0, 6), "takes the lane out of tile 3"),
        (without(paired(), 1), "64 bits wide to tile 1, but does not take the lane in of tile 0"),
        (without(paired(), 5), "tile 2 listens to another tile"),
        (shorter(paired(), 0), "takes the lane out of tile 0 for 3 cycles; its 8 words need 4"),
        (shorter(paired(), 7), "takes the lane in of tile 3 for 3 cycles; its 8 words need 4"),
        (later(paired(), 2), "the lane out of tile 1 is taken from cycle 1"),
        (later(paired(), 1), "the lane in of tile 0 is taken from cycle 1"),
        (on(paired(), 5, 5), "meet on the lane in of tile 2 in cycle 0"),
    ],
)
def test_a_fault_of_a_wide_message_is_named(wrong: Timetable, why: str):
    with pytest.raises(MachineFault, match=f"message 0 of @a -> @b, from tile 0.*{why}"):
        check_timetable(wrong, Crossbar())


def test_who_listens_without_being_a_receiver_or_too_briefly_is_named():
    move = Move("@a -> @b", blocks((8,), (1,)), blocks((8,), (1,), 3), None, 4)
    table = timetable([move], Crossbar(), 4)
    check_timetable(table, Crossbar())
    with pytest.raises(MachineFault, match="tile 3 listens to it, and is no receiver"):
        check_timetable(on(table, 5, 7), Crossbar())
    with pytest.raises(MachineFault, match="tile 2 for 7 cycles; its 8 words need 8"):
        check_timetable(shorter(table, 5), Crossbar())


def test_wide_messages_that_are_right_can_run():
    check_timetable(paired(), Crossbar())


def test_a_tile_without_a_partner_sends_a_word_a_cycle():
    # The last of five tiles.
    source = replace(blocks((8,), (1,)), first_tile=4)
    move = Move("@a -> @b", source, blocks((8,), (1,), 4), None, 4, width=64)
    table = timetable([move], Crossbar(), 5)
    assert table.messages.wide.tolist() == [0]
    assert table.on_tiles.all()
    check_timetable(table, Crossbar())
