"""Who sends to whom between chips, against the list of all pairs of tiles."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.fabrics import chip_flows
from abele.backends.fabrics.chip_flows import Chips
from abele.backends.fabrics.traffic import Carried
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout, canonical
from abele.ir.geometry.overlap import overlap
from abele.ir.geometry.space import identity_map

from ...ir.geometry.strategies import MOST_TILES, cuttings, shapes
from .some_traffic import blocks


def check(carried: Carried, chips: Chips) -> None:
    """Senders, receivers and pairs of chips are those of the pairs of tiles."""
    flows = carried.flows()
    among = flows.among(chips.of(np.arange(MOST_TILES * 2)))
    tile = dict(zip(flows.stream.tolist(), flows.source.tolist(), strict=True))
    wanted = {
        (tile[stream], chip): moved
        for stream, chip, moved in zip(
            among.stream.tolist(), among.destination.tolist(), among.bytes.tolist(), strict=True
        )
    }
    sent: Counter[tuple[int, int]] = Counter()
    for rows in chips.senders(carried):
        sent.update(zip(rows.tile.tolist(), rows.chip.tolist(), strict=True))
        found = zip(rows.tile.tolist(), rows.chip.tolist(), rows.bytes.tolist(), strict=True)
        assert all(wanted[tile, chip] == moved for tile, chip, moved in found)
    assert sent == Counter(wanted.keys())
    ends = zip(flows.destination.tolist(), chips.of(flows.source).tolist(), strict=True)
    received = {
        (int(tile), int(chip))
        for rows in chips.receivers(carried)
        for tile, chip in zip(rows.tile, rows.chip, strict=True)
    }
    assert received == {(t, c) for t, c in ends if chips.of(np.array(t)) != c}
    between = Counter[int]()
    for source, to, moved in zip(among.source, among.destination, among.bytes, strict=True):
        between[int(source) * chips.count + int(to)] += 2 * int(moved)
    pairs, both = chips.pairs([carried, carried])
    assert dict(zip(pairs.tolist(), both.tolist(), strict=True)) == between


@given(shapes, st.data())
@settings(max_examples=60)
def test_chips_send_and_receive_what_their_tiles_do(shape: tuple[int, ...], data: st.DataObject):
    source = canonical(data.draw(cuttings(shape, windows=False)).layout())
    destination = canonical(data.draw(cuttings(shape)).layout())
    sizes = [each for each in (source.apart, destination.apart) if each] or [4]
    chips = Chips(data.draw(st.integers(2, 8)), data.draw(st.sampled_from([*sizes, 3])))
    check(Carried(overlap(source, destination), 4), chips)


@given(st.data())
def test_layouts_of_a_machine_need_no_pairs_of_tiles(data: st.DataObject):
    """Layouts as plans have them: cut across chips, on one chip, or over neighbouring tiles."""

    def drawn(*, copies: int) -> Layout:
        one, two = data.draw(st.sampled_from([(4, 1), (2, 2), (1, 4), (1, 1)]))
        cuts = (
            Cut(copies, copies),
            Cut(24, one * data.draw(st.sampled_from([1, 2])), chips=one),
            Cut(12, two * data.draw(st.sampled_from([1, 3])), chips=two),
        )
        apart = 16 if one * two > 1 else 0
        return canonical(Layout(cuts, identity_map((1, 2), (24, 12)), apart=apart))

    source, destination = drawn(copies=1), drawn(copies=data.draw(st.sampled_from([1, 2])))
    carried = Carried(overlap(source, destination), 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chip_flows, "MOST_ROWS", data.draw(st.sampled_from([1, 5, 1 << 22])))
        check(carried, Chips(4, 16))
        patch.setattr(Carried, "flows", lambda _: pytest.fail("lists pairs of tiles"))
        assert len(Chips(4, 16).pairs([carried])[0]) >= 0


def test_words_that_several_tiles_of_a_chip_want_are_sent_once():
    carried = Carried(overlap(blocks(24, 2, 0), blocks(24, 4, 4, copies=2)), 4)
    pairs, moved = Chips(3, 4).pairs([carried])
    assert dict(zip(pairs.tolist(), moved.tolist(), strict=True)) == {1: 96, 2: 96}


def test_chips_read_their_own_replicas():
    whole = canonical(Layout((Cut(2, 2, chips=2), Cut(24, 4)), identity_map((1,), (24,)), apart=4))
    carried = Carried(overlap(whole, whole), 4)
    assert not len(Chips(2, 4).pairs([carried])[0])
    assert sum(len(rows.tile) for rows in Chips(2, 4).receivers(carried)) == 0
