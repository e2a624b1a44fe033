"""A mesh: tiles in columns, joined to their neighbours. Distance and busy links cost cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...ir.support.arrays import Integers
from ..facts import ASSUMED, fact
from .fabric import Fabric
from .lines import OnLines, busiest_on_the_way

if TYPE_CHECKING:
    from .traffic import Flows, Traffic


@dataclass(frozen=True)
class Mesh(Fabric):
    """Tiles in columns, each joined to its neighbours. Tile t is tile t % rows of column t // rows.

        row 0   0 = 3 = 6    = a trunk joins neighbouring columns
        link    |   |   |
        row 1   1 = 4 = 7    | a link joins neighbours in a column
        link    |   |   |
        row 2   2 = 5 = 8

    Words cross to the column of their receiver first, and then go along it. Routers copy them on
    the way, so that a link carries each word once, however many tiles want it. A message arrives
    once its farthest word has come all the way, and the busiest link or trunk on its way has
    carried all that it has to carry. Assumed: whatever crosses between two columns spreads evenly
    over their rows, so that a trunk is as fast as all of these links together.
    """

    kind: ClassVar[str] = "mesh"
    has_timetables: ClassVar[bool] = False
    # Columns would go on from one chip to the next.
    several_chips: ClassVar[bool] = False

    pair_factor: float = fact(1.0, ASSUMED, "every tile has a port of its own", (1, 2))
    rows: int = fact(23, ASSUMED, "as many tiles in a column as IPU21 has, ipu-stack", (1, 1e6))
    hop_cycles: int = fact(2, ASSUMED, "a router and a wire; WSE-2 is said to take 1", (0, 1e6))
    row_bytes_per_cycle: float = fact(
        8.0, ASSUMED, "a link between neighbours of two columns is as wide as a vector", (1e-3, 1e9)
    )
    column_bytes_per_cycle: float = fact(
        8.0, ASSUMED, "a link between neighbours in a column is as wide as a vector", (1e-3, 1e9)
    )

    @property
    def least_latency(self) -> int:
        """Cycles of the hop to a neighbour."""
        return self.hop_cycles

    def exchange_cycles(self, traffic: Traffic) -> Integers:
        """Cycles of an exchange on each tile, without the sync: (tiles,).

        A tile is done when its ports are, and when its last message has arrived or has left it for
        good: it waits for the farthest and for the busiest way.
        """
        flows = traffic.flows()
        ports = super().exchange_cycles(traffic)
        if not len(flows.source):
            return ports
        waiting = self._busiest(flows, traffic.tiles)
        hops = self._hops(flows)
        slowest, farthest = np.zeros(traffic.tiles, np.int64), np.zeros(traffic.tiles, np.int64)
        for tile in (flows.source, flows.destination):
            np.maximum.at(slowest, tile, waiting)
            np.maximum.at(farthest, tile, hops)
        busy = np.maximum(ports - self.least_latency, slowest)
        return np.where(ports > 0, busy + np.maximum(farthest, 1) * self.hop_cycles, 0)

    def column_of(self, tiles: Integers) -> Integers:
        """The column of each tile."""
        return tiles // self.rows

    def _hops(self, flows: Flows) -> Integers:
        """The links on the way of each flow: (flows,)."""
        across = self.column_of(flows.source) - self.column_of(flows.destination)
        return np.abs(across) + np.abs(flows.source % self.rows - flows.destination % self.rows)

    def _busiest(self, flows: Flows, tiles: int) -> Integers:
        """Cycles that the busiest link or trunk on the way of each flow is used: (flows,)."""
        column = self.column_of(np.arange(tiles))
        columns = int(column[-1]) + 1
        crossing = flows.among(column)
        trunks = busiest_on_the_way(
            OnLines(
                np.zeros(len(crossing.source), np.int64),
                crossing.source,
                crossing.destination,
                crossing.bytes,
                crossing.stream,
                crossing.stream_bytes[crossing.stream],
            ),
            1,
            columns,
        )
        # The row of `crossing` that each flow is a part of, in the order of `among`.
        key = flows.stream * columns + column[flows.destination]
        keys = crossing.stream * columns + crossing.destination
        at = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
        across = column[flows.source] != column[flows.destination]
        on_trunk = np.where(across, trunks[at], 0) if len(keys) else np.zeros_like(key)
        links = busiest_on_the_way(
            OnLines(
                column[flows.destination],
                flows.source % self.rows,
                flows.destination % self.rows,
                flows.bytes,
                flows.stream,
                flows.stream_bytes[flows.stream],
            ),
            columns,
            self.rows,
        )
        trunk = self.row_bytes_per_cycle * self.rows
        cycles = np.maximum(on_trunk / trunk, links / self.column_bytes_per_cycle)
        return np.ceil(cycles).astype(np.int64)
