"""Tests for backends/links/some_chips.py."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from abele.backends.links.links import routes_of
from abele.backends.links.some_chips import SomeChips
from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.ir.geometry.chip_groups import ChipGroups

MACHINE = resolve_target("tiny:32,links.topology=torus,links.chips=8")


@pytest.mark.parametrize(("first", "count", "apart"), [(1, 3, 2), (0, 2, 7), (4, 4, 1), (2, 2, 1)])
def test_bytes_between_some_chips_go_the_ways_of_the_machine(first: int, count: int, apart: int):
    target = MACHINE.some_chips(first, count, apart)
    assert isinstance(target.links, SomeChips)
    assert (target.chips, target.tiles_per_chip) == (count, MACHINE.tiles_per_chip)
    own = {
        (a * count + b): (first + a * apart) * 8 + first + b * apart
        for a, b in permutations(range(count), 2)
    }
    moved = np.arange(1, len(own) + 1) * 1000
    found = routes_of(target.links).seconds(np.array([*own]), moved)
    expected = routes_of(MACHINE.links).seconds(np.array([*own.values()]), moved)
    assert found.tolist() == expected.tolist()
    assert found.min() > 0
    chips = [first + i * apart for i in range(count)]
    assert target.links.meeting_seconds() == MACHINE.links.meeting_seconds(chips)
    assert target.links.first_word_seconds() == MACHINE.links.first_word_seconds()


@pytest.mark.parametrize(("block", "group"), [(0, (1, 3)), (4, (0, 1, 2, 3)), (2, range(8))])
def test_some_chips_meet_as_the_machine_lets_them(block: int, group: Sequence[int]):
    machine = resolve_target(
        f"tiny:32,links.topology=torus,links.chips=8,links.meeting_chips={block}"
    )
    links = machine.some_chips(1, 3, 2).links
    assert links.meeting_seconds((0, 1)) == machine.links.meeting_seconds(group)
    wanted = ChipGroups.of([[0, 1]])
    met = [[i for i in range(3) if 1 + 2 * i in group]]
    assert links.meeting_groups(wanted) == ChipGroups.of(met)


def test_one_chip_has_no_links_and_all_chips_are_the_machine():
    assert MACHINE.some_chips(5, 1, 3) == MACHINE.one_chip
    assert MACHINE.some_chips(0, 8, 1) == MACHINE


def test_chips_that_the_machine_does_not_have_are_refused():
    with pytest.raises(InputError, match=r"chips up to 8; target tiny\S* has chips 0..7"):
        MACHINE.some_chips(2, 3, 3)
    with pytest.raises(InputError, match=r"chips up to 1; target tiny\S* has one chip, 0"):
        resolve_target("tiny:4").some_chips(1, 1, 1)
