"""The Pareto front of a sweep: the points that no other point beats in both goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .choice import Goal, read_goal
from .spec import Spec
from .tables import Rows

USUAL = ("min tiles", "max items_per_s")
"""The goals of the picture, unless the spec names others."""


@dataclass(frozen=True)
class Drawn:
    """The points of the picture.

    Attributes:
        goals: along x and along y.
        rows: those that keep the constraints.
        x, y: their figures.
        front: whether each is on the front of its model.
        models: the names of models, in the order of the file.
    """

    goals: tuple[Goal, Goal]
    rows: tuple[Mapping[str, Any], ...]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    front: NDArray[np.bool_]
    models: tuple[str, ...]


def drawn(spec: Spec, rows: Rows) -> Drawn:
    """The points of a sweep's picture: the rows that have the figures of both goals."""
    goals = spec.choice.pareto
    if goals is None:
        one, other = (read_goal(each, "pareto") for each in USUAL)
        goals = (one, other)
    found = [
        (row, [goal.of(row) for goal in goals]) for row in rows.rows if spec.choice.allows(row)
    ]
    found = [(row, numbers) for row, numbers in found if np.isfinite(numbers).all()]
    kept = tuple(row for row, _ in found)
    values = np.array([numbers for _, numbers in found]).reshape(len(kept), 2)
    front = np.zeros(len(kept), np.bool_)
    names = np.array([row["model"] for row in kept], object)
    models = tuple(dict.fromkeys(row["model"] for row in kept))
    for model in models:
        mine = np.flatnonzero(names == model)
        front[mine] = unbeaten(values[mine])
    signs = np.array([goal.sign for goal in goals])
    x, y = (values * signs).T
    return Drawn(goals, kept, x, y, front, models)


def unbeaten(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether no other point is at least as good in both numbers and better in one.

    Args:
        values: (n, 2); less is better.
    """
    order = np.lexsort((values[:, 1], values[:, 0]))
    second = values[order, 1]
    least = np.minimum.accumulate(np.concatenate([[np.inf], second[:-1]]))
    found = np.zeros(len(values), np.bool_)
    found[order] = second < least
    # Points that are equal to one of the front are on it, too.
    best = {tuple(each) for each in values[found]}
    return np.array([tuple(each) in best for each in values], np.bool_)


def ordered_front(points: Drawn, model: str) -> Sequence[int]:
    """The points of a model's front by their first figure."""
    front: list[int] = np.flatnonzero(points.front).tolist()
    mine = [k for k in front if points.rows[k]["model"] == model]
    return sorted(mine, key=lambda k: (points.x[k], points.y[k]))
