"""Tables of a summary that show one figure for several machines, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from .choice import SideBySide
from .columns import FITS
from .spec import Spec
from .tables import PLACES, Rows, column_kinds

NUMBER_OF_POINT = "point"
"""The column that numbers the points. It says nothing of what they are."""

Row = Mapping[str, Any]


def check_tables(spec: Spec) -> None:
    """Raise InputError if a table of a spec names a column that its rows do not have."""
    known = column_kinds(spec)
    for each in spec.choice.tables:
        for name in (each.figure, each.by):
            if name not in known:
                raise InputError(
                    f"{spec.file}: result: tables: {each.text}: no column {name}"
                    f"{suggestion(name, list(known))}"
                )


@dataclass(frozen=True)
class Laid:
    """A table with its cells.

    Attributes:
        names: the columns that say what a row is about.
        heads: the values of the column that lies across, in the order of the points.
        lines: the values of these columns, and then a cell for each head: the figure; the status of
            a point that has none; None if there is no such point.
    """

    names: tuple[str, ...]
    heads: tuple[Any, ...]
    lines: tuple[tuple[Any, ...], ...]


def laid(table: SideBySide, rows: Rows) -> Laid:
    """The cells of a table: a line for each combination of what else differs between points."""
    heads = tuple(dict.fromkeys(row[table.by] for row in rows.rows))
    names = tuple(_names(table.by, rows))
    lines: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for row in rows.rows:
        cells = lines.setdefault(tuple(row[name] for name in names), {})
        value = row[table.figure] if row["status"] == FITS else row["status"]
        # Equal points have equal figures.
        _ = cells.setdefault(row[table.by], value)
    return Laid(
        names,
        heads,
        tuple((*place, *(cells.get(head) for head in heads)) for place, cells in lines.items()),
    )


def _names(by: str, rows: Rows) -> Sequence[str]:
    """The columns that say which point a row is about, of which several values occur with one value
    of another column."""
    places = [name for name, _ in PLACES if name != NUMBER_OF_POINT]
    names = [name for name in dict.fromkeys([*places, *rows.keys]) if name != by]
    heads = len({row[by] for row in rows.rows})
    return [name for name in names if len({(row[by], row[name]) for row in rows.rows}) > heads]
