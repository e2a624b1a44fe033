"""The summary of a sweep in Markdown: what was computed, the best points, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .axes import length
from .choice import SideBySide
from .columns import FITS, STATUSES
from .folder import PAGE, PICTURE, ROWS, SECONDS
from .front import Drawn, ordered_front
from .side_by_side import laid
from .spec import Spec
from .tables import Rows, key_columns

MOST_ROWS = 60
"""The most rows of a table. The Parquet file has all."""

MOST_HEADS = 12
"""The most columns of figures side by side."""

MOST_VALUES = 8
"""The most values of a key that are listed."""

NOTHING = "none"
"""The head of points to which the spec gives no value of the column that lies across."""

SHOWN = ("items_per_s", "cycles", "binds", "utilisation", "max_tile_bytes")
"""The figures of the tables, besides those of the goals."""

Row = Mapping[str, Any]


def summary_text(spec: Spec, rows: Rows, points: Drawn, title: str) -> str:
    """The summary."""
    return "\n".join(_lines(spec, rows, points, title)) + "\n"


def _lines(spec: Spec, rows: Rows, points: Drawn, title: str) -> Iterator[str]:
    yield f"# {title}"
    yield ""
    yield f"{len(rows.rows):,} of {spec.size:,} points. {_counts(rows)}"
    yield ""
    yield "| key | values |"
    yield "|---|---|"
    for part in (*spec.models, *spec.targets, spec.options):
        for key, values in part.values.items():
            yield f"| {_cell(key)} | {_cell(_listed(values))} |"
    yield ""
    shown = _columns(spec, rows, points)
    if spec.choice.constraints:
        yield f"Constraints: {', '.join(f'`{each.text}`' for each in spec.choice.constraints)}."
        yield ""
    best = spec.choice.best
    if best is not None:
        yield f"## The best of each model: {best.text}"
        yield ""
        yield from _best(spec, rows, shown)
        yield ""
    yield f"## The front: {' and '.join(goal.text for goal in points.goals)}"
    yield ""
    yield "No point of a model is better in one of these and at least as good in the other."
    yield ""
    front = [points.rows[k] for model in points.models for k in ordered_front(points, model)]
    yield from _table(shown, front)
    yield ""
    yield f"![The Pareto picture]({PICTURE})"
    yield ""
    for each in spec.choice.tables:
        yield f"## {each.text}"
        yield ""
        yield from _side_by_side(each, rows)
        yield ""
    without = [row for row in rows.rows if row["status"] != FITS]
    if without:
        yield "## Points without figures"
        yield ""
        places = [name for name in shown if name in _places(rows)]
        yield from _table([*places, "status", "missing_bytes", "reason"], without)
        yield ""
    yield (
        f"All rows are in `{ROWS}`, and the seconds that they took in `{SECONDS}`. `{PAGE}` draws "
        "any two figures."
    )


def _counts(rows: Rows) -> str:
    counts = Counter(row["status"] for row in rows.rows)
    return ", ".join(f"{status}: {counts[status]:,}" for status in STATUSES if counts[status]) + "."


def best_rows(spec: Spec, rows: Rows) -> list[tuple[str, Row | None]]:
    """The best row of each model; None if none of its points keeps the constraints."""
    models = dict.fromkeys(row["model"] for row in rows.rows)
    return [
        (model, spec.choice.best_of([row for row in rows.rows if row["model"] == model]))
        for model in models
    ]


def _best(spec: Spec, rows: Rows, shown: Sequence[str]) -> Iterator[str]:
    found = best_rows(spec, rows)
    yield from _table(shown, [row for _, row in found if row is not None])
    for model, row in found:
        if row is None:
            yield ""
            yield f"No point of {model} keeps the constraints."


def _places(rows: Rows) -> tuple[str, ...]:
    return ("point", "model", "target", "chips", "tiles", *rows.keys)


def _columns(spec: Spec, rows: Rows, points: Drawn) -> list[str]:
    """The columns of tables: what differs between points, the figures of goals, and some more."""
    several = {name for name, _ in key_columns(spec).values()}
    places = [
        name
        for name in _places(rows)
        if name in ("point", "model", "target", "tiles")
        or (name in several | {"chips"} and len({row[name] for row in rows.rows}) > 1)
    ]
    goals = filter(None, (spec.choice.best, *points.goals))
    words = [word for goal in goals for word in goal.text.replace("/", " ").split()]
    named = [name for name in rows.kinds if name in words]
    return list(dict.fromkeys([*places, *named, *SHOWN]))


def _table(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        yield "None."
        return
    yield f"| {' | '.join(name.replace('_', ' ') for name in columns)} |"
    numbers = [all(not isinstance(row[name], str) for row in rows) for name in columns]
    yield f"|{'|'.join('--:' if is_number else '---' for is_number in numbers)}|"
    for row in rows[:MOST_ROWS]:
        yield f"| {' | '.join(_cell(shown_figure(row[name])) for name in columns)} |"
    if len(rows) > MOST_ROWS:
        yield ""
        yield f"{len(rows) - MOST_ROWS:,} more rows are in `{ROWS}`."


def _side_by_side(table: SideBySide, rows: Rows) -> Iterator[str]:
    found = laid(table, rows)
    first = len(found.names)
    width = first + min(len(found.heads), MOST_HEADS)
    heads = [_cell(shown_figure(head)) or NOTHING for head in found.heads]
    names = [name.replace("_", " ") for name in found.names]
    yield f"| {' | '.join([*names, *heads][:width])} |"
    yield f"|{'|'.join((['---'] * first + ['--:'] * len(heads))[:width])}|"
    for line in found.lines[:MOST_ROWS]:
        yield f"| {' | '.join(_cell(shown_figure(value)) for value in line[:width])} |"
    for count, most, what in (
        (len(found.lines), MOST_ROWS, "rows"),
        (len(heads), MOST_HEADS, "columns"),
    ):
        if count > most:
            yield ""
            yield f"{count - most:,} more {what} are in `{ROWS}`."


def shown_figure(value: Any) -> str:
    """A figure as tables show it."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _cell(text: str) -> str:
    """Text as a cell of a table in Markdown."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _listed(values: Sequence[Any]) -> str:
    count = length(values)
    if count <= MOST_VALUES:
        return ", ".join(str(values[k]) for k in range(count))
    return f"{values[0]}, {values[1]}, ... {values[count - 1]} ({count:,} values)"
