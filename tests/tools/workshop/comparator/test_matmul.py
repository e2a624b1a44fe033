"""The search over all plans of a product, against a plain one and against published figures."""

from collections.abc import Callable
from dataclasses import replace
from time import process_time

import numpy as np
import pytest

from abele.passes.planner.price import Integers
from abele.tools.workshop.comparator.account import (
    COMPARED,
    WIDER,
    Candidates,
    Sizes,
    Ways,
    account,
    bound,
)
from abele.tools.workshop.comparator.matmul import (
    best,
    best_without_turns,
    comparators_rule,
    splits,
)
from abele.tools.workshop.comparator.t10 import T10

from . import comparator_in_loops as loops

SMALL = [
    ((20, 36, 30), 24),
    ((7, 90, 12), 16),
    ((64, 5, 33), 18),
    ((1, 200, 40), 20),
    ((48, 48, 48), 12),
]
"""Sizes and tiles."""

PUBLISHED = {
    (512, 1024, 1024): 16_892,
    (1024, 1024, 1024): 27_118,
    (128, 768, 3072): 11_486,
    (128, 1024, 1024): 8_471,
    (2048, 2048, 2048): 147_246,
    (4096, 4096, 4096): 1_092_344,
}
"""The cycles of the best plans that the comparator's own search finds."""

ROTATING = list(PUBLISHED)[4:]


def named(sizes: Sizes) -> loops.Split:
    return dict(zip("mkn", sizes, strict=True))


def points(found) -> list[tuple[float, int]]:
    return list(zip(found.cost.cycles.tolist(), found.cost.bytes.tolist(), strict=True))


@pytest.mark.parametrize(("sizes", "tiles"), SMALL)
@pytest.mark.parametrize("strict", [True, False])
def test_the_front_is_the_comparators(sizes: Sizes, tiles: int, strict: bool):
    charges = replace(T10, tiles=tiles)
    found = best(sizes, charges, COMPARED, comparators_rule if strict else None)
    assert points(found) == loops.front(named(sizes), tiles, strict=strict)


@pytest.mark.parametrize(("sizes", "tiles"), SMALL)
def test_the_front_of_the_wider_space_is_that_of_plain_loops(sizes: Sizes, tiles: int):
    expected = loops.front(
        named(sizes),
        tiles,
        strict=False,
        multiply=loops.wider_multiply,
        merge=loops.wider_merge,
    )
    assert points(best(sizes, replace(T10, tiles=tiles), WIDER)) == expected


@pytest.mark.parametrize(
    ("ways", "how"),
    [
        (COMPARED, {}),
        (WIDER, {"multiply": loops.wider_multiply, "merge": loops.wider_merge}),
    ],
)
def test_the_cost_of_every_plan_equals_that_of_plain_loops(ways: Ways, how):
    sizes = (20, 36, 30)
    plans = [
        (split, turns)
        for split in loops.splits(named(sizes), 24, strict=False)
        for turns in loops.turned(named(sizes), split, 24, strict=False)
    ]
    assert any(all(t[d][v] > 1 for d, v in ("mA", "kB", "nC")) for _, t in plans)

    def turns(variable: str) -> Integers:
        dims = loops.HAS[variable]
        return np.array([[t[d][variable] for _, t in plans] for d in dims])

    parts = np.array([[split[d] for split, _ in plans] for d in "mkn"])
    found = Candidates(sizes, parts, turns("A"), turns("B"), turns("C"))
    cost = account(found, T10, ways)
    expected = [loops.priced(named(sizes), split, t, **how) for split, t in plans]
    assert list(zip(cost.cycles.tolist(), cost.bytes.tolist(), strict=True)) == expected
    least = bound(found, T10)
    assert (least.cycles <= cost.cycles).all()
    assert (least.bytes == cost.bytes).all()


@pytest.mark.parametrize("sizes", PUBLISHED)
def test_the_comparators_published_figures_are_met(sizes: Sizes):
    """The small shapes need no turns; that turns make none of them faster is said by bench."""
    search = best if sizes in ROTATING else best_without_turns
    assert round(search(sizes, T10, COMPARED, comparators_rule).fastest) == PUBLISHED[sizes]


def test_without_rotation_a_large_product_is_slower_and_a_larger_one_does_not_fit():
    assert round(best_without_turns((2048,) * 3, T10, COMPARED).fastest) == 153_681
    assert not len(best_without_turns((4096,) * 3, T10, COMPARED))


def test_the_wider_space_is_at_most_93_percent_on_the_four_small_shapes():
    ratios = [
        best_without_turns(s, T10, WIDER).fastest / PUBLISHED[s]
        for s in PUBLISHED
        if s not in ROTATING
    ]
    assert np.exp(np.log(ratios).mean()) <= 0.93


def test_a_bound_on_memory_limits_the_plans_found():
    charges = replace(T10, tiles=64)
    free = best((256,) * 3, charges, COMPARED)
    found = best((256,) * 3, replace(charges, bytes_per_tile=15_000), COMPARED)
    assert points(found) == [p for p in points(free) if p[1] <= 15_000]
    assert found.fastest > free.fastest


def test_plans_on_the_front_have_the_costs_of_the_front():
    charges = replace(T10, tiles=64)
    found = best((256,) * 3, charges, WIDER)
    again = account(found.plans, charges, WIDER)
    assert points(replace(found, cost=again)) == points(found)
    assert (np.diff(found.cost.cycles) < 0).all()
    assert (np.diff(found.cost.bytes) > 0).all()


def test_only_the_split_on_fewest_tiles_is_kept_for_each_largest_part():
    every, few = (splits((20, 30, 40), 24, fewest=fewest) for fewest in (False, True))

    def plans(found: Candidates) -> list[tuple[float, ...]]:
        rows, _, columns = found.cells().tolist()
        return list(zip(rows, found.parts[1].tolist(), columns, strict=True))

    assert len(plans(few)) == len(set(plans(few)))
    assert set(plans(few)) == set(plans(every))
    assert len(few) < len(every)


def test_a_search_takes_milliseconds_and_one_with_rotation_less_than_a_second():
    """Beside an empty loop of two million iterations, which takes 20 ms."""

    def seconds(work: Callable[[], object]) -> float:
        begin = process_time()
        work()
        return process_time() - begin

    def loop() -> None:
        for _ in range(2_000_000):
            pass

    unit = min(seconds(loop) for _ in range(3))
    sizes = (1024,) * 3
    quick = min(seconds(lambda: best_without_turns(sizes, T10, WIDER)) for _ in range(5))
    assert quick < unit
    assert seconds(lambda: best(sizes, T10, WIDER)) < 50 * unit
