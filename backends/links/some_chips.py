"""The links between some of the chips of a machine: those of the whole machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ...ir.geometry.chip_groups import ChipGroups
from ...ir.geometry.tiles import MOST_CHIPS
from ..facts import ASSUMED, fact
from .links import Links, Routes, routes_of


@dataclass(frozen=True)
class SomeChips(Links):
    """Some chips of a machine, which use its links. No target's file names this topology.

    Chip i is chip `first + i * apart` of the machine. Bytes go the ways that they go there, and a
    sync takes as long as there. `meeting_chips` says nothing: the machine decides who can meet.

    Attributes:
        whole: the links of the machine.
    """

    kind: ClassVar[str] = "some"

    first: int = fact(0, ASSUMED, "the chips that a function names", (0, MOST_CHIPS))
    apart: int = fact(1, ASSUMED, "the chips that a function names", (1, MOST_CHIPS))
    whole: Links = field(default=Links())

    @property
    def problem(self) -> str:
        """Why the machine does not have these chips; "" if it has."""
        last = self.first + (self.chips - 1) * self.apart
        return "" if last < self.whole.chips else f"chip {last} of {self.whole.chips}"

    def routes(self) -> Routes:
        """The links of the machine, and which of them each pair of these chips uses."""
        every = routes_of(self.whole)
        source, destination = np.divmod(every.pair, self.whole.chips)
        ends = [(chip - self.first) // self.apart for chip in (source, destination)]
        ours = np.ones(len(every.pair), np.bool_)
        for chip, own in zip((source, destination), ends, strict=True):
            ours &= (own >= 0) & (own < self.chips) & (own * self.apart + self.first == chip)
        pair = ends[0] * self.chips + ends[1]
        return Routes(every.bytes_per_second, pair[ours], every.link[ours])

    def meeting_groups(self, wanted: ChipGroups) -> ChipGroups:
        """The groups that the machine forms. Only these chips are listed, by their numbers here."""
        first, apart, count = self.first, self.apart, self.chips
        ours = {first + i * apart: i for i in range(count)}
        groups = ([ours[c] for c in group if c in ours] for group in self._formed(wanted).groups)
        return ChipGroups.of(filter(None, groups))

    def meeting_seconds(self, chips: Sequence[int] = ()) -> float:
        """Seconds in which the tiles of several chips meet, beyond what those of one chip take.

        If the machine cannot let these chips meet alone, it is what the larger group takes.

        Args:
            chips: in ascending order; () for all of these chips.
        """
        formed = self._formed(ChipGroups.of([chips or range(self.chips)]))
        return max(map(self.whole.meeting_seconds, formed.groups))

    def _formed(self, wanted: ChipGroups) -> ChipGroups:
        """The groups of the machine's chips in which these chips meet."""
        first, apart = self.first, self.apart
        return self.whole.meeting_groups(
            ChipGroups.of([first + i * apart for i in group] for group in wanted.groups)
        )

    def first_word_seconds(self) -> float:
        """Seconds until the first word of an exchange between chips has arrived."""
        return self.whole.first_word_seconds()
