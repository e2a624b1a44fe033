"""Columns of a table, chosen by name or by the width of the terminal, and the same as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.table import Table

from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion

Row = TypeVar("Row")

BORDER = 3
"""Characters between two columns: a line, and a space on either side."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table.

    Attributes:
        value: a row's figure, for CSV.
        text: the text of a row's cell; None to show the value.
        keep: columns with the lowest number are hidden first where a terminal is too narrow.
        fold: the width in characters down to which the column may be folded; 0 for a number, which
            is never folded.
    """

    name: str
    value: Callable[[Row], str | float]
    text: Callable[[Row], str] | None = None
    keep: int = 0
    fold: int = 0

    def cell(self, row: Row) -> str:
        """The text of this column's cell in a row: one line, whatever names hold."""
        text = str(self.value(row)) if self.text is None else self.text(row)
        return " ".join(text.splitlines())


def chosen(columns: Sequence[Column[Row]], names: str) -> tuple[Column[Row], ...]:
    """The columns with these names, separated by commas, in that order. Raises InputError.

    A dash or an underscore stands for the space in a name.
    """
    known = {each.name: each for each in columns}
    asked = [each.strip().replace("_", " ") for each in names.split(",")]
    found: list[Column[Row]] = []
    for name in asked:
        plain = name if name in known else name.replace("-", " ")
        if plain not in known:
            need = f"need some of {', '.join(known)}"
            hint = suggestion(name, known, need) if name else f"; {need}"
            raise InputError(f"--columns {names}: no column {name!r}{hint}")
        if known[plain] not in found:
            found.append(known[plain])
    return tuple(found)


def fitting(
    columns: Sequence[Column[Row]], cells: Mapping[str, Iterable[str]], width: int
) -> tuple[Column[Row], ...]:
    """The columns that fit into a width, in order.

    The last column stays, however narrow the terminal is.

    Args:
        cells: all texts of each column.
    """
    needed = {each.name: _least(each, cells[each.name]) for each in columns}
    found = list(columns)
    while len(found) > 1 and 1 + sum(needed[each.name] + BORDER for each in found) > width:
        found.remove(min(found, key=lambda each: each.keep))
    return tuple(found)


def _least(column: Column[Row], cells: Iterable[str]) -> int:
    widest = max(map(cell_len, (column.name, *cells)))
    return min(widest, max(column.fold, cell_len(column.name))) if column.fold else widest


def add_columns(table: Table, columns: Sequence[Column[Row]]) -> None:
    """Add the columns to a table."""
    for each in columns:
        if each.fold:
            table.add_column(each.name, overflow="fold")
        else:
            table.add_column(each.name, justify="right", no_wrap=True)


def hidden_line(every: Sequence[Column[Row]], shown: Sequence[Column[Row]]) -> str:
    """A line that names the columns that do not fit; "" if all fit."""
    names = [each.name for each in every if each not in shown]
    if not names:
        return ""
    return f"too narrow for {', '.join(names)}; --columns chooses, and --csv has them all"


def csv_text(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> str:
    """The figures of rows as CSV, with a line of names first."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([each.name for each in columns])
    writer.writerows([[each.value(row) for each in columns] for row in rows])
    return stream.getvalue()
