"""Mistakes in a timetable on purpose, for tests of what checks it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .timetable import Timetable


@dataclass(frozen=True)
class SwapMessages:
    """Two messages of a superstep leave at each other's times, as no receiver expects."""

    superstep: str
    first: int
    second: int

    def applied(self, table: Timetable) -> Timetable:
        """The timetable with the mistake. Raises ValueError if a message does not exist."""
        _check(table, self.first, self.second)
        later = int(table.start[self.second] - table.start[self.first])
        return _later(_later(table, self.first, later), self.second, -later)


@dataclass(frozen=True)
class ShiftMessage:
    """A message of a superstep leaves some cycles later than its receivers expect it."""

    superstep: str
    message: int
    cycles: int = 1

    def applied(self, table: Timetable) -> Timetable:
        """The timetable with the mistake. Raises ValueError if the message does not exist."""
        _check(table, self.message)
        return _later(table, self.message, self.cycles)


@dataclass(frozen=True)
class WrongMux:
    """The first receiver of a message selects the sender of another message instead."""

    superstep: str
    message: int
    other: int

    def applied(self, table: Timetable) -> Timetable:
        """The timetable with the mistake. Raises ValueError if a message does not exist."""
        _check(table, self.message, self.other)
        hears = (table.windows.message == self.message) & (table.windows.lane % 2 == 1)
        selected = table.windows.message.copy()
        selected[np.flatnonzero(hears)[0]] = self.other
        return replace(table, windows=replace(table.windows, message=selected))


TimetableFault = SwapMessages | ShiftMessage | WrongMux


def _check(table: Timetable, *messages: int) -> None:
    count = len(table.start)
    for each in messages:
        if not 0 <= each < count:
            raise ValueError(f"message {each}; the superstep has {count}")


def _later(table: Timetable, message: int, cycles: int) -> Timetable:
    """A message leaves some cycles later, and receivers listen to it when they did."""
    start, begin = table.start.copy(), table.begin.copy()
    start[message] += cycles
    begin[(table.windows.message == message) & (table.windows.lane % 2 == 0)] += cycles
    return replace(table, start=start, begin=begin)
