"""The exchange of an IPU: every tile reaches every other one alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..facts import PUBLISHED, fact
from .fabric import Fabric


@dataclass(frozen=True)
class Crossbar(Fabric):
    """The exchange of an IPU, over which every tile reaches every other one alike.

    Every exchange waits for the farthest sender; otherwise, distance and congestion cost nothing.
    So only a tile's own bytes and messages count, whoever sends them.
    Source: poplibs lib/poplin/ExchangeEstimator.hpp, slowed to the rate that T10 measured; the
    routes, and that control runs beside the words, are those of ipu-stack.
    """

    kind: ClassVar[str] = "crossbar"

    route_cycles: int = fact(
        190,
        PUBLISHED,
        "ipu-stack topology.rs, IPU21: senders are 78 cycles early to 112 cycles late",
        (0, 1e7),
    )

    @property
    def least_latency(self) -> int:
        """Cycles until the words of the farthest sender arrive."""
        return self.route_cycles
