"""A module as numbered lines that know their operations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO

from xdsl.ir import Operation

from .printer import TextPrinter
from .upstream import LocationAttr, ModuleOp


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a module's text. op: the innermost operation that is written there.

    text: indented, without locations. location: the operation's, when it was printed.
    """

    text: str
    op: Operation
    location: LocationAttr


@dataclass(frozen=True, eq=False)
class Listing:
    """The text of a module, ending in a newline, with locations; and its lines, without."""

    text: str
    lines: tuple[Line, ...]


class ListingPrinter(TextPrinter):
    """Prints a module, then any operation of it again, under the names its values got first.

    Values that come to be later get names that nothing had before.
    """

    def __init__(self) -> None:
        self._text = StringIO()
        super().__init__(self._text, print_debuginfo=True)
        self._spans: list[tuple[int, int, Operation]] = []
        self._locations: list[tuple[int, int]] = []
        self._names = 0
        self._hints: dict[str, int] = {}

    def listing(self, module: ModuleOp) -> Listing:
        """Print a module."""
        text, lines = self._printed(module, 0)
        return Listing(text + "\n", lines)

    def lines(self, op: Operation) -> tuple[Line, ...]:
        """Print an operation, and those in it, as deep as it stands."""
        return self._printed(op, sum(1 for _ in _ancestors(op)))[1]

    def _printed(self, op: Operation, depth: int) -> tuple[str, tuple[Line, ...]]:
        self._text.seek(0)
        self._text.truncate()
        self._spans, self._locations = [], []
        self._indent = depth
        self._text.write(" " * (depth * self.indent_num_spaces))
        self.print_op(op)
        # Names of scopes that were left stay taken.
        self._next_valid_name_id[-1] = max(self._names, self._next_valid_name_id[-1])
        self._ssa_names[-1].update(self._hints)
        text = self._text.getvalue()
        return text, tuple(_lines(text, self._spans, self._locations))

    def print_op(self, op: Operation) -> None:
        """Print an operation, and note where."""
        span = len(self._spans)
        start = self._text.tell()
        self._spans.append((start, start, op))
        super().print_op(op)
        self._spans[span] = (start, self._text.tell(), op)

    def exit_scope(self) -> None:
        """Leave a scope, and note the names it used."""
        self._names = max(self._names, self._next_valid_name_id[-1])
        for hint, count in self.ssa_names.items():
            self._hints[hint] = max(count, self._hints.get(hint, 0))
        super().exit_scope()

    @contextmanager
    def in_location(self) -> Generator[None]:
        """Print a location, and note where."""
        outermost, start = not self.printing_location, self._text.tell()
        with super().in_location():
            yield
        if outermost:
            # The space before it belongs to it.
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
        Line("".join(parts), op, op.location) for parts, op in zip(pieces, ops, strict=True)
    )


def _operations(starts: list[int], spans: list[tuple[int, int, Operation]]) -> list[Operation]:
    """The operation of each line: the first that begins there, else the innermost around it."""
    begun: dict[int, Operation] = {}
    around: dict[int, Operation] = {}
    # Outer operations come before those in them.
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
