"""Where an operation came from: a framework's node, a line of a file, or both.

A NameLoc holds the name of the node. Each step of the node's lowering adds a part to the name
("bn1/scale"), so the first part is always the name that the framework uses. If the model's file
calls the node differently, a NameLoc inside holds that name: users know it from other programs that
show the file. xDSL's rewriters drop locations: use LocatingWalker for patterns, and located or
locate for hand-written conversions.
"""

import os
from collections.abc import Container, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue

from .rewriting import Rewrite, Termination, may_rewrite, source_of
from .upstream import (
    UNKNOWN_LOC,
    BuilderListener,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    UnknownLoc,
)

NO_COLUMN = 0
"""The column of a place in a file of which only the line is known. Columns are counted from 1."""


MOST_IN_NOTE = 200
"""The most characters of the name in the model's file that a message shows."""


def named(name: str, location: LocationAttr | None = None) -> NameLoc:
    """The location of a framework's node.

    Args:
        location: its place in a file, if known.
    """
    return _named(name) if location is None else NameLoc(StringAttr(name), location)


@lru_cache(maxsize=8192)
def _named(name: str) -> NameLoc:
    return NameLoc(StringAttr(name), NoneAttr())


def source_line(file: str, line: int) -> FileLineColLoc:
    """The location of a line of a file whose column is not known."""
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(NO_COLUMN))


def fused(sources: Iterable[Operation | LocationAttr]) -> LocationAttr:
    """The location of an operation made from several sources: each known location once."""
    parts: dict[Attribute, None] = {}
    for source in sources:
        location = _location(source)
        inner = _parts(location) if isinstance(location, FusedLoc) else (location,)
        parts.update((part, None) for part in inner if is_known(part))
    known = tuple(parts)
    if len(known) > 1:
        return FusedLoc(known, NoneAttr())
    return cast(LocationAttr, known[0]) if known else UNKNOWN_LOC


def at(source: Operation | LocationAttr | str, *path: str) -> LocationAttr:
    """The location of a step in the lowering of a source.

    at(op, "scale") names the node "bn1/scale" if op came from the node "bn1".
    """
    if isinstance(source, str):
        return named("/".join((source, *path)))
    location = _location(source)
    if not path:
        return location
    inner = _file_place(location)
    if own := file_names(location):
        inner = named("/".join(("+".join(own), *path)), inner)
    head = _names(location)
    return named("/".join(("+".join(head), *path) if head else path), inner)


def is_known(location: Attribute) -> bool:
    """Whether a location holds any information."""
    return not isinstance(location, UnknownLoc | NoneAttr)


def origin_names(source: Operation | LocationAttr) -> tuple[str, ...]:
    """The distinct paths of all nodes from which an operation was made, in order.

    If there are none but the place in a file is known: "file:line:column" of that place, without
    the file's folder. Variables get these names, so they must not depend on the folder.
    """
    location = _location(source)
    names = _names(location)
    if names:
        return names
    place = _file_place(location)
    return () if place is None else (os.path.basename(_file_text(place)),)


def file_names(source: Operation | LocationAttr) -> tuple[str, ...]:
    """The names of an operation's nodes in the model's file, where they differ, in order."""
    return tuple(dict.fromkeys(_inner_names(_location(source))))


def inner_location(location: LocationAttr) -> LocationAttr | None:
    """What the location of a node holds besides its name; None if it holds no more."""
    inner = location.location if isinstance(location, NameLoc) else location
    return inner if isinstance(inner, LocationAttr) and is_known(inner) else None


def note_of(source: Operation | LocationAttr) -> str:
    """What messages add to the name of a node: "net.py:5, 'node_3' in the file"; "" if nothing."""
    names = (f"{name[:MOST_IN_NOTE]!r} in the file" for name in file_names(source)[:1])
    return ", ".join((*filter(None, [line_of(source)]), *names))


def line_of(source: Operation | LocationAttr) -> str:
    """The line of a file that an operation came from, without the file's folder: "net.py:5" or
    "net.py:5:1"; "" if it is not known."""
    place = _file_place(_location(source))
    return "" if place is None else os.path.basename(_file_text(place))


def origin(source: Operation | LocationAttr) -> str | None:
    """The paths from origin_names, joined by "+"; None if there are none."""
    return "+".join(origin_names(source)) or None


def place(op: Operation) -> str:
    """Where an operation is, for messages: its node, its line, or the symbol around it."""
    text = _text(op.location)
    if text:
        return text
    outer: Operation | None = op
    while outer is not None:
        symbol = outer.properties.get("sym_name") or outer.attributes.get("sym_name")
        if isinstance(symbol, StringAttr):
            return f"unknown line in @{symbol.data}"
        outer = outer.parent_op()
    return "unknown line"


def origins(module: ModuleOp) -> tuple[str, ...]:
    """The origins of a module's operations, each once, in the order of the program."""
    return tuple({name: None for op in module.walk() if (name := origin(op)) is not None})


def locate(ops: Operation | Iterable[Operation], source: Operation | LocationAttr) -> None:
    """Set the location of operations, and of those nested in them, that have none yet."""
    location = _location(source)
    for outer in (ops,) if isinstance(ops, Operation) else ops:
        for op in outer.walk():
            if not is_known(op.location):
                op.location = location


