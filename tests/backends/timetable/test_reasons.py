"""Why an exchange ends when it does, against a walk from message to message."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.fabrics.crossbar import Crossbar
from abele.backends.fabrics.fabric import Fabric
from abele.backends.fabrics.ipu21 import Ipu21
from abele.backends.timetable.moves import Move
from abele.backends.timetable.reasons import reason_of
from abele.backends.timetable.timetable import Timetable, timetable

from .some_moves import blocks, moves, shifted, transposed

FREE = Crossbar(send_cycles=0, receive_cycles=0, place_cycles=0)


def chains(table: Timetable) -> set[tuple[int, int, int]]:
    """All (lane, messages, lanes) that a walk back from a last message may find."""
    windows = table.windows
    rows = list(
        zip(
            windows.lane.tolist(),
            windows.message.tolist(),
            table.begin.tolist(),
            (table.begin + windows.length).tolist(),
            strict=True,
        )
    )

    @cache
    def behind(message: int, lane: int) -> frozenset[tuple[int, int]]:
        """Messages and lanes of the chains that end with a message, counting this lane."""
        found: set[tuple[int, int]] = set()
        for here, mine, begin, _ in rows:
            if mine != message:
                continue
            for at, other, _, end in rows:
                if at == here and end == begin and other != mine:
                    more = int(here != lane)
                    found |= {(m + 1, n + more) for m, n in behind(other, here)}
        return frozenset(found) or frozenset({(1, 1)})

    return {
        (lane, *each)
        for lane, message, _, end in rows
        if end == table.cycles
        for each in behind(message, lane)
    }


@given(st.lists(moves(), min_size=1, max_size=3), st.sampled_from([FREE, Crossbar(), Ipu21()]))
def test_the_last_message_ends_a_chain_of_messages_without_a_gap(some: list[Move], fabric: Fabric):
    table = timetable(some, fabric, 4)
    found = reason_of(table)
    if not table.cycles:
        assert found is None
    elif found is not None and found.tile >= 0:
        assert table.control[found.tile] == table.cycles
        end = (table.begin + table.windows.length).max(initial=0)
        assert end < table.cycles
    else:
        assert found is not None
        assert (found.lane, found.messages, found.lanes) in chains(table)


def test_a_perfect_order_ends_with_a_busy_lane():
    found = reason_of(timetable([shifted(transposed(16, 16, 4), 1, 0, 4)], FREE, 4))
    assert found is not None
    assert found.messages == 3
    assert found.lanes == 1


def test_senders_that_begin_with_the_same_receiver_wait_for_each_other():
    found = reason_of(timetable([transposed(16, 16, 8)], FREE, 8))
    assert found is not None
    assert found.lanes > 1


@pytest.mark.parametrize("tiles", [1, 2])
def test_the_supervisor_is_named_where_it_takes_longer_than_the_words(tiles: int):
    slow = Crossbar(send_cycles=0, receive_cycles=0, place_cycles=1000)
    move = Move("@a -> @b", blocks((8,), (1,)), blocks((8,), (tiles,)), None, 4)
    found = reason_of(timetable([move], slow, 2))
    assert (found is None) == (tiles == 1)
    if found is not None:
        assert (found.lane, found.tile) == (-1, 1)
