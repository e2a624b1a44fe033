"""Standard output and standard error as terminals that show text unchanged.

rich reads markup such as `[bold]` in every text that it prints: in tables, titles and changing
lines. Names in programs contain brackets, too. So commands print only through this module: a test
fails for any other console.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.containers import Lines
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.status import Status
from rich.table import Table
from rich.text import Text

from ..driver.shown_text import shown

PIPE_COLUMNS = 120
"""The width of tables in a pipe or a file: what most editors and pages of logs show of a line."""


LONGEST_FIGURE = 24
"""The most characters of a figure: 1,234,567,890,123 bytes. Longer cells have words."""

SHORTEST_FOLD = 11
"""The fewest columns that words are folded into."""


BETWEEN = re.compile(r"[^/._+:,-]*[/._+:,-]+|[^/._+:,-]+")
"""The parts of a long name, each with what ends it."""


class _Folding(Text):
    """A text that folds names which are longer than a line between their parts."""

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        """The lines of the text in a width."""
        folded = re.sub(r"\S+", lambda word: _folded(word.group(), width), self.plain)
        if folded == self.plain or options.get("no_wrap") or self.no_wrap:
            return super().wrap(console, width, **options)
        made = Text(folded, self.style, justify=self.justify, overflow=self.overflow)
        return made.wrap(console, width, **options)


def _folded(word: str, width: int) -> str:
    """A word in lines that end where parts of it end. Parts that are longer than a line stay."""
    if cell_len(word) <= width:
        return word
    lines = [""]
    for part in BETWEEN.findall(word):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


class Terminal(Console):
    """A console to which every text is plain: no markup, no emoji codes, no control characters."""

    def __init__(
        self, *, file: TextIO | None = None, width: int | None = None, stderr: bool = False
    ) -> None:
        super().__init__(file=file, width=width, stderr=stderr, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text to print. rich calls this method for every cell, title and argument."""
        made = super().render_str(shown(text), **_plain(options))
        if made.spans:
            return made
        return _Folding(
            made.plain,
            made.style,
            justify=made.justify,
            overflow=made.overflow,
            no_wrap=made.no_wrap,
            end=made.end,
            tab_size=made.tab_size,
        )

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts and tables. A table that is too wide folds words, and breaks no figure.

        A pipe becomes wider for figures that need more.
        """
        for each in objects:
            # A console measures nothing wider than itself.
            if isinstance(each, Table) and UNBOUNDED.measure(each).maximum > self.width:
                least = fold_words(each)
                if not self.is_terminal:
                    self.width = max(self.width, least)
        super().print(*objects, **_plain(options))

    def status(self, status: Any, **options: Any) -> Status:
        """A changing line that reads markup: use `changing_line` instead."""
        raise NotImplementedError("use changing_line")


PADDING = 3
"""The columns that a column of a table takes beside its cells: two spaces and a line."""

UNBOUNDED = Terminal(width=10_000)
"""A console for measuring tables."""


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"markup": False, "emoji": False}


def console() -> Terminal:
    """Standard output. A pipe or a file is a terminal of PIPE_COLUMNS columns."""
    terminal = Terminal()
    return terminal if terminal.is_terminal else Terminal(width=PIPE_COLUMNS)


def fold_words(table: Table) -> int:
    """Let the columns of words share the width that figures leave, folded where they need more.

    Returns the least width in which no figure breaks.
    """
    least = 1
    for column in table.columns:
        longest = max((len(str(cell)) for cell in column.cells), default=0)
        column.no_wrap = column.justify == "right" and longest <= LONGEST_FIGURE
        column.overflow = "fold"
        if column.no_wrap:
            words = str(column.header).split()
            column.header = "\n".join(words)
            column.min_width = max(longest, *map(len, words), 0)
        else:
            column.min_width = min(longest, SHORTEST_FOLD)
        least += column.min_width + PADDING
    return least


@contextmanager
def changing_line() -> Generator[Callable[[str], None]]:
    """A function that shows a line on standard error in place of the last line.

    It shows nothing unless standard error is a terminal.
    """
    terminal = Terminal(stderr=True)
    if not terminal.is_terminal:
        yield lambda _: None
        return
    # A plain Text is not read as markup, which a str would be.
    with Status(Text(""), console=terminal) as status:
        yield lambda line: status.update(Text(shown(line)))


@dataclass(frozen=True)
class Bar:
    """A bar that shows the progress of some work.

    Attributes:
        advance: takes the number of finished parts, and a few words.
        line: prints a line that stays.
    """

    advance: Callable[[int, str], None]
    line: Callable[[str], None]


@contextmanager
def counting_bar(total: int) -> Generator[Bar]:
    """A bar on standard error, for work with `total` parts. Lines are printed above it.

    Unless standard error is a terminal, there is no bar, and lines go to standard output.
    """
    terminal = Terminal(stderr=True)
    if not terminal.is_terminal:
        yield Bar(lambda done, words: None, lambda line: _plain_line(line))
        return
    columns = (
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        # Without markup, words are shown unchanged.
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=terminal) as progress:
        task = progress.add_task("", total=total)

        def advance(done: int, words: str) -> None:
            progress.update(task, completed=done, description=shown(words))

        yield Bar(advance, terminal.print)


def _plain_line(line: str) -> None:
    sys.stdout.write(f"{shown(line)}\n")
    # A reader of a pipe wants to see the progress of training.
    sys.stdout.flush()
