"""Single rewrites: the rule that made each, watchers of them, and limits on their number.

LocatingWalker reports the rewrites of patterns. A pass that rewrites by hand uses `edit.Edit`,
which reports each change. Without a watcher, nothing is recorded.
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

from .support.errors import InputError

MIN_REWRITES = 2_000
REWRITES_PER_OPERATION = 64
"""Patterns that terminate stay far below MIN_REWRITES plus this many per initial operation."""

REMEMBERED = 256
"""Rewrites, up to the limit, whose sources are kept to find the cycle among them."""


@dataclass(frozen=True)
class Source:
    """Where a rule or a pattern is written.

    Attributes:
        line: from 1; 0 if unknown.
    """

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
    """Where a pattern is written: its `source` if it is Sourced, else the place of its class."""
    # Equivalent to isinstance(pattern, Sourced), which is too slow to run for each rewrite.
    source = getattr(pattern, "source", None)
    if isinstance(source, Source):
        return source
    return _source_of_class(type(pattern))


@cache
def _source_of_class(cls: type) -> Source:
    # Look up the class, not its method: the method may belong to a wrapper in another file.
    try:
        file, (_, line) = inspect.getsourcefile(cls), inspect.getsourcelines(cls)
    except (OSError, TypeError):
        return Source(cls.__name__)
    return Source(cls.__name__, Path(file or "").name, line)


class Watcher:
    """An observer of rewrites. Each hook does nothing unless overridden."""

    def begin(self, source: Source, root: Operation) -> None:
        """Called before the first change of a rewrite.

        Args:
            root: the matched operation.
        """

    def inserted(self, op: Operation) -> None:
        """Called after an operation was inserted."""

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Called before the results of an operation are replaced by these values."""

    def modified(self, op: Operation) -> None:
        """Called after the operands or attributes of an operation changed."""

    def removed(self, op: Operation) -> None:
        """Called before an operation is erased."""

    def end(self) -> None:
        """Called after the last change of a rewrite."""


@dataclass
class _Fuel:
    left: int


_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())
_fuel: ContextVar[_Fuel | None] = ContextVar("fuel", default=None)


@contextmanager
def watched(watcher: Watcher) -> Generator[None]:
    """Within the block, report every rewrite to a watcher."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


@contextmanager
def limited(rewrites: int) -> Generator[None]:
    """Within the block, allow only this many rewrites. After them, no pattern matches.

    The program is valid after each rewrite, so bisection can find the rewrite that breaks it.
    """
    token = _fuel.set(_Fuel(rewrites))
    try:
        yield
    finally:
        _fuel.reset(token)


def may_rewrite() -> bool:
    """Whether `limited` still allows a rewrite; true outside of it."""
    fuel = _fuel.get()
    return fuel is None or fuel.left > 0


class Rewrite:
    """Reports one rewrite to the watchers. It begins with the first change and ends with done().

    Report removals and replacements before making the change, insertions and modifications after.
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
        """Report that an operation was inserted."""
        self._begin()
        for watcher in self._watchers:
            watcher.inserted(op)

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Report that the results of an operation are about to be replaced by these values."""
        self._begin()
        for watcher in self._watchers:
            watcher.replaced(op, values)

    def modified(self, op: Operation) -> None:
        """Report that the operands or attributes of an operation changed."""
        self._begin()
        for watcher in self._watchers:
            watcher.modified(op)

    def removed(self, op: Operation) -> None:
        """Report that an operation is about to be erased."""
        self._begin()
        for watcher in self._watchers:
            watcher.removed(op)

    def done(self) -> None:
        """End the rewrite. It counts if it has changed anything."""
        if not self.begun:
            return
        for watcher in self._watchers:
            watcher.end()
        fuel = _fuel.get()
        if fuel is not None:
            fuel.left -= 1


class Termination:
    """Stops patterns that rewrite for ever.

    Attributes:
        operations: their number before the first rewrite.
    """

    def __init__(self, operations: int) -> None:
        self._left = MIN_REWRITES + REWRITES_PER_OPERATION * operations
        self._recent: deque[Source] = deque(maxlen=REMEMBERED)

    def count(self, source: Source, place: str) -> None:
        """Count a rewrite. At the limit, raises InputError with the cycle of rules.

        Args:
            place: where the matched operation came from.
        """
        self._left -= 1
        # Only the last rewrites before the limit are needed to find the cycle.
        if self._left > REMEMBERED:
            return
        self._recent.append(source)
        if self._left <= 0:
            cycle = " -> ".join(map(str, period(tuple(self._recent))))
            raise InputError(
                f"these rewrites never end, last at {place}: {cycle}; add a guard to one of them, "
                "so that its result is not rewritten again"
            )


def period(items: tuple[Source, ...]) -> tuple[Source, ...]:
    """The shortest sequence repeated at the end of items; without one, each item once, in order."""
    last = items[::-1]
    for length in range(1, len(items) // 2 + 1):
        if last[length : 2 * length] == last[:length]:
            return items[-length:]
    return tuple(dict.fromkeys(items))
