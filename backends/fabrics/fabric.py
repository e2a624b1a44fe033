"""A fabric: what carries words between tiles, and the cycles of an exchange and of a sync.

A fabric is a frozen dataclass. Its fields are facts of the machine, and its methods price an
exchange from them. `Fabric` has what every tile has: a port in, a port out, and a supervisor that
starts sends and receives. A subclass adds what lies between the ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...ir.support.arrays import Integers, integers
from ..facts import ASSUMED, MEASURED, PUBLISHED, fact

# A command that only resolves a target needs no traffic.
if TYPE_CHECKING:
    from .traffic import Traffic

_CONTROL = "published for the C600 alone, ipu-stack ipu21/costs.rs"


@dataclass(frozen=True)
class Fabric:
    """What carries words between tiles.

    These fields are the facts of a tile's ports, and of what starts sends and receives.

    Attributes:
        kind: the name of the class in `exchange.fabric`. A subclass sets it.
        has_timetables: whether messages can have timetables: only lanes of tiles are ever busy.
        several_chips: whether its price of an exchange holds if the tiles are those of several
            chips.
    """

    kind: ClassVar[str] = ""
    kind_key: ClassVar[str] = "fabric"
    has_timetables: ClassVar[bool] = True
    several_chips: ClassVar[bool] = True

    send_bytes_per_cycle: float = fact(
        4.0, PUBLISHED, "Target::getExchangeBytesPerCycle in ipu-stack", (1e-3, 1e6)
    )
    receive_bytes_per_cycle: float = fact(
        4.0, PUBLISHED, "Target::getExchangeBytesPerCycle in ipu-stack", (1e-3, 1e6)
    )
    efficiency: float = fact(
        0.8925, MEASURED, "0.56 cycles per 2 bytes, the T10 and Elk fit on Mk2", (1e-3, 1)
    )
    sync_cycles: int = fact(
        118, MEASURED, "the T10 and Elk fit on Mk2, per phase; 64 to 117 on Mk1", (1, 1e7)
    )
    pair_factor: float = fact(
        2.0,
        PUBLISHED,
        "poplibs tilesPerSharedExchangeBus is 2: speedup if two tiles receive the same",
        (1, 2),
    )
    word_bytes: int = fact(4, PUBLISHED, "poplibs TileMapping.cpp, exchange word", (1, 64))
    send_cycles: int = fact(2, ASSUMED, f"work of a send; {_CONTROL}", (0, 1e6))
    receive_cycles: int = fact(2, ASSUMED, f"work of a receive; {_CONTROL}", (0, 1e6))
    place_cycles: int = fact(
        1, ASSUMED, f"work of a receive where the write pointer moves; {_CONTROL}", (0, 1e6)
    )

    timetables: int = fact(
        0, ASSUMED, "a choice: 1 to price each exchange by the timetable of its messages", (0, 1)
    )
    phase_cycles: int = fact(
        250,
        ASSUMED,
        "cycles of a superstep beside those of its timetable; published for the C600 alone, "
        "ipu-stack EXCHANGE_SLACK",
        (0, 1e7),
    )

    # What a subclass may say.

    @property
    def least_latency(self) -> int:
        """Cycles that no exchange is spared, however near its tiles are."""
        return 0

    def exchange_cycles(self, traffic: Traffic) -> Integers:
        """Cycles of an exchange on each tile, without the sync: (tiles,).

        A subclass may look at who sends to whom; its price must not be below `least_cycles`. This
        one looks at the ports alone.
        """
        return self.least_cycles(traffic.arriving, traffic.sent, traffic.control)

    def latency(self, source: Integers, destination: Integers) -> Integers:
        """Cycles from the moment a tile sends a word to that at which its receiver hears it.

        Each tile counts from its own release by the sync, so a number may be negative. 0 for a
        fabric whose distances nobody measured.

        Args:
            source, destination: tiles, (pairs,).
        """
        return np.zeros(len(np.broadcast_arrays(source, destination)[0]), np.int64)

    def meeting_cycles(self, zone: str) -> int:
        """Cycles until the tiles of a sync zone have met.

        Args:
            zone: one of `SYNC_ZONES` of the dialect tile. On a single chip, all zones meet alike.
        """
        del zone
        return self.sync_cycles

    # What the ports take.

    def least_cycles(
        self, received_bytes: ArrayLike, sent_bytes: ArrayLike, control: ArrayLike = 0
    ) -> Integers:
        """A lower bound of the cycles of an exchange on each tile, from what its ports carry.

        Words come in, words go out, and the supervisor starts sends and receives: all three at the
        same time, so that the longest decides.

        Args:
            control: as `control_cycles` counts.
        """
        receiving, sending = self._rates()
        most = np.maximum(integers(received_bytes) / receiving, integers(sent_bytes) / sending)
        most = np.maximum(np.ceil(most).astype(np.int64), integers(control))
        return np.where(most > 0, most + self.least_latency, 0)

    def least_cycles_of_one(
        self, received_bytes: float, sent_bytes: float, control: int = 0
    ) -> int:
        """As least_cycles, for one tile; ten times as fast as with arrays of one number."""
        receiving, sending = self._rates()
        most = max(ceil(max(int(received_bytes) / receiving, int(sent_bytes) / sending)), control)
        return most + self.least_latency if most > 0 else 0

    def control_cycles(self, sends: ArrayLike, receives: ArrayLike, places: ArrayLike) -> Integers:
        """Cycles in which a tile's supervisor starts sends and receives.

        Source: ipu-stack ipu21/costs.rs, for the C600. Assumed for other chips.

        Args:
            places: receives that do not follow the one before in memory, so that a write pointer
                moves.
        """
        starting = integers(sends) * self.send_cycles + integers(receives) * self.receive_cycles
        return starting + integers(places) * self.place_cycles

    def _rates(self) -> tuple[float, float]:
        """Bytes per cycle that a tile receives, and that it sends."""
        receiving = self.receive_bytes_per_cycle * self.efficiency
        return receiving, self.send_bytes_per_cycle * self.efficiency