@contextmanager
def located(
    builder: BuilderListener, source: Operation | LocationAttr, *path: str
) -> Generator[None]:
    """Within the block, operations inserted by a builder or rewriter get at(source, *path).

    Those that already have a location keep it.
    """
    location = at(source, *path)

    def give_location(op: Operation) -> None:
        locate(op, location)

    builder.operation_insertion_handler.append(give_location)
    try:
        yield
    finally:
        builder.operation_insertion_handler.remove(give_location)


@dataclass(eq=False, repr=False)
class LocatingWalker(PatternRewriteWalker):
    """xDSL's walker, which also gives new operations locations and reports every rewrite.

    A new operation that replaces another gets the location of that one. Any other new operation,
    such as a constant made by folding, gets the location of the matched operation. Locations that
    a pattern sets itself (by at or fused) stay. When a pattern fails, a note on the error names the
    matched operation; xDSL would print the whole module. Raises InputError for patterns that
    rewrite for ever.
    """

    def __post_init__(self) -> None:
        self.pattern = _LocatingPattern(self.pattern)

    def rewrite_region(self, region: Region) -> bool:
        """Rewrite the operations in a region; true if anything changed."""
        assert isinstance(self.pattern, _LocatingPattern)
        self.pattern.termination = Termination(sum(1 for _ in region.walk()))
        try:
            return super().rewrite_region(region)
        except _PatternFailure as failure:
            error = failure.error
        raise error


ROOTS = "roots"
"""A pattern with this attribute matches only operations of these classes, not of their bases."""


class _PatternFailure(BaseException):
    """Carries a pattern's error past xDSL's handler, which would add the whole module to it."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


@dataclass(eq=False, repr=False)
class _LocatingPattern(RewritePattern):
    pattern: RewritePattern
    termination: Termination = field(default_factory=lambda: Termination(0))

    def __post_init__(self) -> None:
        self.roots: Container[type[Operation]] | None = getattr(self.pattern, ROOTS, None)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if self.roots is not None and type(op) not in self.roots:
            return
        if not may_rewrite():
            return
        name, location = op.name, op.location
        inserted: set[Operation] = set()
        rewrite: Rewrite | None = None

        def begun() -> Rewrite:
            nonlocal rewrite
            if rewrite is None:
                # By its first change, the pattern has matched one of its rules, so its source is
                # known now.
                rewrite = Rewrite(source_of(self.pattern), op)
            return rewrite

        def on_insertion(new: Operation) -> None:
            if not is_known(new.location):
                inserted.add(new)
                locate(new, location)
            begun().inserted(new)

        def on_replacement(old: Operation, values: Sequence[SSAValue | None]) -> None:
            for value in values:
                if isinstance(value, OpResult) and value.op in inserted and is_known(old.location):
                    value.op.location = old.location
            begun().replaced(old, values)

        def on_removal(old: Operation) -> None:
            begun().removed(old)

        def on_modification(changed: Operation) -> None:
            begun().modified(changed)

        rewriter.operation_insertion_handler.append(on_insertion)
        rewriter.operation_replacement_handler.append(on_replacement)
        rewriter.operation_removal_handler.append(on_removal)
        rewriter.operation_modification_handler.append(on_modification)
        try:
            self.pattern.match_and_rewrite(op, rewriter)
            if rewrite is not None:
                rewrite.done()
                self.termination.count(rewrite.source, _text(location) or name)
        except Exception as error:
            error.add_note(f"while rewriting {name} at {_text(location) or 'an unknown line'}")
            raise _PatternFailure(error) from None
        finally:
            rewriter.operation_insertion_handler.remove(on_insertion)
            rewriter.operation_replacement_handler.remove(on_replacement)
            rewriter.operation_removal_handler.remove(on_removal)
            rewriter.operation_modification_handler.remove(on_modification)


def _text(location: Attribute) -> str:
    """A location in words: its node, its line, or "" if it has neither."""
    names, file = _names(location), _file_place(location)
    if names:
        return "+".join(names) + (f" ({_file_text(file)})" if file else "")
    return _file_text(file) if file else ""


def _location(source: Operation | LocationAttr) -> LocationAttr:
    return source.location if isinstance(source, Operation) else source


def _parts(location: FusedLoc) -> tuple[LocationAttr, ...]:
    return cast(ArrayAttr[LocationAttr], location.locations).data


def _children(location: Attribute) -> tuple[Attribute, ...]:
    match location:
        case NameLoc():
            return (location.location,)
        case FusedLoc():
            return _parts(location)
        case CallSiteLoc():
            return (location.callee, location.caller)
        case _:
            return ()


def _names(location: Attribute) -> tuple[str, ...]:
    """The names in a location: only the outermost on each branch, once each.

    A call site has the names of its callee, or else of its caller.
    """
    match location:
        case NameLoc():
            return (location.desc.data,)
        case CallSiteLoc():
            return _names(location.callee) or _names(location.caller)
        case _:
            return tuple(dict.fromkeys(n for part in _children(location) for n in _names(part)))


def _inner_names(location: Attribute) -> Iterator[str]:
    """The names in a location that another name encloses."""
    if isinstance(location, NameLoc):
        yield from _names(location.location)
    for part in _children(location):
        yield from _inner_names(part)


def _file_place(location: Attribute) -> FileLineColLoc | None:
    if isinstance(location, FileLineColLoc):
        return location
    return next((p for part in _children(location) if (p := _file_place(part))), None)


def _file_text(location: FileLineColLoc) -> str:
    column = location.column.data
    line = f"{location.filename.data}:{location.line.data}"
    return line if column == NO_COLUMN else f"{line}:{column}"
