"""The lines of a module's text, each with the operation that it shows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO

from xdsl.ir import Operation

from .aliases import Aliases, numbered_by_appearance
from .line_wrap import wrapped
from .printer import TextPrinter
from .upstream import LocationAttr, ModuleOp


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a module's text.

    Attributes:
        text: the line, indented, without locations.
        op: the first operation that begins on the line, or else the innermost one around it; the
            module for the definition of an alias.
        location: that of op at the time of printing.
        is_alias: whether the line belongs to the definition of an alias.
    """

    text: str
    op: Operation
    location: LocationAttr
    is_alias: bool = False


@dataclass(frozen=True, eq=False)
class Listing:
    """A module's text with locations, ending in a newline, and its lines without locations."""

    text: str
    lines: tuple[Line, ...]


class ListingPrinter(TextPrinter):
    """Prints a module, and can print any of its operations again later.

    Values keep the names of the first listing; new values get names that no value has had before.

    Attributes:
        aliases: the aliases assigned so far.
    """

    def __init__(self, aliases: Aliases | None = None) -> None:
        self._text = StringIO()
        super().__init__(self._text, print_debuginfo=True, aliases=aliases)
        self._spans: list[tuple[int, int, Operation]] = []
        self._locations: list[tuple[int, int]] = []
        self._names = 0
        self._hints: dict[str, int] = {}

    def listing(self, module: ModuleOp) -> Listing:
        """Print a module, below the definitions of its aliases.

        The text is the one that module_text returns. The lines keep the aliases that were assigned
        earlier.
        """
        self.forget_used()
        text, lines = self._printed(module, 0)
        text, names = numbered_by_appearance(text, self._used)
        parts = (*self._aliases.definitions(names), wrapped(text))
        whole = "".join(f"{part}\n" for part in parts)
        return Listing(whole, (*self.aliases(module), *lines))

    @property
    def alias_count(self) -> int:
        """The number of aliases used by the last listing and the lines printed since."""
        return len(self._used)

    def aliases(self, module: Operation) -> tuple[Line, ...]:
        """The definitions of the aliases used by the last listing and the lines printed since."""
        return tuple(
            Line(text, module, module.location, is_alias=True)
            for each in self.definitions()
            for text in each.split("\n")
        )

    def lines(self, op: Operation) -> tuple[Line, ...]:
        """Print an operation and those nested in it, indented as in the module."""
        return self._printed(op, sum(1 for _ in _ancestors(op)))[1]

    def _printed(self, op: Operation, depth: int) -> tuple[str, tuple[Line, ...]]:
        self._text.seek(0)
        self._text.truncate()
        self._spans, self._locations = [], []
        self._indent = depth
        self._text.write(" " * (depth * self.indent_num_spaces))
        self.print_op(op)
        # Names from scopes that are closed must not be used again.
        self._next_valid_name_id[-1] = max(self._names, self._next_valid_name_id[-1])
        self._ssa_names[-1].update(self._hints)
        text = self._text.getvalue()
        return text, tuple(_lines(text, self._spans, self._locations))

    def print_op(self, op: Operation) -> None:
        """Print an operation and record its position."""
        span = len(self._spans)
        start = self._text.tell()
        self._spans.append((start, start, op))
        super().print_op(op)
        self._spans[span] = (start, self._text.tell(), op)

    def exit_scope(self) -> None:
        """Leave a scope and record which names it used."""
        self._names = max(self._names, self._next_valid_name_id[-1])
        for hint, count in self.ssa_names.items():
            self._hints[hint] = max(count, self._hints.get(hint, 0))
        super().exit_scope()

    @contextmanager
    def in_location(self) -> Generator[None]:
        """Print a location and record its position."""
        outermost, start = not self.printing_location, self._text.tell()
        with super().in_location():
            yield
        if outermost:
            # The space before a location is removed with it.
            self._locations.append((start - 1, self._text.tell()))


def _lines(
    text: str, spans: list[tuple[int, int, Operation]], locations: list[tuple[int, int]]
) -> Iterator[Line]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    ops = _operations(starts, spans)
    pieces: list[list[str]] = [[] for _ in ops]
    end = 0
    kept = [*locations, (len(text), len(text))]
    for first, after in kept:
        row = bisect_right(starts, end) - 1
        for index, piece in enumerate(text[end:first].split("\n"), start=row):
            pieces[index].append(piece)
        end = after
    yield from (
        Line(text, op, op.location)
        for parts, op in zip(pieces, ops, strict=True)
        for text in wrapped("".join(parts)).split("\n")
    )


def _operations(starts: list[int], spans: list[tuple[int, int, Operation]]) -> list[Operation]:
    """The operation of each line: the first that begins on it, else the innermost around it."""
    begun: dict[int, Operation] = {}
    around: dict[int, Operation] = {}
    # Operations come before those nested in them.
    for start, end, op in spans:
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end) - 1
        begun.setdefault(first, op)
        around.update(dict.fromkeys(range(first + 1, last + 1), op))
    return [begun.get(row) or around[row] for row in range(len(starts) - 1)]


def _ancestors(op: Operation) -> Iterator[Operation]:
    outer = op.parent_op()
    while outer is not None:
        yield outer
        outer = outer.parent_op()
