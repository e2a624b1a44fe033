"""Links between chips: how many chips there are, and what moving bytes between them costs.

A topology is a frozen dataclass. Its fields are facts of the machine. It says over which links the
bytes of two chips travel, and how many bytes a link carries in a second. `Links` itself is the
topology of a machine with one chip.

Links are far slower than the exchange within a chip: on Mk1, 29.2 GB/s against 7.8 TB/s. So an
exchange between chips takes as long as its busiest link. Flows that use a link share what it
carries. Bytes that several tiles of a chip want cross a link once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...ir.geometry.tiles import MOST_CHIPS
from ...ir.support.arrays import Integers
from ...ir.support.deferred import deferred
from ..facts import ASSUMED, fact

if TYPE_CHECKING:
    from ..fabrics.traffic import Traffic

with deferred(__name__):
    from ...ir.geometry.chip_groups import ChipGroups
    from ..fabrics.chip_flows import Chips


@dataclass(frozen=True)
class Routes:
    """The links of a machine, and which of them each pair of chips uses.

    Links have a direction. A pair is `source * chips + destination`.

    Attributes:
        bytes_per_second: of each link, (links,).
        pair, link: a row for each link that a pair of chips uses, (uses,).
    """

    bytes_per_second: NDArray[np.float64]
    pair: Integers
    link: Integers

    def longest_seconds(self, pairs: Integers, moved: Integers) -> float:
        """The seconds that the busiest link is used; the longest of `seconds`.

        Args:
            pairs, moved: as for `seconds`.
        """
        count = int(max(self.pair.max(initial=-1), pairs.max(initial=-1))) + 1
        return float(self._busy(pairs, moved, count).max(initial=0.0))

    def _busy(self, pairs: Integers, moved: Integers, count: int) -> NDArray[np.float64]:
        """The seconds that each link is used: (links,)."""
        bytes_of = np.zeros(count, np.int64)
        bytes_of[pairs] = moved
        load = np.bincount(self.link, bytes_of[self.pair], len(self.bytes_per_second))
        return load / self.bytes_per_second

    def seconds(self, pairs: Integers, moved: Integers) -> NDArray[np.float64]:
        """The seconds that the busiest link of each pair is used: (pairs,).

        Args:
            pairs: of chips, each at most once.
            moved: the bytes that each pair moves.
        """
        count = int(max(self.pair.max(initial=-1), pairs.max(initial=-1))) + 1
        busy = self._busy(pairs, moved, count)
        longest = np.zeros(count, np.float64)
        np.maximum.at(longest, self.pair, busy[self.link])
        return longest[pairs]


@dataclass(frozen=True)
class Links:
    """The links of a machine with one chip: none.

    Attributes:
        kind: the name of the topology in `links.topology`. A subclass sets it.
        chips: the number of chips. The tiles of the machine are those of all chips, and tile t is
            on chip t // (tiles of a chip).
    """

    kind: ClassVar[str] = "none"
    kind_key: ClassVar[str] = "topology"

    chips: int = fact(1, ASSUMED, "one chip", (1, MOST_CHIPS))
    meeting_chips: int = fact(
        0,
        ASSUMED,
        "chips that meet in a group: 0 for any, n for each n in a row, or all",
        (0, MOST_CHIPS),
    )

    @property
    def problem(self) -> str:
        """Why this topology cannot have so many chips; "" if it can."""
        if self.chips == 1:
            return ""
        return f"{self.chips} chips without links; need links.topology"

    def part(self, chips: int) -> Links:
        """The links among its first chips.

        Args:
            chips: at most its own number.
        """
        return replace(self, chips=chips) if chips > 1 else Links()

    def routes(self) -> Routes:
        """The links, and which of them each pair of chips uses."""
        none = np.zeros(0, np.int64)
        return Routes(np.zeros(0), none, none)

    def link_names(self) -> list[str]:
        """What each link joins, for people, in the order of the routes: "FROM -> TO", of chips."""
        return [f"link {k}" for k in range(len(routes_of(self).bytes_per_second))]

    def meeting_groups(self, wanted: ChipGroups) -> ChipGroups:
        """The groups in which chips meet if each of some groups is to meet.

        Every decision of who meets goes through this function: a machine may not be able to let
        just any chips wait for each other. A group of the result may have more chips than wanted.
        """
        block = self.meeting_chips
        if not block:
            return wanted
        blocks = [{chip // block for chip in group} for group in wanted.groups]
        if any(len(each) > 1 for each in blocks):
            return ChipGroups((tuple(range(self.chips)),))
        numbers = sorted({number for each in blocks for number in each})
        return ChipGroups(
            tuple(
                tuple(range(n * block, max(min((n + 1) * block, self.chips), n * block + 1)))
                for n in numbers
            )
        )

    def chip_of_tiles(self, tiles: int, chip_tiles: int) -> Integers:
        """The chip of each tile: (tiles,).

        A program that does not fit may name tiles behind those of the last chip. They count as
        tiles of the last one.

        Args:
            chip_tiles: the tiles of a chip.
        """
        return np.minimum(np.arange(tiles) // chip_tiles, self.chips - 1)

    def meeting_seconds(self, chips: Sequence[int] = ()) -> float:
        """Seconds in which the tiles of several chips meet, beyond what those of one chip take.

        Args:
            chips: in ascending order; () for all.
        """
        return 0.0

    def first_word_seconds(self) -> float:
        """Seconds until the first word of an exchange between chips has arrived."""
        return 0.0

    def waiting_cycles(self, traffic: Traffic, tiles: int, clock_hz: float) -> Integers:
        """The cycles that each tile waits for the links on which its bytes travel: (tiles,).

        0 for a tile that moves nothing to another chip.

        Args:
            tiles: those of all chips.
        """
        waiting = np.zeros(traffic.tiles, np.int64)
        chips = Chips(self.chips, tiles // self.chips)
        pairs, moved = chips.pairs(traffic.carried)
        if not len(pairs):
            return waiting
        seconds = routes_of(self).seconds(pairs, moved) + self.first_word_seconds()
        cycles = np.zeros((self.chips, self.chips), np.int64)
        cycles.ravel()[pairs] = np.ceil(seconds * clock_hz).astype(np.int64)
        for each in traffic.carried:
            for rows in chips.senders(each):
                np.maximum.at(waiting, rows.tile, cycles[chips.of(rows.tile), rows.chip])
            for rows in chips.receivers(each):
                np.maximum.at(waiting, rows.tile, cycles[rows.chip, chips.of(rows.tile)])
        return waiting


@lru_cache(maxsize=64)
def routes_of(links: Links) -> Routes:
    """The routes of a topology, made once."""
    return links.routes()
