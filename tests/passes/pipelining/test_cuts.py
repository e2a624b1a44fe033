"""Cuts of a network, compared with all ways to cut it."""

from itertools import combinations, pairwise
from math import inf

import numpy as np
import pytest

from abele.passes.pipelining import cuts
from abele.passes.pipelining.cuts import Work, best_cuts


def random_work(draw: np.random.Generator) -> Work:
    n = draw.integers(2, 9)
    crossing = np.r_[0.0, draw.integers(0, 4, n - 1), 0.0]
    return Work(
        draw.integers(1, 9, n) * 1.0,
        draw.integers(1, 5, n) * 1.0,
        draw.integers(0, 3, n) * 1.0,
        crossing,
        draw.integers(0, 4, n) * 1.0,
    )


def slowest(work: Work, places: list[int], depths: list[int], room: float) -> float:
    """The cycles of the slowest stage; infinity if one does not fit."""
    stages = [*pairwise([0, *places, len(work.cycles)])]
    sizes = [work.stage_bytes(a, b, d) for (a, b), d in zip(stages, depths, strict=True)]
    if max(sizes) > room:
        return inf
    return max(work.stage_cycles(begin, end) for begin, end in stages)


def test_no_other_cuts_have_a_faster_slowest_stage():
    draw = np.random.default_rng(0)
    for _ in range(200):
        work = random_work(draw)
        n = len(work.cycles)
        depths = [*draw.integers(0, 3, draw.integers(1, min(n, 4) + 1))]
        room = float(draw.integers(5, 30))
        every = combinations(range(1, n), len(depths) - 1)
        best = min(slowest(work, [*places], depths, room) for places in every)
        found = best_cuts(work, depths, room)
        assert (found is None) == (best == inf)
        if found is not None:
            assert slowest(work, found, depths, room) == best


def test_a_long_network_is_cut_at_some_places_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cuts, "MOST_PLACES", 50)
    work = Work(
        *(np.full(n, at) for n, at in ((1000, 1.0), (1000, 0), (1000, 0), (1001, 0), (1000, 0)))
    )
    found = best_cuts(work, [0] * 4, 0.0)
    assert found is not None
    assert slowest(work, found, [0] * 4, 0.0) <= 270


def test_a_stage_needs_what_the_largest_of_its_operations_needs_while_it_computes():
    none = np.zeros(4)
    held = np.full(4, 10.0)
    working = np.array([8.0, 0.0, 0.0, 9.0])
    work = Work(np.array([1.0, 5.0, 5.0, 1.0]), held, none, np.zeros(5), working)
    assert work.stage_bytes(0, 2, 0) == 28
    assert best_cuts(work, [0, 0], 29.0) == [2]
    # With less room, nothing fits that holds two operations and computes the last.
    assert best_cuts(work, [0, 0], 28.0) is None
