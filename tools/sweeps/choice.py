"""What a sweep chooses: the constraints that a point must keep, and what makes one the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, cast

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ..views.report.condition import Condition, Value, read_condition, read_value

BEST, CONSTRAINT, PARETO = "--best", "--constraint", "pareto"

LEAST, MOST = "min", "max"
"""The first word of what makes a point the best."""

BY = "by"
"""The word between the two columns of a table."""


@dataclass(frozen=True)
class Goal:
    """What makes a point better than another one.

    Attributes:
        text: as it was given.
        value: of a point.
        sign: -1 if more is better.
    """

    text: str
    value: Value
    sign: int

    def of(self, row: Mapping[str, Any]) -> float:
        """A number of a row, of which less is better; inf if the row has not all figures of it.

        Raises InputError for a division by zero.
        """
        figures = numbers_of(row)
        if not self.value.names <= figures.keys():
            return inf
        return self.sign * self.value.of(figures)


@dataclass(frozen=True)
class SideBySide:
    """A table of one figure, with a column for each value of another column.

    Attributes:
        figure: the column whose values are the cells.
        by: the column whose values are the heads.
    """

    figure: str
    by: str

    @property
    def text(self) -> str:
        """The text that read_table reads."""
        return f"{self.figure} {BY} {self.by}"


@dataclass(frozen=True)
class Choice:
    """What a sweep chooses, and how it shows its rows.

    Attributes:
        best: what makes a point the best of its model; None chooses nothing.
        constraints: what a point must keep to be chosen, or to be in the picture.
        pareto: the goals of the picture: no point of its front is worse than another one in both.
        tables: the tables of the summary that show figures side by side.
    """

    best: Goal | None = None
    constraints: tuple[Condition, ...] = ()
    pareto: tuple[Goal, Goal] | None = None
    tables: tuple[SideBySide, ...] = ()

    @property
    def named(self) -> Sequence[Condition | Value]:
        """All that names figures."""
        goals = [each for each in (self.best, *(self.pareto or ())) if each is not None]
        return [*self.constraints, *(each.value for each in goals)]

    def allows(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has figures and keeps the constraints. Raises InputError.

        A row without a figure that a constraint names does not keep it, such as the rate of links
        of a target that has none.
        """
        if row["status"] != "fits":
            return False
        figures = numbers_of(row)
        return all(
            each.names <= figures.keys() and each.holds(figures, None) for each in self.constraints
        )

    def best_of(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """The best of rows that keep the constraints, the first of equal ones. None if none does.

        Raises InputError.
        """
        goal = self.best
        if goal is None:
            return None
        allowed = [row for row in rows if self.allows(row) and isfinite(goal.of(row))]
        return min(allowed, key=goal.of, default=None)


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a row that conditions can name."""
    return {
        name: float(value) for name, value in row.items() if isinstance(value, bool | int | float)
    }


def read_goal(text: str, where: str) -> Goal:
    """The goal in a text such as "max items_per_s". Raises InputError."""
    word, _, rest = text.strip().partition(" ")
    if word not in (LEAST, MOST) or not rest.strip():
        raise InputError(
            f"{where} {text}: need min or max, and a figure, such as max items_per_s / tiles"
        )
    return Goal(text.strip(), read_value(rest, f"{where} {word}"), 1 if word == LEAST else -1)


def read_table(text: str, where: str) -> SideBySide:
    """The table in a text such as "items_per_s by target". Raises InputError."""
    words = text.split()
    if len(words) != 3 or words[1] != BY:
        raise InputError(f"{where} {text}: need two columns, such as items_per_s {BY} target")
    return SideBySide(words[0], words[2])


def read_choice(table: Mapping[str, object], place: str) -> Choice:
    """The choice that a table of a spec asks for. Raises InputError."""
    known = ("best", "constraints", "pareto", "tables")
    for key in table:
        if key not in known:
            raise InputError(f"{place}: no such key {key!r}{suggestion(key, known)}")
    best = table.get("best")
    if best is not None and not isinstance(best, str):
        raise InputError(f"{place}: best: need text, such as 'max items_per_s'")
    pair = _texts(table.get("pareto", []), f"{place}: pareto")
    if pair and len(pair) != 2:
        raise InputError(f"{place}: pareto: {len(pair)} goals; need two")
    goals = [read_goal(each, f"{place}: pareto:") for each in pair]
    return Choice(
        None if best is None else read_goal(best, f"{place}: best:"),
        tuple(
            read_condition(each, f"{place}: constraints:")
            for each in _texts(table.get("constraints", []), f"{place}: constraints")
        ),
        (goals[0], goals[1]) if goals else None,
        tuple(
            read_table(each, f"{place}: tables:")
            for each in _texts(table.get("tables", []), f"{place}: tables")
        ),
    )


def _texts(value: object, where: str) -> list[str]:
    listed = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in listed):
        raise InputError(f"{where}: need a list of texts")
    return cast("list[str]", listed)
