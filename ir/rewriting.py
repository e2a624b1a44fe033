"""Single rewrites: which rule made each, who watches them, how many may happen.

LocatingWalker reports every rewrite of every pattern here. A pass that rewrites by hand uses
`edit.Edit`, which reports each change. Nothing is kept unless somebody watches.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

from xdsl.ir import Operation, SSAValue

from .errors import InputError

FEWEST_REWRITES = 2_000
REWRITES_AN_OPERATION = 64
"""Patterns that terminate stay far below this many rewrites for each operation they began with."""

REMEMBERED = 256


@dataclass(frozen=True)
class Source:
    """Where a rule or a pattern is written. line: from 1; 0 where it is not known."""

    name: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.file}:{self.line})" if self.file else self.name


@runtime_checkable
class Sourced(Protocol):
    """A pattern that knows which of its rules has just matched."""

    @property
    def source(self) -> Source:
        """The rule that matched last."""
        ...


def source_of(pattern: object) -> Source:
    """Where a pattern is written: what it says itself, or the lines of its class."""
    if isinstance(pattern, Sourced):
        return pattern.source
    return _source_of_class(type(pattern))


@cache
def _source_of_class(cls: type) -> Source:
    # The method may be a wrapper's, whose code stands elsewhere: the class is the user's own.
    try:
        file, (_, line) = inspect.getsourcefile(cls), inspect.getsourcelines(cls)
    except (OSError, TypeError):
        return Source(cls.__name__)
    return Source(cls.__name__, Path(file or "").name, line)


class Watcher:
    """Something that is told of every rewrite; each hook does nothing unless overridden."""

    def begin(self, source: Source, root: Operation) -> None:
        """Before the first change of a rewrite; root is the operation that was matched."""

    def inserted(self, op: Operation) -> None:
        """An operation is there now."""

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Users of the results of an operation are about to take these values instead."""

    def modified(self, op: Operation) -> None:
        """An operation has other operands or attributes now."""

    def removed(self, op: Operation) -> None:
        """An operation is about to go."""

    def end(self) -> None:
        """The rewrite is done."""


@dataclass
class _Fuel:
    left: int


_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())
_fuel: ContextVar[_Fuel | None] = ContextVar("fuel", default=None)


@contextmanager
def watched(watcher: Watcher) -> Generator[None]:
    """Within the block, a watcher is told of every rewrite."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


@contextmanager
def limited(rewrites: int) -> Generator[None]:
    """Within the block, only so many rewrites happen; after them patterns match nothing.

    The program stays valid after any rewrite, so the one that breaks it can be searched for.
    """
    token = _fuel.set(_Fuel(rewrites))
    try:
        yield
    finally:
        _fuel.reset(token)


def may_rewrite() -> bool:
    """False once the rewrites that limited allows have happened."""
    fuel = _fuel.get()
    return fuel is None or fuel.left > 0


class Rewrite:
    """One rewrite, reported as it happens: it begins with its first change, and ends with done.

    `edit.Edit` makes the changes as well.
    """

    def __init__(self, source: Source, root: Operation) -> None:
        self.source = source
        self.root = root
        self.begun = False
        self._watchers = _watchers.get()

    def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            for watcher in self._watchers:
                watcher.begin(self.source, self.root)

    def inserted(self, op: Operation) -> None:
        """An operation is there now."""
        self._begin()
        for watcher in self._watchers:
            watcher.inserted(op)

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Users of the results of an operation are about to take these values instead."""
        self._begin()
        for watcher in self._watchers:
            watcher.replaced(op, values)

    def modified(self, op: Operation) -> None:
        """An operation has other operands or attributes now."""
        self._begin()
        for watcher in self._watchers:
            watcher.modified(op)

    def removed(self, op: Operation) -> None:
        """An operation is about to go."""
        self._begin()
        for watcher in self._watchers:
            watcher.removed(op)

    def done(self) -> None:
        """The rewrite is complete: it counts, if it has changed anything."""
        if not self.begun:
            return
        for watcher in self._watchers:
            watcher.end()
        fuel = _fuel.get()
        if fuel is not None:
            fuel.left -= 1


class Termination:
    """Stops patterns that rewrite for ever. operations: how many there were at the start."""

    def __init__(self, operations: int) -> None:
        self._left = FEWEST_REWRITES + REWRITES_AN_OPERATION * operations
        self._recent: deque[Source] = deque(maxlen=REMEMBERED)

    def count(self, source: Source, place: str) -> None:
        """Count a rewrite. Raises InputError that names the cycle of rules when it is one too many.

        place: where the operation came from.
        """
        self._left -= 1
        # Rules are remembered only when there is reason for doubt.
        if self._left > REMEMBERED:
            return
        self._recent.append(source)
        if self._left <= 0:
            cycle = " -> ".join(map(str, period(tuple(self._recent))))
            raise InputError(
                f"these rewrites do not come to an end, last at {place}: {cycle}; guard one of "
                "them, so that what it makes is not rewritten again"
            )


def period(items: tuple[Source, ...]) -> tuple[Source, ...]:
    """The shortest run that the items' tail repeats; without one, each item once, in order."""
    last = items[::-1]
    for length in range(1, len(items) // 2 + 1):
        if last[length : 2 * length] == last[:length]:
            return items[-length:]
    return tuple(dict.fromkeys(items))
