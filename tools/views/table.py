"""The tables that commands print: size and cost of a program, and rows of figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from rich.table import Table

from ..driver.executable import Executable
from ..driver.figures import rows

MOST_WORDS = 12
"""The most labels of an output that are listed."""


def summary(exe: Executable, title: str, checked: Iterable[tuple[str, str]] = ()) -> Table:
    """The figures of a program and of its last run.

    Args:
        checked: the rows of a check.
    """
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in (*rows(exe.profile), *_words(exe), *checked):
        table.add_row(name, value)
    return table


def _words(exe: Executable) -> Iterator[tuple[str, str]]:
    """The strings that the elements of outputs stand for, and the names of their columns."""
    for each in exe.outputs:
        for what, texts in (("labels", each.texts), ("columns", each.columns)):
            if texts:
                more = f", and {len(texts) - MOST_WORDS} more" if len(texts) > MOST_WORDS else ""
                yield f"{what} of {each.name}", ", ".join(texts[:MOST_WORDS]) + more


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
