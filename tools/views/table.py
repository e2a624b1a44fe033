"""The tables that commands print: size and cost of a program, and rows of figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.table import Table

from ..driver.executable import Executable
from ..driver.figures import rows


def summary(exe: Executable, title: str, checked: Iterable[tuple[str, str]] = ()) -> Table:
    """The figures of a program and of its last run.

    Args:
        checked: the rows of a check.
    """
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in (*rows(exe.profile), *checked):
        table.add_row(name, value)
    return table


def figure_table(title: str, columns: Iterable[str], text: Collection[str] = ()) -> Table:
    """An empty table of figures, aligned to the right.

    Args:
        text: the columns of words, which are aligned to the left and not broken.
    """
    table = Table(title=title, title_justify="left")
    for name in columns:
        words = name in text
        table.add_column(name, justify="left" if words else "right", no_wrap=words)
    return table
