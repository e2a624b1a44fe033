"""The plans of sweeps: which points are computed, in rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from ...ir.support.errors import InputError
from .axes import length
from .points import point_at, some_numbers
from .spec import HALVING, Spec
from .tables import Rows


def numbers_in_rounds(spec: Spec, rows: Callable[[], Rows]) -> Iterator[Sequence[int]]:
    """The places of the points to compute, round by round.

    Raises InputError for a plan that halves without a goal.

    Args:
        rows: returns the rows of all points so far.
    """
    if spec.plan.kind != HALVING:
        yield list(some_numbers(spec))
        return
    if spec.choice.best is None:
        raise InputError(
            f"{spec.file}: a plan of kind {HALVING!r} needs a goal: best in [result], or --best"
        )
    yield from _halving(spec, rows)


def _halving(spec: Spec, rows: Callable[[], Rows]) -> Iterator[Sequence[int]]:
    """Rounds with one value of a key each. The best share of the others stays in the race.

    Points that differ in their model do not compete.
    """
    key = spec.plan.along
    races: dict[str, dict[int, int]] = {}
    models: dict[str, str] = {}
    for number in range(spec.size):
        point = point_at(spec, number)
        values = point.values
        if key not in values:
            raise InputError(
                f"{spec.file}: along: {key} is not a key of all points; give it to every table"
            )
        others = {k: v for k, v in {**values, **point.target}.items() if k != key}
        rest = repr((point.source, others))
        place = _place(spec, key, values[key])
        races.setdefault(rest, {})[place] = number
        models[rest] = point.name
    left = list(races)
    for place in range(max(map(len, races.values()))):
        runs = {rest: races[rest][place] for rest in left if place in races[rest]}
        yield sorted(runs.values())
        left = _best(spec, runs, models, rows())


def _place(spec: Spec, key: str, value: Any) -> int:
    """The place of a value among those of a key, from cheap to dear."""
    for values in spec.keys[key]:
        for place in range(length(values)):
            if values[place] == value:
                return place
    raise KeyError(value)


def _best(spec: Spec, runs: Mapping[str, int], models: Mapping[str, str], rows: Rows) -> list[str]:
    """The races that stay, of those that ran, in their order."""
    goal = spec.choice.best
    assert goal is not None
    by_number = {row["point"]: row for row in rows.rows}
    stays: set[str] = set()
    for model in dict.fromkeys(models[rest] for rest in runs):
        allowed = [
            rest
            for rest, number in runs.items()
            if models[rest] == model and spec.choice.allows(by_number[number])
        ]
        allowed.sort(key=lambda rest: goal.of(by_number[runs[rest]]))
        stays |= set(allowed[: ceil(len(allowed) * spec.plan.keep)])
    return [rest for rest in runs if rest in stays]
