"""Sections of a program as matrices over clocks.

A superstep sets the clocks of those who meet to their maximum, and adds to each clock. So each
clock at the end of a section is the maximum, over the clocks at its beginning, of this clock and a
distance: the longest way from the one to the other. The distances are a matrix of the max-plus
algebra. Sections that follow each other are a product, and the iterations of a loop are a power, so
that no cost depends on the number of iterations. On one chip, a matrix is one number.

Source: Baccelli, Cohen, Olsder and Quadrat, "Synchronization and Linearity", 1992, chapter 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...ir.support.arrays import Integers
from .advance import Meeting

MOST_CYCLES = 1 << 60
"""What a clock shows at most."""

NEVER = -(1 << 62)
"""The distance between clocks that do not depend on each other."""

_LARGEST = 1 << 22
"""Elements that a product makes at once."""


@dataclass(frozen=True, eq=False)
class Components:
    """Which zones depend on each other, directly or through others.

    Attributes:
        members: the zones of each zone's component, in order, (zones, most members); the zone
            itself where the component has fewer.
        position: of each zone in its component, (zones,).
    """

    members: Integers
    position: Integers

    @staticmethod
    def of(one: Integers, other: Integers, zones: int) -> Components:
        """The components of a graph.

        Args:
            one, other: pairs of zones that depend on each other, (pairs,).
        """
        number = np.arange(zones)
        while True:
            # Each zone takes the smallest number of those that it is joined with. Looking numbers
            # up twice halves the way to the end of a chain.
            smallest, least = number.copy(), np.minimum(number[one], number[other])
            np.minimum.at(smallest, number[one], least)
            np.minimum.at(smallest, number[other], least)
            smallest = smallest[smallest]
            if np.array_equal(smallest, number):
                break
            number = smallest
        number = np.unique(number, return_inverse=True)[1]
        sizes = np.bincount(number)
        first, order = np.cumsum(sizes) - sizes, np.argsort(number, kind="stable")
        position = np.empty(zones, np.int64)
        position[order] = np.arange(zones) - first[number[order]]
        at = np.arange(int(sizes.max()))
        is_member = at < sizes[number][:, None]
        members = order[np.where(is_member, first[number][:, None] + at, 0)]
        own = np.arange(zones)[:, None]
        return Components(np.where(is_member, members, own), position)

    @property
    def is_alone(self) -> bool:
        """Whether no zone depends on another one."""
        return self.members.shape[1] == 1


@dataclass(frozen=True, eq=False)
class Ways:
    """The longest ways through a section, from zones of a component to zones of the same one.

    Attributes:
        cycles: from the k-th member of zone z's component to z, (zones, most members); NEVER where
            there is no way.
    """

    components: Components
    cycles: Integers

    @staticmethod
    def none(components: Components) -> Ways:
        """The ways through a section in which nothing happens."""
        width = np.arange(int(components.members.shape[1]))
        here = components.position[:, None] == width
        return Ways(components, np.where(here, 0, NEVER))

    def after(self, clocks: Integers) -> tuple[Integers, Integers]:
        """The clocks at the end, and the zone from which the longest way to each of them begins:
        (zones, columns) both.

        Args:
            clocks: at the beginning, (zones, columns).
        """
        members = self.components.members
        if self.components.is_alone:
            return bounded(clocks + self.cycles), np.broadcast_to(members, clocks.shape)
        zones, width = members.shape
        found, begin = np.empty_like(clocks), np.empty_like(clocks)
        rows = max(_LARGEST // (width * clocks.shape[1]), 1)
        for at in range(0, zones, rows):
            here = slice(at, at + rows)
            reach = clocks[members[here]] + self.cycles[here, :, None]
            longest = reach.argmax(axis=1)
            found[here] = np.take_along_axis(reach, longest[:, None], axis=1)[:, 0]
            begin[here] = np.take_along_axis(members[here], longest, axis=1)
        return bounded(found), begin

    @cached_property
    def longest(self) -> int:
        """The cycles of the section if all clocks begin together."""
        return max(int(self.cycles.max()), 0)


def bounded(clocks: Integers) -> Integers:
    """The clocks, of which none shows more than MOST_CYCLES."""
    return np.where(clocks < NEVER // 2, NEVER, np.minimum(clocks, MOST_CYCLES))


# How often ways are taken

MOST_TIMES = 10**18
"""How often anything is counted at most. Nested loops and calls can repeat it more often."""


def most_times(taken: Integers) -> Integers:
    """Counts, made smaller if they add up to more than MOST_TIMES, so that they add up to it."""
    total = float(taken.sum(dtype=np.float64))
    if total <= MOST_TIMES:
        return taken
    fewer = np.floor(taken * (MOST_TIMES / total)).astype(np.int64)
    at = np.unravel_index(fewer.argmax(), fewer.shape)
    fewer[at] += MOST_TIMES - int(fewer.sum())
    return fewer


class Section(ABC):
    """A section of a program.

    Attributes:
        ways: the longest ways through it.
        taken: how often a run takes each of them, of the shape of ways.cycles.
    """

    def __init__(self, ways: Ways) -> None:
        self.ways = ways
        self.taken = np.zeros(ways.cycles.shape, np.int64)

    def take(self, end: Integers, begin: Integers, times: Integers) -> None:
        """Count ways that a run takes: (ways,) each.

        Args:
            end: the zone where the way ends.
            begin: the zone where it begins.
        """
        np.add.at(self.taken, (end, self.ways.components.position[begin]), times)
        self.taken = most_times(self.taken)

    @abstractmethod
    def pass_on(self) -> None:
        """Say to what is in the section how often it is taken, once this is complete."""


class Line(Section):
    """Elements that follow each other."""

    def __init__(
        self, elements: Sequence[Element], zones: int, clocks: Integers | None = None
    ) -> None:
        """The section of these elements.

        Args:
            clocks: where a run begins, (zones, 1), if the run has no other section around it.
        """
        none = np.zeros(0, np.int64)
        pairs = [each.pairs() for each in elements] if clocks is None else []
        one, other = (np.concatenate([none, *(pair[side] for pair in pairs)]) for side in (0, 1))
        components = Components.of(one, other, zones)
        reached = Ways.none(components).cycles if clocks is None else clocks
        self._traces: list[tuple[Element, Integers]] = []
        for each in elements:
            reached, trace = each.after(reached)
            self._traces.append((each, trace))
        super().__init__(Ways(components, bounded(reached)))

    def pass_on(self) -> None:
        """Say to each element how often it is taken."""
        taken = self.taken
        for element, trace in reversed(self._traces):
            taken = element.before(taken, trace)


class Power(Section):
    """The iterations of a loop."""

    def __init__(self, body: Section, iterations: int) -> None:
        """The section of a loop.

        Args:
            iterations: 1 or more.
        """
        self._body = body
        self._squares, self._middles = _squares(body.ways, iterations.bit_length())
        bits = [k for k in range(iterations.bit_length()) if iterations >> k & 1]
        self._first = bits[0]
        self._rest: list[tuple[int, Integers]] = []
        found = self._squares[bits[0]]
        for bit in bits[1:]:
            cycles, middle = self._squares[bit].after(found.cycles)
            self._rest.append((bit, middle))
            found = Ways(found.components, cycles)
        super().__init__(found)

    def pass_on(self) -> None:
        """Say to the body how often it is taken."""
        counts = [np.zeros_like(self.taken) for _ in self._squares]
        position = self.ways.components.position
        taken = self.taken
        for bit, middle in reversed(self._rest):
            taken = _halves(taken, middle, position, counts[bit], np.zeros_like(taken))
        counts[self._first] += taken
        for k in range(len(counts) - 1, 0, -1):
            half = counts[k - 1]
            counts[k - 1] = _halves(
                most_times(counts[k]), self._middles[k - 1], position, half, half
            )
        end, column = np.nonzero(counts[0])
        begin = self.ways.components.members[end, column]
        self._body.take(end, begin, counts[0][end, column])


def _halves(
    taken: Integers, middle: Integers, position: Integers, late: Integers, early: Integers
) -> Integers:
    """Add up how often ways of two halves are taken; returns those of the earlier half.

    Args:
        taken: how often whole ways are taken, (zones, most members).
        middle: the zone in which each of them stands between its halves.
        late, early: to which to add.
    """
    end, column = np.nonzero(taken)
    times, through = taken[end, column], middle[end, column]
    np.add.at(late, (end, position[through]), times)
    np.add.at(early, (through, column), times)
    return most_times(early)


def _squares(ways: Ways, count: int) -> tuple[list[Ways], list[Integers]]:
    """The ways of 1, 2, 4, ... iterations, and where those of each after the first stand between
    their halves.

    From some square on, another one often only adds the same cycles everywhere in a component. All
    later ones then do so too, twice as many each, and need no product.
    """
    found, middles = [ways], list[Integers]()
    while len(found) < count:
        last = found[-1]
        cycles, middle = last.after(last.cycles)
        found.append(Ways(ways.components, cycles))
        middles.append(middle)
        more = _same_everywhere(last, found[-1])
        while more is not None and len(found) < count:
            more = np.minimum(2 * more, MOST_CYCLES)
            cycles = np.where(cycles > NEVER, cycles + more, NEVER)
            found.append(Ways(ways.components, bounded(cycles)))
            middles.append(middle)
    return found, middles


def _same_everywhere(before: Ways, after: Ways) -> Integers | None:
    """The cycles that every way in the component of each zone has become longer by, (zones, 1);
    None if some have become longer by more than others."""
    exists = before.cycles > NEVER
    if not np.array_equal(exists, after.cycles > NEVER):
        return None
    longer = np.where(exists, after.cycles - before.cycles, 0)
    most = longer.max(axis=1)[before.components.members].max(axis=1, keepdims=True)
    return most if np.all(longer[exists] == np.broadcast_to(most, exists.shape)[exists]) else None


# Elements


class Element(ABC):
    """A part of a line."""

    @abstractmethod
    def pairs(self) -> tuple[Integers, Integers]:
        """Pairs of zones that depend on each other: (pairs,) both."""

    @abstractmethod
    def after(self, clocks: Integers) -> tuple[Integers, Integers]:
        """The clocks after it, (zones, columns), and what says where the longest ways come from."""

    @abstractmethod
    def before(self, taken: Integers, trace: Integers) -> Integers:
        """How often ways begin in each zone before the element, (zones, columns).

        Args:
            taken: how often ways continue from each zone after it.
            trace: as after has returned it.
        """


@dataclass(eq=False)
class Steps(Element):
    """Supersteps in which no zone waits for another one.

    Attributes:
        cycles: of each zone, over all of them, (zones,).
        taken: how often a run's longest way goes through each zone, (zones,).
    """

    cycles: Integers
    taken: Integers

    def pairs(self) -> tuple[Integers, Integers]:
        """None."""
        none = np.zeros(0, np.int64)
        return none, none

    def after(self, clocks: Integers) -> tuple[Integers, Integers]:
        """The clocks after it."""
        return clocks + self.cycles[:, None], self.cycles

    def before(self, taken: Integers, trace: Integers) -> Integers:
        """Count the ways through it."""
        self.taken = most_times(taken.sum(axis=1))
        return taken


@dataclass(frozen=True, eq=False)
class Meet(Element):
    """Groups of zones that wait for each other."""

    meeting: Meeting

    def pairs(self) -> tuple[Integers, Integers]:
        """Each zone, and the first one of its group."""
        zones = self.meeting.zones
        return zones, zones[self.meeting.first][self.meeting.number]

    def after(self, clocks: Integers) -> tuple[Integers, Integers]:
        """The clocks after it, and the zones that others wait for."""
        return self.meeting.met(clocks)

    def before(self, taken: Integers, trace: Integers) -> Integers:
        """Ways go on from the zone that its group waits for."""
        zones = self.meeting.zones
        found = taken.copy()
        found[zones] = 0
        at, column = np.nonzero(taken[zones])
        begin = trace[self.meeting.number[at], column]
        np.add.at(found, (begin, column), taken[zones[at], column])
        return found


@dataclass(frozen=True, eq=False)
class Inner(Element):
    """A section within the line: a loop, a branch, or the function that a call runs."""

    section: Section

    def pairs(self) -> tuple[Integers, Integers]:
        """Each zone, and the first one of its component."""
        members = self.section.ways.components.members
        return np.arange(len(members)), members[:, 0]

    def after(self, clocks: Integers) -> tuple[Integers, Integers]:
        """The clocks after it, and the zones from which they are reached."""
        return self.section.ways.after(clocks)

    def before(self, taken: Integers, trace: Integers) -> Integers:
        """Count the ways through the section."""
        end, column = np.nonzero(taken)
        begin, times = trace[end, column], taken[end, column]
        self.section.take(end, begin, times)
        found = np.zeros_like(taken)
        np.add.at(found, (begin, column), times)
        return found
