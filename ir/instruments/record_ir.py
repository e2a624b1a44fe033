"""The program after each pass, and every single rewrite that led there, kept to be shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from time import perf_counter

from xdsl.ir import Operation, SSAValue

from ..aliases import Aliases
from ..listing import Line, Listing, ListingPrinter
from ..pass_manager import Instrument, Step
from ..rewriting import Source, Watcher, watched
from ..upstream import ModuleOp

UNREPORTED = Source("changes that the pass does not report")
"""The rule of a last rewrite, which holds what is left between the reported ones and the result."""

TOP = -1
"""Where lines go that come before all others."""


@dataclass(frozen=True)
class Change:
    """One rewrite, in numbers of lines.

    root: the line of the operation that was matched; TOP if it has none. inserted: runs of new
    lines, each with the line that it comes after, to be put there in this order. removed: lines
    that go once those are there.
    """

    source: Source
    root: int
    inserted: tuple[tuple[int, tuple[int, ...]], ...]
    removed: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Stage:
    """The program after a pass. name, spec: "" for the input. listing: None where it is as before.

    changes: the rewrites that the pass reported. new_lines: those that they inserted; lines are
    numbered from those of the stage before on to these. error: why the pass failed. seconds: that
    keeping the rewrites has added to the pass.
    """

    name: str
    spec: str
    listing: Listing | None
    changes: tuple[Change, ...] = ()
    new_lines: tuple[Line, ...] = ()
    error: str = ""
    seconds: float = 0.0


class RecordIR(Instrument):
    """Keep a Stage for the input and for each pass. listing: of the program as it is now."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.listing = Listing("", ())
        self._aliases = Aliases()
        self._printer = ListingPrinter(self._aliases)
        self._changes = RewriteRecorder(self._printer, self.listing)
        self._watching = ExitStack()

    def before(self, step: Step, module: ModuleOp) -> None:
        """Keep the input, once; watch the pass."""
        if step.index == 0:
            self.stages = []
            self._print(module)
            self.stages.append(Stage("", "", self.listing))
        self._changes = RewriteRecorder(self._printer, self.listing)
        self._watching.enter_context(watched(self._changes))

    def after(self, step: Step, module: ModuleOp) -> None:
        """Keep what the pass has made of it."""
        self._watching.close()
        self._changes.finish(module)
        before = self.listing
        self._print(module)
        self._keep(step, self.listing if self.listing.text != before.text else None)

    def failed(self, step: Step, module: ModuleOp, error: Exception) -> None:
        """Keep what the pass has left, if it can be printed; its rewrites in any case."""
        self._watching.close()
        if len(self.stages) == step.index + 2:
            self.stages.pop()
        try:
            self._print(module)
            left = self.listing
        except Exception:  # a broken module may fail to print in any way
            left = None
        self._keep(step, left, f"{type(error).__name__}: {error}")

    def _print(self, module: ModuleOp) -> None:
        # An alias means the same in all stages.
        self._printer = ListingPrinter(self._aliases)
        self.listing = self._printer.listing(module)

    def _keep(self, step: Step, listing: Listing | None, error: str = "") -> None:
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
    """What a rewrite has done so far."""

    source: Source
    root: int
    touched: dict[Operation, None] = field(default_factory=dict[Operation, None])
    placed: dict[Operation, None] = field(default_factory=dict[Operation, None])
    removed: list[Operation] = field(default_factory=list[Operation])


class RewriteRecorder(Watcher):
    """Turns the rewrites of one pass into changes of the lines that its module had before.

    printer: has printed the listing. Only what a rewrite touches is printed again. seconds: that
    this has taken within the pass.
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
        """A rewrite begins; the first asks for the lines of all operations."""
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
        """It is printed once the rewrite is done: it may be modified before."""
        if self._open:
            self._open[-1].placed[op] = None

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Users will show other operands."""
        if self._open:
            users = (use.operation for result in op.results for use in result.uses)
            self._open[-1].touched.update(dict.fromkeys(users))

    def modified(self, op: Operation) -> None:
        """It will show."""
        if self._open:
            self._open[-1].touched[op] = None

    def removed(self, op: Operation) -> None:
        """Its lines go, with those of all that it holds."""
        if self._open:
            self._open[-1].removed += op.walk()

    def end(self) -> None:
        """Note what has changed between the lines before and those that are there now."""
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
        """After the pass: add what changed without a report, if there were reports at all."""
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
        # The listing has counted anew.
        self._alias_count = -1
        self._define_aliases(inserted)
        self.changes.append(Change(UNREPORTED, TOP, tuple(inserted), tuple(gone)))

    # Operations and their lines

    def _lines(self, op: Operation) -> list[int]:
        return (self._own or {}).get(op, [])

    def _forget(self, op: Operation) -> list[int]:
        return (self._own or {}).pop(op, [])

    def _place(self, op: Operation, inserted: list[tuple[int, tuple[int, ...]]]) -> None:
        """Print an operation where it stands, after those before it."""
        outer = op.parent_op()
        # One that has left again is not there; what came inside of another is printed with that.
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
        """The line that an operation comes after."""
        if op.prev_op is not None:
            return self._last(op.prev_op)
        following = op.next_op
        while following is not None:
            if lines := self._lines(following):
                return self._previous[lines[0]]
            following = following.next_op
        outer = op.parent_op()
        lines = self._lines(outer) if outer is not None else []
        # A long line is broken: what follows comes after the piece that opens the region.
        opening = (number for number in lines if self._line(number).text.endswith("{"))
        return next(opening, lines[0] if lines else TOP)

    def _last(self, op: Operation) -> int:
        """The last line of an operation."""
        numbers = self._lines(op)
        return numbers[-1] if numbers else TOP

    def _print_again(
        self, op: Operation, inserted: list[tuple[int, tuple[int, ...]]], gone: list[int]
    ) -> None:
        """Print an operation that may have changed, with all that it holds if so."""
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
        """The lines from an operation's first to its last, those of what it holds among them."""
        first, *_, last = (*self._lines(op), self._last(op))
        numbers = [first]
        while numbers[-1] != last:
            numbers.append(self._next[numbers[-1]])
        return numbers

    # Aliases and their lines

    def _define_aliases(self, inserted: list[tuple[int, tuple[int, ...]]]) -> None:
        """Put the definitions of new aliases where they belong among the others."""
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
        """New lines behind another; their numbers."""
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
    """Lines that define aliases, each under its definition's first line and its place in it."""
    first, place = "", 0
    for line in aliases:
        first, place = (line.text, 0) if line.text.startswith("#") else (first, place + 1)
        yield (first, place), line


def _is_attached(op: Operation) -> bool:
    outer: Operation | None = op
    while outer is not None and not isinstance(outer, ModuleOp):
        outer = outer.parent_op()
    return outer is not None
