"""Groups of chips, and their texts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry.chip_groups import ChipGroups, ChipRun, runs_of


@st.composite
def groups(draw) -> ChipGroups:
    chips = draw(st.lists(st.integers(0, 40), unique=True, min_size=1))
    cuts = draw(st.sets(st.integers(1, len(chips))))
    edges = [0, *sorted(cuts - {len(chips)}), len(chips)]
    return ChipGroups.of(chips[a:b] for a, b in pairwise(edges))


@given(groups())
def test_runs_are_the_groups(found: ChipGroups):
    assert ChipGroups.of_runs(runs_of(found)) == found


def test_equal_groups_at_equal_distances_are_one_run():
    replicas = ChipGroups.of([range(4 * k, 4 * k + 4) for k in range(64)])
    assert runs_of(replicas) == [ChipRun(((0, 3, 1),), 64, 4)]
    stages = ChipGroups.of([range(s, 256, 4) for s in range(4)])
    assert runs_of(stages) == [ChipRun(((0, 252, 4),), 4, 1)]


def test_numbers_tell_groups_apart():
    assert ChipGroups.of([[4, 1], [0, 2]]).number(6).tolist() == [0, 1, 0, -1, 1, -1]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: ChipGroups(()), "an empty group"),
        (lambda: ChipGroups(((0,), ())), "an empty group"),
        (lambda: ChipGroups(((-1, 0),)), "chip -1; need 0 or more"),
        (lambda: ChipGroups(((0, 1), (1, 2))), "chip 1 is named twice"),
        (lambda: ChipGroups(((1, 0),)), "not in ascending order"),
        (lambda: ChipGroups(((4096,),)), "chip 4096; need less than 4096"),
        (lambda: ChipGroups.of_runs([ChipRun(((3, 1, 1),))]), "an empty group"),
        (lambda: ChipGroups.of_runs([ChipRun(((0, 1, 0),))]), "an empty group"),
        (lambda: ChipGroups.of_runs([ChipRun(((0, 1, 1),), 1 << 60, 2)]), "at most 4096"),
        (lambda: ChipGroups.of_runs([ChipRun(((0, 1 << 60, 1),))]), "chips; at most 4096"),
        (
            lambda: ChipGroups.of_runs([ChipRun(((0, 4094, 1),)), ChipRun(((4094, 4094, 1),))]),
            "chip 4094 is named twice",
        ),
        (
            lambda: ChipGroups.of_runs([ChipRun(((0, 9999, 1),))] * 10**4),
            "100000000 chips; at most 4096",
        ),
    ],
)
def test_what_is_no_group_is_refused(made, message: str):
    with pytest.raises(ValueError, match=message):
        made()
