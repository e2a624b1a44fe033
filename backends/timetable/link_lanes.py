"""The lanes of links between chips, and what messages to other chips ask of them.

A link carries the words of several tiles at once: as many as its rate has words of a lane. So it is
a bundle of equal lanes, and the tiles that send over it take turns to get one.

    chip 0                     chip 1
    lane out of tile 0  |----|
    lane of the link      |-----|          a little slower than a tile's lane, or much
    lane in of tile 9            |----|    begins when its last word arrives in time
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Integers
from ..links.links import Links, Routes, routes_of
from ..target import Target


@dataclass(frozen=True, eq=False)
class Crossings:
    """The windows of messages on the lanes of links: (windows,) each. They begin with the message.

    Attributes:
        lane: from 0, link by link.
        message: each message has one window on each link that it uses.
        length: cycles.
    """

    lane: Integers
    message: Integers
    length: Integers


@dataclass(frozen=True)
class LinkLanes:
    """The lanes of the links between the chips of a machine.

    Attributes:
        links: how many chips there are, and what joins them.
        chip_tiles: the tiles of a chip.
        clock_hz: of the tiles.
        word_bytes: what a lane of a tile carries in a cycle.
    """

    links: Links
    chip_tiles: int
    clock_hz: float
    word_bytes: int

    @staticmethod
    @lru_cache(maxsize=64)
    def of(target: Target) -> LinkLanes | None:
        """The lanes of a target's links; None if it has one chip."""
        if target.chips == 1:
            return None
        tiles = target.tiles // target.chips
        return LinkLanes(target.links, tiles, target.clock_hz, target.exchange.word_bytes)

    @property
    def first_word_cycles(self) -> int:
        """Cycles until the first word of a message to another chip has arrived."""
        return ceil(self.links.first_word_seconds() * self.clock_hz)

    @property
    def count(self) -> int:
        """The lanes of all links."""
        return int(self._lanes.sum())

    def chip_of(self, tile: Integers) -> Integers:
        """The chip of each tile. Tiles behind the last chip count as tiles of this one."""
        return np.minimum(tile // self.chip_tiles, self.links.chips - 1)

    def name_of(self, lane: int) -> str:
        """What a lane is, for people."""
        link = int(np.searchsorted(self._first, lane, side="right")) - 1
        return f"the link {self.links.link_names()[link]}"

    def crossings(
        self, tile: Integers, words: Integers, message: Integers, receiver: Integers
    ) -> Crossings:
        """The windows of messages on the lanes of links.

        Words that several tiles of a chip want cross a link once. Those that several chips want
        cross it once for each of these chips.

        Args:
            tile, words: of each message, (messages,).
            message, receiver: of each delivery, (deliveries,).
        """
        chips = self.links.chips
        of, to = self.chip_of(tile[message]), self.chip_of(receiver)
        away = np.flatnonzero(of != to)
        sent = np.unique(message[away] * chips + to[away])
        which, end = np.divmod(sent, chips)
        pair = self.chip_of(tile[which]) * chips + end
        first, uses = self._begins[pair], self._begins[pair + 1] - self._begins[pair]
        row = np.repeat(first - (np.cumsum(uses) - uses), uses) + np.arange(int(uses.sum()))
        links = len(self._lanes)
        key, times = np.unique(
            np.repeat(which, uses) * links + self._routes.link[self._sorted[row]],
            return_counts=True,
        )
        which, link = np.divmod(key, links) if links else (key, key)
        # The tiles that send over a link, counted from 0, take its lanes in turn.
        senders, place = np.unique(link * (int(tile.max(initial=0)) + 1) + tile[which], False, True)
        own = senders // (int(tile.max(initial=0)) + 1)
        turn = place - np.searchsorted(own, link)
        carried = words[which] * self.word_bytes * times
        return Crossings(
            self._first[link] + turn % self._lanes[link],
            which,
            np.ceil(carried / self._bytes_per_cycle[link]).astype(np.int64),
        )

    @property
    def _routes(self) -> Routes:
        return routes_of(self.links)

    @cached_property
    def _lanes(self) -> Integers:
        """The lanes of each link: (links,)."""
        rate = self._routes.bytes_per_second / self.clock_hz
        return np.maximum(np.ceil(rate / self.word_bytes), 1).astype(np.int64)

    @cached_property
    def _first(self) -> Integers:
        """The first lane of each link: (links,)."""
        return np.cumsum(self._lanes) - self._lanes

    @cached_property
    def _bytes_per_cycle(self) -> NDArray[np.float64]:
        """What each lane of a link carries in a cycle: (links,)."""
        return self._routes.bytes_per_second / self.clock_hz / self._lanes

    @cached_property
    def _sorted(self) -> Integers:
        """The rows of the routes, sorted by pair of chips."""
        return np.argsort(self._routes.pair, kind="stable")

    @cached_property
    def _begins(self) -> Integers:
        """Where the links of each pair of chips begin among these rows: (pairs + 1,)."""
        pairs = np.arange(self.links.chips**2 + 1)
        return np.searchsorted(self._routes.pair[self._sorted], pairs)


def lane_name(number: int, tiles: int, links: LinkLanes | None) -> str:
    """A lane of a timetable, for people.

    Args:
        tiles: of the machine. Their lanes come first.
        links: between its chips; None if it has one, or if nobody knows them here.
    """
    own = number - 2 * tiles
    if own >= 0:
        return "link" if links is None else links.name_of(own)
    return f"the lane {'in' if number % 2 else 'out'} of tile {number // 2}"
