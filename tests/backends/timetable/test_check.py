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
from abele.backends.timetable.moves import Move
from abele.backends.timetable.timetable import Timetable, timetable

from .some_moves import halo, moves, shifted, transposed


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
