"""Which tiles have a clock together, and which zones of a chip meet."""

from __future__ import annotations

import numpy as np
import pytest

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
