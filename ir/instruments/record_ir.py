"""Records the program after each pass and the single rewrites that led to it, for display."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from time import perf_counter

from xdsl.ir import Operation, SSAValue

from ..aliases import Aliases
from ..listing import Line, Listing, ListingPrinter
from ..pass_manager import Instrument
from ..rewriting import Source, Watcher, watched
from ..step import RunningPass
from ..upstream import ModuleOp

UNREPORTED = Source("changes that the pass does not report")
"""The source of a last change, which holds all differences that no reported rewrite explains."""

TOP = -1
"""In place of a line number: before all lines."""


@dataclass(frozen=True)
class Change:
    """One rewrite as a change of lines, which are identified by number.

    Attributes:
        root: the line of the matched operation; TOP if it has none.
        inserted: runs of new lines, each with the line that it follows; insert them in this order.
        removed: the lines to remove after that.
    """

    source: Source
    root: int
    inserted: tuple[tuple[int, tuple[int, ...]], ...]
    removed: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Stage:
    """The program after a pass.

    Attributes:
        name, spec: "" for the input.
        listing: None if it has not changed.
        changes: the rewrites that the pass reported.
        new_lines: the lines that they inserted; their numbers continue those of the previous
            stage's lines.
        error: why the pass failed, or "".
        seconds: the time that recording the rewrites added to the pass.
    """

    name: str
    spec: str
    listing: Listing | None
    changes: tuple[Change, ...] = ()
    new_lines: tuple[Line, ...] = ()
    error: str = ""
    seconds: float = 0.0


class RecordIR(Instrument):
    """Record a Stage for the input and for each pass.

    Attributes:
        listing: the current program.
    """

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.listing = Listing("", ())
        self._aliases = Aliases()
        self._printer = ListingPrinter(self._aliases)
        self._changes = RewriteRecorder(self._printer, self.listing)
        self._watching = ExitStack()

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Watch the pass. Before the first one, record the input."""
        if step.index == 0:
            self.stages = []
            self._print(module)
            self.stages.append(Stage("", "", self.listing))
        self._changes = RewriteRecorder(self._printer, self.listing)
        self._watching.enter_context(watched(self._changes))

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Record the program after the pass."""
        self._watching.close()
        self._changes.finish(module)
        before = self.listing
        self._print(module)
        self._keep(step, self.listing if self.listing.text != before.text else None)

    def failed(self, step: RunningPass, module: ModuleOp, error: Exception) -> None:
        """Record the rewrites of a failed pass, and the program it left if that can be printed."""
        self._watching.close()
        if len(self.stages) == step.index + 2:
            self.stages.pop()
        try:
            self._print(module)
            left = self.listing
        except Exception:  # printing a broken module may raise anything
            left = None
        self._keep(step, left, f"{type(error).__name__}: {error}")

    def _print(self, module: ModuleOp) -> None:
        # Stages share aliases, so that each alias means the same in all of them.
        self._printer = ListingPrinter(self._aliases)
        self.listing = self._printer.listing(module)

    def _keep(self, step: RunningPass, listing: Listing | None, error: str = "") -> None:
        spec = str(step.current.spec())
        made = self._changes
        self.stages.append(
            Stage(
                step.current.name,
                spec,
                listing,
                tuple(made.changes),
                tuple(made.new),
                error,
                made.seconds,
            )
        )


@dataclass
class _Pending:
    """The changes of a rewrite that has not ended yet."""

    source: Source
    root: int
    touched: dict[Operation, None] = field(default_factory=dict[Operation, None])
    placed: dict[Operation, None] = field(default_factory=dict[Operation, None])
    removed: list[Operation] = field(default_factory=list[Operation])


class RewriteRecorder(Watcher):
    """Turns the rewrites of one pass into changes of the lines of its module.

    Attributes:
        listing: the module before the pass.
        printer: the one that printed the listing; it prints only the operations that a rewrite
            touches.
        seconds: the time that recording has taken.
    """

    def __init__(self, printer: ListingPrinter, listing: Listing) -> None:
        self.changes: list[Change] = []
        self.new: list[Line] = []
        self.seconds = 0.0
        self._printer = printer
        self._known = listing.lines
        self._own: dict[Operation, list[int]] | None = None
        self._next: dict[int, int] = {}
        self._previous: dict[int, int] = {}
        self._open: list[_Pending] = []
        given = [line for line in self._known if line.is_alias]
        self._aliases = {key: number for number, (key, _) in enumerate(_keyed(given))}
        self._alias_count = printer.alias_count

    def begin(self, source: Source, root: Operation) -> None:
        """Begin a rewrite. The first one computes the lines of all operations."""
        if self._own is None:
            self._own = {}
            for number, line in enumerate(self._known):
                if not line.is_alias:
                    self._own.setdefault(line.op, []).append(number)
            numbers = range(TOP, len(self._known))
            self._next = {number: number + 1 for number in numbers[:-1]}
            self._previous = {number + 1: number for number in numbers[:-1]}
        lines = self._lines(root)
        self._open.append(_Pending(source, lines[0] if lines else TOP))

    def inserted(self, op: Operation) -> None:
        """Note a new operation. It is printed at the end, since it may still be modified."""
        if self._open:
            self._open[-1].placed[op] = None

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Note the users of the results, whose operands will change."""
        if self._open:
            users = (use.operation for result in op.results for use in result.uses)
            self._open[-1].touched.update(dict.fromkeys(users))

    def modified(self, op: Operation) -> None:
        """It will show."""
        if self._open:
            self._open[-1].touched[op] = None

    def removed(self, op: Operation) -> None:
        """Record that the operation must be printed again."""
        if self._open:
            self._open[-1].removed += op.walk()

    def end(self) -> None:
        """Record the rewrite as a change between the lines before and after it."""
        start = perf_counter()
        done = self._open.pop()
        gone = [number for op in done.removed for number in self._forget(op)]
        inserted: list[tuple[int, tuple[int, ...]]] = []
        for op in done.placed:
            self._place(op, inserted)
        for op in done.touched:
            if op not in done.placed:
                self._print_again(op, inserted, gone)
        for number in gone:
            self._unlink(number)
        self._define_aliases(inserted)
        if inserted or gone:
            self.changes.append(Change(done.source, done.root, tuple(inserted), tuple(gone)))
        self.seconds += perf_counter() - start

    def finish(self, module: ModuleOp) -> None:
        """Complete the record after the pass: add the unreported changes, if any rewrite was
        reported.
        """
        if not self.changes:
            return
        order = list(self._order())
        numbers = [n for n in order if not self._line(n).is_alias]
        last_alias = next((n for n in reversed(order) if self._line(n).is_alias), TOP)
        lines = [line for line in self._printer.listing(module).lines if not line.is_alias]
        have = [self._line(number).text for number in numbers]
        want = [each.text for each in lines]
        if have == want:
            return
        inserted: list[tuple[int, tuple[int, ...]]] = []
        gone: list[int] = []
        for kind, i, j, p, q in SequenceMatcher(None, have, want, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            gone += numbers[i:j]
            if p < q:
                after = numbers[j - 1] if j else last_alias
                inserted.append((after, self._add(after, lines[p:q])))
        # The listing has counted its aliases from 0.
        self._alias_count = -1
        self._define_aliases(inserted)
        self.changes.append(Change(UNREPORTED, TOP, tuple(inserted), tuple(gone)))

    # Operations and their lines

    def _lines(self, op: Operation) -> list[int]:
        return (self._own or {}).get(op, [])

    def _forget(self, op: Operation) -> list[int]:
        return (self._own or {}).pop(op, [])

    def _place(self, op: Operation, inserted: list[tuple[int, tuple[int, ...]]]) -> None:
        """Print a new operation and the new ones before it, each after its predecessor."""
        outer = op.parent_op()
        # Skip an operation that was removed again, and one that was printed with its parent.
        if outer is None or not self._lines(outer) or self._lines(op):
            return
        first = op
        while first.prev_op is not None and not self._lines(first.prev_op):
            first = first.prev_op
        while not self._lines(op):
            after = self._place_after(first)
            inserted.append((after, self._add(after, self._printer.lines(first))))
            first = first.next_op or op

    def _place_after(self, op: Operation) -> int:
        """The line after which to insert an operation."""
        if op.prev_op is not None:
            return self._last(op.prev_op)
        following = op.next_op
        while following is not None:
            if lines := self._lines(following):
                return self._previous[lines[0]]
            following = following.next_op
        outer = op.parent_op()
        lines = self._lines(outer) if outer is not None else []
        # A long line is broken into several. The region starts after the one that opens it.
        opening = (number for number in lines if self._line(number).text.endswith("{"))
        return next(opening, lines[0] if lines else TOP)

    def _last(self, op: Operation) -> int:
        """The last line of an operation."""
        numbers = self._lines(op)
        return numbers[-1] if numbers else TOP

    def _print_again(
        self, op: Operation, inserted: list[tuple[int, tuple[int, ...]]], gone: list[int]
    ) -> None:
        """Print an operation that may have changed. If it has, replace all lines of it."""
        if not self._lines(op) or not _is_attached(op):
            return
        old = self._all_lines(op)
        lines = self._printer.lines(op)
        if [each.text for each in lines] == [self._line(number).text for number in old]:
            return
        after = old[-1]
        for each in op.walk():
            self._forget(each)
        inserted.append((after, self._add(after, lines)))
        gone += old

    def _all_lines(self, op: Operation) -> list[int]:
        """All lines from an operation's first to its last, including those of nested operations."""
        first, *_, last = (*self._lines(op), self._last(op))
        numbers = [first]
        while numbers[-1] != last:
            numbers.append(self._next[numbers[-1]])
        return numbers

    # Aliases and their lines

    def _define_aliases(self, inserted: list[tuple[int, tuple[int, ...]]]) -> None:
        """Insert the definitions of new aliases at their places among the others."""
        if self._printer.alias_count == self._alias_count or not self._known:
            return
        self._alias_count = self._printer.alias_count
        after = TOP
        for key, line in _keyed(self._printer.aliases(self._known[-1].op)):
            if key not in self._aliases:
                (self._aliases[key],) = numbers = self._add(after, [line])
                inserted.append((after, numbers))
            after = self._aliases[key]

    # The lines as a list with links

    def _line(self, number: int) -> Line:
        before = len(self._known)
        return self._known[number] if number < before else self.new[number - before]

    def _add(self, after: int, lines: Sequence[Line]) -> tuple[int, ...]:
        """Insert new lines after another one, and return their numbers."""
        numbers: list[int] = []
        for line in lines:
            number = len(self._known) + len(self.new)
            self.new.append(line)
            numbers.append(number)
            if self._own is not None and not line.is_alias:
                self._own.setdefault(line.op, []).append(number)
            following = self._next.get(after)
            self._next[after], self._previous[number] = number, after
            if following is not None:
                self._next[number], self._previous[following] = following, number
            after = number
        return tuple(numbers)

    def _unlink(self, number: int) -> None:
        before, after = self._previous.pop(number), self._next.pop(number, None)
        if after is None:
            self._next.pop(before, None)
        else:
            self._next[before], self._previous[after] = after, before

    def _order(self) -> Iterator[int]:
        number = self._next.get(TOP)
        while number is not None:
            yield number
            number = self._next.get(number)


def _keyed(aliases: Sequence[Line]) -> Iterator[tuple[tuple[str, int], Line]]:
    """Lines that define aliases, each with a key: its definition's first line, and its index."""
    first, place = "", 0
    for line in aliases:
        first, place = (line.text, 0) if line.text.startswith("#") else (first, place + 1)
        yield (first, place), line


def _is_attached(op: Operation) -> bool:
    outer: Operation | None = op
    while outer is not None and not isinstance(outer, ModuleOp):
        outer = outer.parent_op()
    return outer is not None
