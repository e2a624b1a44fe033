from dataclasses import replace

import pytest

from abele.backends.fabrics.crossbar import Crossbar
from abele.backends.timetable import orders
from abele.backends.timetable.moves import Move
from abele.backends.timetable.orders import NEAR, best_order, orders_of
from abele.backends.timetable.timetable import timetable

from .some_moves import blocks, halo, transposed

FABRIC = Crossbar(send_cycles=0, receive_cycles=0, place_cycles=0)


def multicast(rows: int, columns: int) -> Move:
    shape = rows, 16 * columns
    return Move(
        "@a -> @b", blocks(shape, (rows, columns)), blocks(shape, (rows, 1), columns), None, 4
    )


UNEVEN = Move("@a -> @b", blocks((30, 42), (5, 3)), blocks((30, 42), (2, 7)), None, 4)


@pytest.mark.parametrize(
    "move",
    [transposed(8, 32, 8), halo((24, 24), (6, 6)), multicast(4, 4), UNEVEN],
    ids=["all to all", "halo", "multicast", "uneven"],
)
def test_the_best_order_takes_as_long_as_it_says_and_no_longer_than_any_that_is_tried(move: Move):
    tiles = max(move.source.tiles.end, move.destination.tiles.end)
    best = best_order([move], FABRIC, tiles)
    assert timetable([replace(move, order=best.order)], FABRIC, tiles).cycles == best.cycles
    tried = [
        timetable([replace(move, order=order)], FABRIC, tiles).cycles
        for order in (None, *orders_of([move]))
    ]
    assert best.cycles <= max(min(tried), int((1 + NEAR) * best.bound))
    assert best.bound <= best.cycles


@pytest.mark.parametrize("move", [transposed(8, 32, 8), halo((24, 24), (6, 6))])
def test_a_regular_move_meets_its_bound(move: Move):
    best = best_order([move], FABRIC, 36)
    assert best.cycles == best.bound < timetable([move], FABRIC, 36).cycles


def test_an_order_of_several_sources_suits_all_of_them():
    of, to = transposed(8, 32, 8), blocks((8, 32), (1, 8))
    other = replace(of, source=blocks((8, 32), (4, 2)), destination=to)
    for order in orders_of([of, other]):
        order.check_parts((1, 8), [(8, 1), (4, 2)])


def test_wide_messages_take_as_long_as_said_though_partners_belong_to_other_parts(
    monkeypatch: pytest.MonkeyPatch,
):
    # Rows go to sets of tiles that exchange nothing, but some pairs of senders serve two sets.
    move = Move("@a -> @b", blocks((30, 16), (30, 1)), blocks((30, 16), (6, 1), 4), None, 4)
    monkeypatch.setattr(orders, "WHOLE", 0)
    best = best_order([move], FABRIC, 30, True)
    assert best.width == 64
    found = timetable([replace(move, order=best.order, width=64)], FABRIC, 30)
    assert found.cycles == best.cycles


@pytest.mark.parametrize(("senders", "receivers"), [(3, 5), (4, 4), (6, 2)])
def test_a_shift_meets_the_bound_where_all_senders_have_equal_messages_for_all_receivers(
    senders: int, receivers: int
):
    shape = 2 * senders, 3 * receivers
    source, destination = blocks(shape, (senders, 1)), blocks(shape, (1, receivers))
    # Nobody holds words that it receives.
    apart = replace(destination, first_tile=source.tiles.end)
    move = Move("@a -> @b", source, apart, None, 4)
    shift, *_ = orders_of([move])
    table = timetable([replace(move, order=shift)], FABRIC, apart.tiles.end)
    assert table.cycles == table.bound == 6 * max(senders, receivers)


def test_a_move_keeps_the_order_of_its_senders_where_none_is_shorter():
    move = multicast(4, 4)
    best = best_order([move], FABRIC, 16)
    assert best.order is None
    assert best.cycles == timetable([move], FABRIC, 16).cycles > best.bound
