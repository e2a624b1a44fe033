"""The Pareto picture of a sweep as PNG, and as a page that opens without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..driver.files import write_text
from ..driver.page.assets import Assets
from ..views.figure import new_figure, write_figure
from .choice import LEAST
from .front import Drawn, ordered_front
from .tables import Rows

MARK = "<!-- abele: a sweep -->"
"""The comment at the beginning of the page."""

ASSETS = Assets(__package__ or "", MARK, "sweep.html", "sweep.css", ("sweep.js",))

WIDE = 30
"""The ratio of the largest to the smallest figure from which an axis is logarithmic."""


def goal_words(text: str) -> str:
    """What an axis shows, and which way is better."""
    word, _, rest = text.partition(" ")
    return f"{rest.strip()} ({'less' if word == LEAST else 'more'} is better)"


def draw(points: Drawn, title: str, path: Path) -> None:
    """Write the picture. Raises InputError, also if matplotlib is not installed."""
    figure = new_figure(figsize=(9, 6), layout="constrained")
    axes: Any = figure.subplots()
    for number, model in enumerate(points.models):
        mine = np.array([row["model"] == model for row in points.rows], np.bool_)
        colour = f"C{number % 10}"
        inner = mine & ~points.front
        axes.scatter(points.x[inner], points.y[inner], color=colour, alpha=0.35, s=18)
        line = ordered_front(points, model)
        axes.plot(
            points.x[line], points.y[line], color=colour, marker="o", markersize=6, label=model
        )
        for k in line:
            axes.annotate(
                str(points.rows[k]["target"]),
                (points.x[k], points.y[k]),
                textcoords="offset points",
                xytext=(5, 5),
                fontsize=7,
                parse_math=False,
            )
    for values, scale, label, goal in (
        (points.x, axes.set_xscale, axes.set_xlabel, points.goals[0]),
        (points.y, axes.set_yscale, axes.set_ylabel, points.goals[1]),
    ):
        if len(values) and values.min() > 0 and values.max() > WIDE * values.min():
            scale("log")
        label(goal_words(goal.text), parse_math=False)
    axes.grid(visible=True, which="both", alpha=0.2)
    if points.models:
        axes.legend(fontsize=8)
    axes.set_title(title, parse_math=False)
    write_figure(path, figure)


def write_page(points: Drawn, rows: Rows, title: str, path: Path) -> None:
    """Write the page: a picture whose axes and colours can be changed, and all rows.

    Raises InputError.
    """
    front = {int(points.rows[k]["point"]) for k in np.flatnonzero(points.front)}
    allowed = {int(row["point"]) for row in points.rows}
    data = {
        "title": title,
        "kinds": dict(rows.kinds),
        "keys": list(rows.keys),
        "goals": [goal.text for goal in points.goals],
        "columns": {name: [row[name] for row in rows.rows] for name in rows.kinds},
        "front": [row["point"] in front for row in rows.rows],
        "allowed": [row["point"] in allowed for row in rows.rows],
    }
    write_text(path, ASSETS.page(title, data))
