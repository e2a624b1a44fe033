"""A level of abstraction: its name, and the table of what is legal on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import overload

from .legality import Row, Table


def _nothing() -> tuple[Row, ...]:
    return ()


@dataclass(frozen=True)
class Level:
    """A level that a program passes through on its way to the machine.

    Levels of one name are equal.

    Attributes:
        name: as pipelines, files and commands spell it.
        rows: the operations that are legal on it, and what holds of them there.
        added: returns the rows that users' dialects have added so far.
        decisions: names for how much a module of this level has decided of what the level leaves
            open, from nothing to everything.
        open: whether operations that no row names are legal too.
        meaning: what programs of this level say, in a sentence.
        like: the level of abele's whose values and functions a user's level has; None for a level
            of abele's own.
    """

    name: str
    rows: tuple[Row, ...] = field(compare=False, repr=False)
    added: Callable[[], tuple[Row, ...]] = field(default=_nothing, compare=False, repr=False)
    decisions: tuple[str, ...] = field(default=(), compare=False, repr=False)
    open: bool = field(default=False, compare=False, repr=False)
    meaning: str = field(default="", compare=False, repr=False)
    like: Level | None = field(default=None, compare=False, repr=False)
    _tables: dict[tuple[Row, ...], Table] = field(
        default_factory=dict[tuple[Row, ...], Table], init=False, compare=False, repr=False
    )

    @property
    def table(self) -> Table:
        """Its rows and those that users have added, by operation."""
        added = self.added()
        table = self._tables.get(added)
        if table is None:
            table = self._tables[added] = Table((*self.rows, *added))
        return table

    @property
    def own(self) -> frozenset[str]:
        """The names of dialects and operations that are legal without what users have added."""
        return Table(self.rows).names

    @property
    def form(self) -> Level:
        """The level of abele's whose values and functions this level has: itself, or `like`."""
        return self if self.like is None else self.like

    def extended(self, name: str, *more: Row) -> Level:
        """A level of another name, on which what is legal here is legal, and a dialect of its name.

        Args:
            name: the level's, and that of the dialect by which its modules are known.
            more: further operations that are legal, and constraints on any.
        """
        rows = (*self.rows, Row((name,)), *more)
        return Level(name, rows, self.added, open=self.open, like=self.form)

    @property
    def legal(self) -> frozenset[str]:
        """The names of all dialects and operations that are legal on this level."""
        return self.table.names

    def is_legal(self, op_name: str) -> bool:
        """Whether an operation is legal on this level."""
        return self.open or self.table.needs(op_name) is not None

    def __str__(self) -> str:
        return self.name


class Levels(Sequence[Level]):
    """The levels that a program may pass through, from the highest to the lowest.

    Extensions add levels between those of abele's.
    """

    def __init__(self, own: Iterable[Level]) -> None:
        self._levels = list(own)

    @overload
    def __getitem__(self, index: int) -> Level: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Level, ...]: ...

    def __getitem__(self, index: int | slice) -> Level | tuple[Level, ...]:
        return tuple(self._levels[index]) if isinstance(index, slice) else self._levels[index]

    def __len__(self) -> int:
        return len(self._levels)

    def insert_after(self, above: Level, level: Level) -> None:
        """Add a level directly below another one."""
        self._levels.insert(self._levels.index(above) + 1, level)

    def remove(self, level: Level) -> None:
        """Remove a level."""
        self._levels.remove(level)
