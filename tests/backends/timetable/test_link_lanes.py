"""Messages between chips share the links, in the same order as lanes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from abele.backends.fabrics.traffic import Carried, Traffic
from abele.backends.faults import MachineFault
from abele.backends.links.links import routes_of
from abele.backends.prices.cost import exchange_cycles
from abele.backends.target import Target, resolve_target
from abele.backends.timetable.check import check_timetable
from abele.backends.timetable.lanes import Windows
from abele.backends.timetable.link_lanes import LinkLanes
from abele.backends.timetable.moves import Move
from abele.backends.timetable.timetable import Timetable, timetable_on
from abele.ir.geometry.overlap import overlap

from .event_loop import event_loop
from .some_moves import blocks, moves, shifted, transposed
from .test_timetable import copied, memory_of

PAIR = resolve_target("tiny:4,links.topology=ladder,links.chips=2,links.first_word_ns=5")
"""Two chips of two tiles, whose link is faster than a lane."""

SLOW = resolve_target("tiny:4,links.topology=ladder,links.chips=4,links.rung_gbytes=1")
"""Four chips of one tile each, with rungs slower than a lane, and rails of several lanes."""

SLOW_PAIR = resolve_target("tiny:4,links.topology=ladder,links.chips=2,links.rung_gbytes=1")
"""Two chips of two tiles, whose link is slower than a lane."""

THERE = replace(blocks((256,), (1,)), first_tile=2)
"""A tensor on the first tile of the second chip."""


def lanes(target: Target) -> LinkLanes:
    found = LinkLanes.of(target)
    assert found is not None
    return found


@pytest.mark.parametrize("target", [PAIR, SLOW], ids=["fast", "slow"])
def test_a_link_is_as_many_lanes_as_it_carries_words(target: Target):
    links = lanes(target)
    rate = routes_of(target.links).bytes_per_second
    assert links.count == np.maximum(np.ceil(rate / target.clock_hz / 4), 1).sum()
    names = {links.name_of(k) for k in range(links.count)}
    assert names == {f"the link {name}" for name in target.links.link_names()}


@given(moves())
def test_an_event_loop_with_links_leaves_the_same_bytes_and_ends_in_the_same_cycle(move: Move):
    for target in (PAIR, SLOW):
        table = timetable_on([move], target)
        memory = memory_of(4)
        ran = event_loop(table, memory, target)
        assert ran.start == table.start.tolist()
        assert [ran.end[tile] for tile in range(4)] == table.ends.tolist()
        after = copied(move, memory)
        here = memory != ran.memory
        assert (ran.memory[here] == after[here]).all()
        check_timetable(table, target.exchange, "", lanes(target))


def test_what_crosses_a_link_waits_for_what_crossed_it_before():
    # A tensor of 256 words on chip 0 goes to the other chip, from its first tile or from both.
    one = Move(
        "@a -> @b", blocks((256,), (1,)), replace(blocks((256,), (1,)), first_tile=2), None, 4
    )
    two = replace(one, source=blocks((256,), (2,)))
    rate = 1e9 / SLOW_PAIR.clock_hz
    for move, words in ((one, [256]), (two, [128, 128])):
        table = timetable_on([move], SLOW_PAIR)
        assert table.messages.words.tolist() == words
        least = lanes(SLOW_PAIR).first_word_cycles + 256 * 4 / rate
        assert least <= table.cycles <= least + len(words)


def test_words_that_several_tiles_of_a_chip_want_cross_a_link_once():
    once = Move(
        "@a -> @b", blocks((64,), (1,)), replace(blocks((64,), (1,)), first_tile=2), None, 4
    )
    both = replace(once, destination=replace(blocks((64,), (1,), 2), first_tile=2))
    assert timetable_on([once], SLOW_PAIR).cycles == timetable_on([both], SLOW_PAIR).cycles


def test_the_price_of_an_exchange_between_chips_is_the_end_of_its_timetable():
    move = shifted(transposed(4, 64, 4), 1, 0, 4)
    timed = resolve_target(
        "tiny:4,links.topology=ladder,links.chips=2,links.rung_gbytes=1,exchange.timetables=1"
    )
    traffic = Traffic.none(4)
    traffic.moves.append(move)
    traffic.carried.append(Carried(overlap(move.source, move.destination), 4))
    around = timed.exchange.phase_cycles - timed.exchange.sync_cycles
    price = exchange_cycles(traffic, timed)
    assert (price == timetable_on([move], timed).ends + around).all()
    waiting = timed.links.waiting_cycles(traffic, 4, timed.clock_hz)
    assert price.max() >= waiting.max() + around
    # Without the link, the same move is done long before.
    assert timetable_on([move], resolve_target("tiny:4")).cycles < waiting.max() / 4


def test_messages_to_other_chips_come_last_so_that_nobody_waits_for_one():
    # Whoever waits for a word of another chip hears nothing else, and its senders wait too.
    far = resolve_target("tiny:4,links.topology=ladder,links.chips=2,links.first_word_ns=500")
    table = timetable_on([transposed(4, 64, 4)], far)
    away = table.messages.tile[table.messages.message] // 2 != table.messages.receiver // 2
    assert table.messages.crosses.tolist() == away.tolist()
    assert table.messages.rank[~away].max() < table.messages.rank[away].min()
    first_word = lanes(far).first_word_cycles
    assert first_word > table.bound > 0
    assert table.cycles < 2 * first_word + table.bound


def on_a_link(table: Timetable) -> np.ndarray:
    return np.flatnonzero(~table.on_tiles)


def without_a_link(table: Timetable) -> Timetable:
    kept = np.delete(np.arange(len(table.begin)), on_a_link(table)[0])
    names = ("lane", "message", "offset", "length")
    windows = Windows(*(getattr(table.windows, name)[kept] for name in names))
    return replace(table, windows=windows, begin=table.begin[kept])


def over_another_link(table: Timetable) -> Timetable:
    lane = table.windows.lane.copy()
    lane[on_a_link(table)[0]] += 1
    return replace(table, windows=replace(table.windows, lane=lane))


def too_short(table: Timetable) -> Timetable:
    length = table.windows.length.copy()
    length[on_a_link(table)[0]] -= 1
    return replace(table, windows=replace(table.windows, length=length))


def before_it_leaves(table: Timetable) -> Timetable:
    begin = table.begin.copy()
    begin[on_a_link(table)[-1]] -= 1
    return replace(table, begin=begin)


def a_cycle_too_early(table: Timetable) -> Timetable:
    """The message that leaves a link last meets the one before it."""
    start, begin, windows = table.start.copy(), table.begin.copy(), table.windows
    links = on_a_link(table)
    late = int(windows.message[links[np.argmax(begin[links])]])
    start[late] -= 1
    begin[windows.message == late] -= 1
    return replace(table, start=start, begin=begin)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (without_a_link, "does not take the link 0 -> 1"),
        (over_another_link, "does not take the link 0 -> 1"),
        (too_short, r"takes the link 0 -> 1 for \d+ cycles; its \d+ words need \d+"),
        (before_it_leaves, r"the link . -> . is taken from cycle \d+, and its"),
        (a_cycle_too_early, r"meet on the link . -> . in cycle"),
    ],
)
def test_a_fault_on_a_link_is_named(fault: object, why: str):
    table = timetable_on([shifted(transposed(4, 64, 4), 1, 0, 4)], SLOW_PAIR)
    check_timetable(table, SLOW_PAIR.exchange, "", lanes(SLOW_PAIR))
    assert callable(fault)
    with pytest.raises(MachineFault, match=f"message \\d+ of @a -> @b, from tile \\d.*{why}"):
        check_timetable(fault(table), SLOW_PAIR.exchange, "", lanes(SLOW_PAIR))
