"""The topologies of IPU systems: ladders, tori, and pods of tori that gateways join.

Chips stand in rows of two: chip i is chip i % 2 of row i // 2. A rung joins the two chips of a row,
and a rail joins the chips of a column in neighbouring rows. Bytes cross the rung of their source
first, and then go along the rail of their destination.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...ir.geometry.tiles import MOST_CHIPS
from ...ir.support.arrays import Integers
from ..facts import ASSUMED, MEASURED, PUBLISHED, fact
from .links import Links, Routes

GIGA = 1e9

_COLUMNS = 2

_LADDER = "Graphcore's ladder of Mk1 cards in tests of PopLibs, 10 links of 128 Gibit/s at 0.85"


class _Walk(NamedTuple):
    """Links that pairs of chips use: a row for each use, (uses,).

    Attributes:
        pair: the number of the pair.
        link: the number of the link.
    """

    pair: Integers
    link: Integers


@dataclass(frozen=True)
class Ladder(Links):
    """Rows of two chips, joined into a ladder. Two chips are a pair.

    row 0   0 - 1
            |   |      - a rung
    row 1   2 - 3
            |   |      | a rail
    row 2   4 - 5
    """

    kind: ClassVar[str] = "ladder"

    rung_gbytes: float = fact(
        58.4, PUBLISHED, f"{_LADDER}: 4 links and 2 that cross, each way, GB/s", (1e-3, 1e6)
    )
    rail_gbytes: float = fact(29.2, PUBLISHED, f"{_LADDER}: 2 links each way, GB/s", (1e-3, 1e6))
    first_word_ns: float = fact(
        1458.0,
        MEASURED,
        "lbm-graphcore@df670f6, exchange-vs-compute.csv: global exchange of a 3x3 blur of "
        "2200x1122x4 float16 on 16 Mk1, 3,043 cycles, less those of its bytes",
        (0, 1e6),
    )
    hop_ns: float = fact(
        15.0, MEASURED, "PopLibs's model of a sync: a hop one way; 30 ns for a pair", (0, 1e6)
    )

    @property
    def problem(self) -> str:
        """Why this topology cannot have so many chips; "" if it can."""
        if self.chips == 1 or self.chips % _COLUMNS == 0:
            return ""
        return f"{self.chips} chips in rows of {_COLUMNS}; need a multiple"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.chips // _COLUMNS

    def meeting_seconds(self, chips: Sequence[int] = ()) -> float:
        """Seconds in which the tiles of several chips meet, beyond what those of one chip take.

        A signal goes to the middle of the rows that have these chips, and back. Source: PopLibs,
        1 + rows / 2 hops each way for a whole ladder.
        """
        if self.chips == 1 or len(chips) == 1:
            return 0.0
        rows = self._rows_between({chip // _COLUMNS for chip in chips}, self.rows)
        return 2 * (1 + rows // 2) * self.hop_ns / GIGA

    def _rows_between(self, used: Collection[int], rows: int) -> int:
        """The rows from the first to the last of those used; all of them if none is named."""
        return max(used) - min(used) + 1 if used else rows

    def first_word_seconds(self) -> float:
        """Seconds until the first word of an exchange between chips has arrived."""
        return self.first_word_ns / GIGA

    def routes(self) -> Routes:
        """The links, and which of them each pair of chips uses."""
        if self.chips == 1:
            return Links.routes(self)
        pairs = np.arange(self.chips * self.chips)
        source, destination = np.divmod(pairs, self.chips)
        walk = self._walk(pairs, source, destination, self.rows)
        return Routes(self._rates(self.rows, 1), walk.pair, walk.link)

    def link_names(self) -> list[str]:
        """What each link joins: "FROM -> TO", of chips."""
        return [] if self.chips == 1 else self._ladder_names(0, self.chips)

    def _ladder_names(self, first: int, chips: int) -> list[str]:
        """What the links of one ladder join, in the order in which _walk numbers them.

        Args:
            first: its first chip.
        """
        of = range(first, first + chips)
        below = [first + (c - first + _COLUMNS) % chips for c in of]
        rungs = [f"{c} -> {first + (c - first ^ 1)}" for c in of]
        down = [f"{c} -> {to}" for c, to in zip(of, below, strict=True)]
        up = [f"{to} -> {c}" for c, to in zip(of, below, strict=True)]
        return [*rungs, *down, *up]

    def _steps(self, begin: Integers, end: Integers, rows: int) -> Integers:
        """The rows that bytes go down from row to row, and up if it is negative."""
        del rows
        return end - begin

    def _rates(self, rows: int, copies: int) -> NDArray[np.float64]:
        """Bytes per second of the links of so many ladders, in the order in which _walk numbers
        them."""
        rungs, rails = np.full(2 * rows, self.rung_gbytes), np.full(4 * rows, self.rail_gbytes)
        return np.tile(np.concatenate([rungs, rails]) * GIGA, copies)

    def _walk(self, pairs: Integers, source: Integers, destination: Integers, rows: int) -> _Walk:
        """The links from chip to chip within one ladder.

        Link 2 r + c leaves column c of row r over its rung. The links of the rails follow: link
        2 r + c of the downward ones leaves column c of row r towards the next row, and that of the
        upward ones enters it.

        Args:
            source, destination: chips of a ladder, (pairs,).
        """
        begin, column = np.divmod(source, _COLUMNS)
        end, last = np.divmod(destination, _COLUMNS)
        over = np.flatnonzero(column != last)
        steps = self._steps(begin, end, rows)
        count = np.abs(steps)
        which = np.repeat(np.arange(len(pairs)), count)
        step = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        down = steps[which] > 0
        # A rail between two rows has the number of the upper one.
        row = (begin[which] + np.where(down, step, -step - 1)) % rows
        rails = 2 * rows + np.where(down, 0, 2 * rows) + 2 * row + last[which]
        return _Walk(
            np.concatenate([pairs[over], pairs[which]]),
            np.concatenate([source[over], rails]),
        )


@dataclass(frozen=True)
class Torus(Ladder):
    """A ladder whose last row is joined to its first. Bytes go the shorter way round."""

    kind: ClassVar[str] = "torus"

    def part(self, chips: int) -> Links:
        """The links among its first chips. Fewer rows than all are a ladder."""
        if chips in (1, self.chips):
            return super().part(chips)
        return of_kind(Ladder, self, chips)

    def _rows_between(self, used: Collection[int], rows: int) -> int:
        return _around(used, rows)

    def _steps(self, begin: Integers, end: Integers, rows: int) -> Integers:
        down = (end - begin) % rows
        return np.where(2 * down <= rows, down, down - rows)


@dataclass(frozen=True)
class Pod(Torus):
    """Tori that are joined by the gateways of their machines, which have four chips each.

    Bytes leave through the gateway of their source's own machine, and reach the machine with the
    same number in another torus. Without a switch, the tori stand in a ring, and each machine has
    a link to either side. With a switch, each machine has a link to it.

    Attributes:
        domain: the chips of a torus.
        switched: 1 if a switch joins the gateways, 0 if they are joined directly.
    """

    kind: ClassVar[str] = "pod"

    domain: int = fact(64, PUBLISHED, "an IPU-Link domain is a Pod64", (2, MOST_CHIPS))
    switched: int = fact(1, PUBLISHED, "from Pod128 on, gateways are switched", (0, 1))
    gateway_gbytes: float = fact(
        12.5, PUBLISHED, "a port of 100 Gbit/s of a machine, one way, GB/s", (1e-3, 1e6)
    )
    gateway_hop_ns: float = fact(500.0, ASSUMED, "a switch of Ethernet", (0, 1e9))

    def part(self, chips: int) -> Links:
        """The links among its first chips. Those of one torus use no gateway."""
        if chips > self.domain:
            return Links.part(self, chips)
        return of_kind(Torus, self, self.domain).part(chips)

    @property
    def problem(self) -> str:
        """Why this topology cannot have so many chips; "" if it can."""
        if self.domain % _MACHINE:
            return f"{self.domain} chips in a torus of machines of {_MACHINE}; need a multiple"
        if self.chips > 1 and self.chips % self.domain:
            return f"{self.chips} chips in tori of {self.domain}; need a multiple"
        return ""

    def meeting_seconds(self, chips: Sequence[int] = ()) -> float:
        """Seconds in which the tiles of several chips meet, beyond what those of one chip take."""
        if self.chips == 1 or len(chips) == 1:
            return 0.0
        used = {chip % self.domain // _COLUMNS for chip in chips}
        hops = 1 + self._rows_between(used, self.domain // _COLUMNS) // 2
        tori = _around({chip // self.domain for chip in chips}, self.chips // self.domain)
        away = (1 if self.switched else tori // 2) if tori > 1 else 0
        return 2 * (hops * self.hop_ns + away * self.gateway_hop_ns) / GIGA

    def routes(self) -> Routes:
        """The links, and which of them each pair of chips uses."""
        if self.chips == 1:
            return Links.routes(self)
        pairs = np.arange(self.chips * self.chips)
        source, destination = np.divmod(pairs, self.chips)
        tori, rows = self.chips // self.domain, self.domain // _COLUMNS
        here, there = source // self.domain, destination // self.domain
        inside = self._walk(pairs, source % self.domain, destination % self.domain, rows)
        rates = self._rates(rows, tori)
        machines = self.domain // _MACHINE
        machine = source % self.domain // _MACHINE
        # Within the torus of the destination.
        link = inside.link + there[inside.pair] * (len(rates) // tori)
        outside = self._between(pairs, here, there, machine, tori, machines)
        gateways = np.full(2 * tori * machines, self.gateway_gbytes * GIGA)
        return Routes(
            np.concatenate([rates, gateways]),
            np.concatenate([inside.pair, outside.pair]),
            np.concatenate([link, outside.link + len(rates)]),
        )

    def link_names(self) -> list[str]:
        """What each link joins: "FROM -> TO", of chips, of machines of four chips, or a switch."""
        if self.chips == 1:
            return []
        found: list[str] = []
        for first in range(0, self.chips, self.domain):
            found += self._ladder_names(first, self.domain)
        machines = self.chips // _MACHINE
        out = [f"machine {m}" for m in range(machines)]
        if self.switched:
            to = ["switch"] * machines
        else:
            to = [f"machine {(m + self.domain // _MACHINE) % machines}" for m in range(machines)]
        ends = [*zip(out, to, strict=True), *zip(to, out, strict=True)]
        return [*found, *(f"{a} -> {b}" for a, b in ends)]

    def _between(
        self,
        pairs: Integers,
        here: Integers,
        there: Integers,
        machine: Integers,
        tori: int,
        machines: int,
    ) -> _Walk:
        """The links of gateways from torus to torus, by number: those that leave a machine for the
        switch or the next torus, and then those that enter it from there."""
        away = np.flatnonzero(here != there)
        if self.switched:
            leave = here[away] * machines + machine[away]
            enter = tori * machines + there[away] * machines + machine[away]
            return _Walk(np.tile(pairs[away], 2), np.concatenate([leave, enter]))
        steps = Torus._steps(self, here, there, tori)
        count = np.abs(steps)
        which = np.repeat(np.arange(len(pairs)), count)
        step = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        forward = steps[which] > 0
        torus = (here[which] + np.where(forward, step, -step - 1)) % tori
        side = np.where(forward, 0, tori * machines)
        return _Walk(pairs[which], side + torus * machines + machine[which])


_MACHINE = 4
"""Chips of a machine."""


L = TypeVar("L", bound=Links)


def of_kind(kind: type[L], links: Links, chips: int) -> L:
    """Another topology, with the facts of links that it shares."""
    own = {each.name: getattr(links, each.name) for each in fields(kind)}
    return kind(**own | {"chips": chips})


def _around(used: Collection[int], count: int) -> int:
    """The length of the shortest stretch of a ring that contains some of its places; all of the
    ring if none is named.

    Args:
        count: the places of the ring.
    """
    if not used:
        return count
    places = np.array(sorted(used))
    gaps = np.diff(places, append=places[0] + count)
    return int(count - gaps.max() + 1)
