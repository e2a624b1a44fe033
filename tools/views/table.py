"""The table that a command prints: size and cost of a program."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from ..driver.executable import Executable
from ..driver.figures import rows


def summary(exe: Executable, title: str, checked: Iterable[tuple[str, str]] = ()) -> Table:
    """The figures of a program and of its last run. checked: the rows of a check."""
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in (*rows(exe.profile), *checked):
        table.add_row(name, value)
    return table
