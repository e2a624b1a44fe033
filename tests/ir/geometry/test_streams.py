from collections import defaultdict
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout, canonical
from abele.ir.geometry.overlap import overlap
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map
from abele.ir.geometry.streams import count_deliveries, streams_of

from .strategies import cuttings, shapes
from .test_overlap import elements


def by_brute_force(
    source: Layout, destination: Layout, names: np.ndarray
) -> dict[tuple[int, tuple[int, ...]], int]:
    """How many elements each source cell sends to each set of destination cells.

    An element that a block holds twice is sent twice. names[e] is the source's element behind e.
    """
    owner: dict[int, int] = {}
    for cell in range(source.cells):
        for element in elements(source, cell):
            owner.setdefault(element, cell)
    wanted: dict[tuple[int, int], list[int]] = defaultdict(list)
    for cell in range(destination.cells):
        tile = destination.tiles.of(cell)
        held: set[int] = set()
        if tile in source.tiles:
            held = set(elements(source, source.tiles.cell_on(tile)))
        for element in elements(destination, cell):
            behind = int(names[element])
            if behind >= 0 and behind not in held:
                wanted[owner[behind], cell].append(element)
    streams: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for (sender, cell), found in wanted.items():
        streams[sender, tuple(sorted(found))].append(cell)
    return {(sender, tuple(c)): len(found) for (sender, found), c in streams.items()}


def check(source: Layout, destination: Layout, names: np.ndarray, move: Space | None = None):
    found = streams_of(source, destination, move)
    each = np.split(found.receiver, np.searchsorted(found.stream, np.arange(1, len(found.cell))))
    listed = {
        (cell, tuple(cells)): count
        for cell, cells, count in zip(
            found.cell.tolist(),
            (part.tolist() for part in each),
            found.elements.tolist(),
            strict=False,
        )
    }
    assert listed == by_brute_force(source, destination, names)
    assert len(listed) == len(found.cell)
    shared = overlap(source, destination, move)
    received = np.bincount(found.receiver, found.elements[found.stream], destination.cells)
    assert received.tolist() == shared.received.tolist()
    assert (1 <= found.fragments).all()
    assert (found.fragments <= found.elements).all()
    assert found.receiver.size == 0 or count_deliveries(shared) > 0


@given(shapes, st.data())
def test_a_stream_is_what_some_cells_want_of_one(shape: tuple[int, ...], data: st.DataObject):
    source = canonical(data.draw(cuttings(shape, windows=False)).layout())
    destination = canonical(data.draw(cuttings(shape)).layout())
    check(source, destination, np.arange(prod(shape)))


@given(st.sampled_from([((4, 6, 5), (12, 10)), ((24,), (2, 3, 4)), ((6, 1, 4), (3, 8))]), st.data())
def test_streams_follow_a_reshape(pair: tuple[tuple[int, ...], ...], data: st.DataObject):
    a, b = pair
    source = canonical(data.draw(cuttings(a, windows=False)).layout())
    destination = canonical(data.draw(cuttings(b, windows=False)).layout())
    check(source, destination, np.arange(prod(a)))


@given(st.data())
def test_streams_follow_a_transpose(data: st.DataObject):
    space = Space(
        (Dim("a", 4), Dim("b", 6)), (identity_map((0, 1), (4, 6)),), (identity_map((1, 0), (6, 4)),)
    )
    source = canonical(data.draw(cuttings((4, 6), windows=False)).layout())
    destination = canonical(data.draw(cuttings((6, 4))).layout())
    check(source, destination, np.arange(24).reshape(4, 6).T.ravel(), space)


def test_an_element_that_a_block_holds_twice_is_sent_twice():
    source = Layout((Cut(4, 4),), identity_map((0,), (4,)))
    twice = AccessMap((AxisMap(4, ((0, 1),), divisor=2),))
    check(source, Layout((Cut(8, 2),), twice, first_tile=4), np.arange(4))
    check(source, Layout((Cut(8, 2),), twice, first_tile=1), np.arange(4))


def test_one_word_for_many_receivers_is_one_stream():
    source = Layout((Cut(6, 3),), identity_map((0,), (6,)))
    everywhere = Layout((Cut(6, 1), Cut(5, 5)), identity_map((0,), (6,)), first_tile=3)
    found = streams_of(source, everywhere)
    assert found.cell.tolist() == [0, 1, 2]
    assert found.elements.tolist() == [2, 2, 2]
    assert found.receiver.tolist() == 3 * [0, 1, 2, 3, 4]


@given(shapes, st.data())
def test_no_two_streams_of_a_sender_or_of_a_receiver_have_the_same_places(
    shape: tuple[int, ...], data: st.DataObject
):
    source = canonical(data.draw(cuttings(shape, windows=False)).layout())
    destination = canonical(data.draw(cuttings(shape)).layout())
    found = streams_of(source, destination)
    groups = range(len(found.groups))
    sent, received = (
        np.array([found.places(side, k) for k in groups], np.int64).reshape(
            len(groups), len(found.cell)
        )
        for side in ("sent", "received")
    )
    if not len(found.cell):
        return
    for side, places in (("sent", sent), ("received", received)):
        assert (places.max(axis=1) < found.most_places(side)).all()
    assert np.unique([found.cell, *sent], axis=1).shape[1] == len(found.cell)
    first = found.first_receiver
    assert np.unique([first, *received], axis=1).shape[1] == len(first)


def test_places_count_the_receivers_before_and_the_senders_before():
    source = Layout((Cut(6, 2),), identity_map((0,), (6,)))
    destination = Layout((Cut(6, 3),), identity_map((0,), (6,)), first_tile=2)
    found = streams_of(source, destination)
    assert found.cell.tolist() == [0, 0, 1, 1]
    assert found.receiver.tolist() == [0, 1, 1, 2]
    assert found.places("sent", 0).tolist() == [0, 1, 0, 1]
    assert found.places("received", 0).tolist() == [0, 0, 1, 0]
    assert found.most_places("sent") == found.most_places("received") == (2,)


@given(shapes, st.data())
def test_the_busiest_streams_are_all_of_some_cells_that_share_nothing_with_others(
    shape: tuple[int, ...], data: st.DataObject
):
    source = canonical(data.draw(cuttings(shape, windows=False)).layout())
    destination = canonical(data.draw(cuttings(shape)).layout())
    every, some = (streams_of(source, destination, None, busiest) for busiest in (False, True))
    listed, expected = (
        {
            (int(of.cell[k]), int(to)): (int(of.elements[k]), int(of.fragments[k]))
            for k, to in zip(of.stream, of.receiver, strict=True)
        }
        for of in (some, every)
    )
    assert listed.items() <= expected.items()
    cells, receivers = {cell for cell, _ in listed}, {to for _, to in listed}
    for cell, to in expected.keys() - listed.keys():
        assert cell not in cells
        assert to not in receivers


def test_the_busiest_streams_are_fewer_where_parts_are_apart():
    source = Layout((Cut(12, 6),), identity_map((0,), (12,)))
    destination = Layout((Cut(12, 3),), identity_map((0,), (12,)), first_tile=6)
    assert len(streams_of(source, destination).cell) == 6
    assert len(streams_of(source, destination, None, True).cell) == 2
