"""What one execution of a superstep does to the clocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Integers


@dataclass(frozen=True, eq=False)
class Advance:
    """What one execution of a superstep does to the clocks; each array is (zones,).

    The zones of a group wait for the last one of them. Each zone then takes its own cycles. Zones
    that do not take part have 0 cycles.

    Attributes:
        takes_part: whether the zone does anything, or meets others.
        group: the number of the group that the zone meets; -1 if it meets no other zone.
        tile: the tile of the zone that decides: its exchange and compute together take longest.
        sync_cycles: until the tiles have met.
        exchange_cycles, compute_cycles: of that tile.
        worst_compute_cycles: as that of a SuperstepPrice, for the tiles of the zone.
    """

    takes_part: NDArray[np.bool_]
    group: Integers
    tile: Integers
    sync_cycles: Integers
    exchange_cycles: Integers
    compute_cycles: Integers
    worst_compute_cycles: Integers

    @cached_property
    def cycles(self) -> Integers:
        """The cycles of each zone from where its group has met."""
        return self.sync_cycles + self.exchange_cycles + self.compute_cycles

    @cached_property
    def worst_cycles(self) -> Integers:
        """As cycles, if the indices of each lookup all name rows of one tile."""
        return self.sync_cycles + self.exchange_cycles + self.worst_compute_cycles

    @cached_property
    def meeting(self) -> Meeting | None:
        """Who waits for whom; None if no zone waits for another one."""
        return Meeting.of(self.group)

    def starts(self, clocks: Integers) -> Integers:
        """The clocks when every zone has met its group: (zones,).

        Args:
            clocks: before, (zones,).
        """
        return clocks if self.meeting is None else self.meeting.met(clocks[:, None])[0][:, 0]


@dataclass(frozen=True, eq=False)
class Meeting:
    """Groups of zones that wait for each other.

    Attributes:
        zones: the zones of all groups, group by group.
        first: where each group begins among them, (groups,).
        number: the group of each of them.
    """

    zones: Integers
    first: Integers
    number: Integers

    @staticmethod
    def of(group: Integers) -> Meeting | None:
        """The meeting of groups of two zones or more; None if there is none.

        Args:
            group: the number of each zone's group, (zones,); -1 for none.
        """
        joined = group >= 0
        if joined.any():
            joined[joined] = np.bincount(group[joined])[group[joined]] > 1
        zones = np.flatnonzero(joined)
        if not len(zones):
            return None
        zones = zones[np.argsort(group[zones], kind="stable")]
        _, first, number = np.unique(group[zones], return_index=True, return_inverse=True)
        return Meeting(zones, first, number)

    def met(self, clocks: Integers) -> tuple[Integers, Integers]:
        """The clocks after the groups have met, (zones, columns), and for each group the zone that
        the others have waited for, (groups, columns): the first of the latest ones.

        Args:
            clocks: before, (zones, columns).
        """
        own = clocks[self.zones]
        latest = np.maximum.reduceat(own, self.first, axis=0)
        late = np.where(own == latest[self.number], self.zones[:, None], len(clocks))
        found = clocks.copy()
        found[self.zones] = latest[self.number]
        return found, np.minimum.reduceat(late, self.first, axis=0)
