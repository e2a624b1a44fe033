from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from abele.dialects.abele import Plan
from abele.passes.planner.budget import Fronts
from abele.passes.planner.choice import Choice


class Node:
    times = 1


def choice(cycles: int, resident: int, temporary: int) -> Choice:
    return Choice(Plan((1,)), float(cycles), 0.0, 0.0, 0.0, resident, temporary, 0, 1)


choices = st.builds(choice, st.integers(1, 99), st.integers(0, 50), st.integers(0, 50))
operators = st.lists(st.lists(choices, min_size=1, max_size=4), min_size=1, max_size=4)


def fronts(found: list[list[Choice]], live: list[int]) -> Fronts:
    nodes = [Node() for _ in found]
    return Fronts(
        {node: tuple(each) for node, each in zip(nodes, found)},  # type: ignore[misc]
        dict(zip(nodes, live)),  # type: ignore[arg-type]
    )


def needed(picked: tuple[Choice, ...], live: list[int]) -> int:
    moment = max(c.temporary_bytes + n for c, n in zip(picked, live))
    return sum(c.resident_bytes for c in picked) + moment


@given(operators, st.data(), st.integers(0, 300))
def test_the_selection_fits_if_any_choice_does(found, data, available):
    live = [data.draw(st.integers(0, 30)) for _ in found]
    every = list(itertools.product(*found))
    selection = fronts(found, live).within(available)
    fitting = [picked for picked in every if needed(picked, live) <= available]
    assert (selection is None) == (not fitting)
    if selection is not None:
        picked = tuple(selection.choices.values())
        assert needed(picked, live) == selection.resident + selection.moment <= available
        assert selection.cycles == sum(c.cycles for c in picked)
        # No other plan of one operator is faster for no more bytes.
        for each, others in zip(picked, found):
            for other in others:
                if other.resident_bytes <= each.resident_bytes:
                    if other.temporary_bytes <= each.temporary_bytes:
                        assert other.cycles >= each.cycles


@given(operators, st.data())
def test_the_smallest_choice_needs_no_more_than_any(found, data):
    live = [data.draw(st.integers(0, 30)) for _ in found]
    least = min(needed(picked, live) for picked in itertools.product(*found))
    smallest = fronts(found, live).smallest()
    assert smallest.resident + smallest.moment == least


def test_remaining_bytes_go_to_the_plan_that_saves_most_cycles_per_byte():
    slow, fast = choice(90, 10, 0), choice(10, 40, 0)
    other, better = choice(90, 10, 0), choice(80, 40, 0)
    selection = fronts([[slow, fast], [other, better]], [0, 0]).within(60)
    assert selection is not None
    assert list(selection.choices.values()) == [fast, other]
