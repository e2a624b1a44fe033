"""Which tiles have a clock together, and which zones of a chip meet."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.clocks.zones import zones_of
from abele.backends.target import resolve_target

PAIR = "tiny:8,links.topology=ladder,links.chips=2"


def test_a_chip_without_io_tiles_is_a_zone():
    for text, tiles in (("tiny:4", [0] * 4), (PAIR, [0] * 4 + [1] * 4)):
        zones = zones_of(resolve_target(text), len(tiles))
        assert zones.of_tile.tolist() == tiles
        assert zones.count == zones.chips == tiles[-1] + 1


def test_the_io_tiles_of_a_chip_are_a_zone_and_tiles_that_do_not_exist_are_not_in_it():
    zones = zones_of(resolve_target("tiny:5,io_tiles=2"), 7)
    assert zones.of_tile.tolist() == [0, 0, 0, 1, 1, 0, 0]
    assert zones.chip.tolist() == [0, 0]
    assert (zones.chips, zones.count) == (1, 2)
    assert [zones.name(each) for each in range(2)] == ["", "I/O tiles"]


@pytest.mark.parametrize(
    ("group", "works", "meets"),
    [
        # Within the chip, and with the host.
        (-1, [1, 0], [-1, -1]),
        (-1, [0, 1], [-1, -1]),
        (-1, [1, 1], [0, 0]),
        (0, [0, 1], [-1, 0]),
        (0, [1, 0], [0, -1]),
        (0, [1, 1], [0, 0]),
        # The host alone: the chip takes part, as it does without I/O tiles.
        (0, [0, 0], [0, -1]),
    ],
)
def test_the_zones_of_a_chip_meet_where_both_work(group: int, works: list[int], meets: list[int]):
    zones = zones_of(resolve_target("tiny:5,io_tiles=2"), 5)
    found = zones.meeting(np.array([group]), np.array(works, np.bool_))
    assert found.tolist() == meets


def test_each_chip_of_several_has_a_zone_of_io_tiles():
    zones = zones_of(resolve_target(f"{PAIR},io_tiles=1"), 9)
    assert zones.of_tile.tolist() == [0, 0, 0, 2, 1, 1, 1, 3, 1]
    assert zones.chip.tolist() == [0, 1, 0, 1]
    names = ["chip 0", "chip 1", "chip 0, I/O tiles", "chip 1, I/O tiles"]
    assert [zones.name(each) for each in range(4)] == names


@given(st.integers(0, 2**32), st.sampled_from((2, 4)))
def test_zones_of_several_chips_meet_as_if_asked_one_by_one(seed: int, chips: int):
    random = Random(seed)
    links = f"links.topology=ladder,links.chips={chips}"
    zones = zones_of(resolve_target(f"tiny:{4 * chips},{links},io_tiles=1"), 4 * chips)
    group = [random.choice((-1, 0, 1)) for _ in range(chips)]
    works = [random.random() < 0.5 for _ in range(2 * chips)]
    found = zones.meeting(np.array(group), np.array(works)).tolist()

    def takes_part(zone: int) -> bool:
        """The zones of a chip that work; if none does, the one that computes."""
        chip = zone % chips
        return works[zone] if works[chip] or works[chip + chips] else zone == chip

    def meet(a: int, b: int) -> bool:
        one, other = a % chips, b % chips
        return one == other or group[one] == group[other] >= 0

    for a in range(2 * chips):
        others = [b for b in range(2 * chips) if b != a and takes_part(b)]
        with_a = [b for b in others if takes_part(a) and meet(a, b)]
        same = [b for b in range(2 * chips) if b != a and found[a] >= 0 and found[b] == found[a]]
        assert same == with_a
