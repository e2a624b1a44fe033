"""What a program moves between chips: bytes from chip to chip, and bytes of each link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Integers
from ..fabrics.chip_flows import Chips
from ..links.links import routes_of
from ..target import Target
from .step_charges import StepCharge


@dataclass(frozen=True, eq=False)
class Crossings:
    """The bytes that a run moves between chips.

    Attributes:
        chips: of the machine.
        pair: of chips that exchange anything, source * chips + destination, (pairs,).
        bytes: of each pair in a run, (pairs,).
        step_bytes: in one execution of each superstep, (supersteps,).
        link_bytes: over each link in a run, (links,).
        link_seconds: in which each link is busy in a run, (links,).
    """

    chips: int
    pair: Integers
    bytes: Integers
    step_bytes: Integers
    link_bytes: NDArray[np.float64]
    link_seconds: NDArray[np.float64]

    @property
    def source(self) -> Integers:
        """The chip that sends, of each pair: (pairs,)."""
        return self.pair // self.chips

    @property
    def destination(self) -> Integers:
        """The chip that receives, of each pair: (pairs,)."""
        return self.pair % self.chips


def crossings(steps: Sequence[StepCharge], target: Target) -> Crossings:
    """What the supersteps of a program move between chips.

    A word that several tiles of a chip want crosses once.
    """
    chips = target.links.chips
    moved: list[tuple[Integers, Integers]] = []
    step_bytes = np.zeros(len(steps), np.int64)
    for k, step in enumerate(steps):
        traffic = step.charge.traffic
        if chips == 1 or not traffic.carried:
            continue
        pairs, amount = Chips(chips, target.tiles_per_chip).pairs(traffic.carried)
        step_bytes[k] = amount.sum()
        moved.append((pairs, amount * step.price.times))
    none = np.zeros(0, np.int64)
    every = np.concatenate([none, *(pairs for pairs, _ in moved)])
    amounts = np.concatenate([none, *(amount for _, amount in moved)])
    pair, which = np.unique(every, return_inverse=True)
    total = np.bincount(which, amounts, len(pair)).astype(np.int64)
    routes = routes_of(target.links)
    of_pair = np.zeros(chips * chips)
    of_pair[pair] = total
    load = np.zeros(len(routes.bytes_per_second))
    np.add.at(load, routes.link, of_pair[routes.pair])
    return Crossings(chips, pair, total, step_bytes, load, load / routes.bytes_per_second)
