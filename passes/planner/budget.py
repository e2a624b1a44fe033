"""The choice of plans that fit the tiles together, trading cycles for bytes.

The plans of an operator differ in cycles, in resident bytes and in temporary bytes. A cap on the
temporary bytes of any moment rules out some plans. One price of a resident byte, found by
bisection, chooses among the others. The remaining bytes are spent where they save the most cycles.
All plans of an operator are priced for the same layouts of its operands, so the chosen plans are
priced again for their real layouts, and the difference corrects the next try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...ir.support.arrays import Integers
from ...ir.support.distinct import distinct
from .choice import Choice
from .graph import Operator

CAPS = 12
"""The most caps on the temporary bytes of any moment that are tried.

Chosen by trial. The roomy trial gives the same with half and double. In the tight one, ResNet-50
finds no plan that fits with half, and takes 2.3 % more cycles with double.
"""

BISECTIONS = 24
"""Steps of the search for the price of a resident byte.

They narrow the logarithm of the price, log(1e3 / 1e-4) = 16.1 wide, to 1e-6.
"""

HIGHEST_BYTE_PRICE = 1e3
LOWEST_BYTE_PRICE = 1e-4
"""The lowest price of a resident byte, in cycles.

Chosen by trial, tight, and on the networks of the roomy trial for which a price is searched
(AlexNet on mk1, ResNet-50): same with 100 as the highest, and with 0.01 as the lowest.
"""


@dataclass(frozen=True)
class Selection:
    """A choice of plans for all operators, with an estimate of the memory they need together.

    Attributes:
        resident: bytes that stay on a tile.
        moment: other bytes at the worst moment.
        byte_price: the price of a resident byte in cycles.
        cap: the most temporary bytes of any moment.
    """

    choices: dict[Operator, Choice]
    cycles: float
    resident: int
    moment: int
    byte_price: float
    cap: int


class Fronts:
    """The plans of all operators of a program as arrays, (operators, plans).

    A row with fewer plans than others ends with infinite cycles.

    Attributes:
        live: by operator, the bytes of other values while it runs, on the fullest tile.
    """

    def __init__(
        self, choices: Mapping[Operator, tuple[Choice, ...]], live: Mapping[Operator, int]
    ) -> None:
        self.operators = tuple(choices)
        self.choices = tuple(choices.values())
        shape = len(choices), max(map(len, self.choices), default=0)
        self.cycles = np.full(shape, np.inf)
        self.resident = np.zeros(shape, np.int64)
        self.moments = np.zeros(shape, np.int64)
        for i, (node, found) in enumerate(choices.items()):
            n = len(found)
            self.cycles[i, :n] = [c.cycles * node.times for c in found]
            self.resident[i, :n] = [c.resident_bytes for c in found]
            self.moments[i, :n] = [live[node] + c.temporary_bytes for c in found]

    def within(self, available: int) -> Selection | None:
        """The fastest choice found that fits in the available bytes, or None."""
        found = [self._capped(int(cap), available) for cap in self._caps(available)]
        return min((s for s in found if s is not None), key=lambda s: s.cycles, default=None)

    def smallest(self) -> Selection:
        """The choice found that needs the fewest bytes."""
        found = [
            self._selection(
                self._cheapest(int(cap), HIGHEST_BYTE_PRICE), HIGHEST_BYTE_PRICE, int(cap)
            )
            for cap in self._caps(2**62)
        ]
        return min(found, key=lambda s: (s.resident + s.moment, s.cycles))

    def _caps(self, available: int) -> Integers:
        """The caps to try: the temporary bytes of some plans, from the smallest possible on."""
        there = np.isfinite(self.cycles)
        least = np.where(there, self.moments, 2**62).min(1).max(initial=0)
        taken = distinct(self.moments[there])
        taken = taken[(taken >= least) & (taken <= max(available, least))]
        if len(taken) <= CAPS:
            return taken
        wish = np.geomspace(max(int(taken[0]), 1), max(int(taken[-1]), 1), CAPS)
        return distinct(taken[np.searchsorted(taken, wish.round(), side="right") - 1])

    def _cheapest(self, cap: int, byte_price: float) -> Integers:
        """The index of each operator's cheapest plan within a cap, at a price of a resident
        byte."""
        least = np.where(np.isfinite(self.cycles), self.moments, 2**62).min(1, keepdims=True)
        allowed = self.moments <= np.maximum(cap, least)
        price = np.where(allowed, self.cycles + byte_price * self.resident, np.inf)
        return np.argmin(price, axis=1)

    def _capped(self, cap: int, available: int) -> Selection | None:
        low, high = np.log(LOWEST_BYTE_PRICE), np.log(HIGHEST_BYTE_PRICE)
        at = self._cheapest(cap, 0.0)
        price = 0.0
        if self._bytes(at) > available:
            at, price = self._cheapest(cap, HIGHEST_BYTE_PRICE), HIGHEST_BYTE_PRICE
            if self._bytes(at) > available:
                return None
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                tried = self._cheapest(cap, float(np.exp(middle)))
                if self._bytes(tried) <= available:
                    high, at, price = middle, tried, float(np.exp(middle))
                else:
                    low = middle
            at = self._spent(at, cap, available)
        return self._selection(at, price, cap)

    def _spent(self, at: Integers, cap: int, available: int) -> Integers:
        """A choice improved by spending its unused bytes on faster plans."""
        rows = np.arange(len(at))
        at = at.copy()
        while True:
            left = available - self._bytes(at)
            more = self.resident - self.resident[rows, at][:, None]
            saved = self.cycles[rows, at][:, None] - self.cycles
            # A plan whose moment is not above the worst moment adds no temporary bytes.
            allowed = self.moments <= min(cap, int(self.moments[rows, at].max()))
            worth = np.where((saved > 0) & (more <= left) & allowed, saved, 0.0)
            rate = worth / np.maximum(more, 1)
            best = int(np.argmax(rate))
            i, k = divmod(best, rate.shape[1])
            if rate.flat[best] <= 0:
                return at
            at[i] = k

    def _bytes(self, at: Integers) -> int:
        rows = np.arange(len(at))
        moment = int(self.moments[rows, at].max(initial=0))
        return int(self.resident[rows, at].sum()) + moment

    def _selection(self, at: Integers, byte_price: float, cap: int) -> Selection:
        rows = np.arange(len(at))
        return Selection(
            {
                node: found[k]
                for node, found, k in zip(self.operators, self.choices, at.tolist(), strict=True)
            },
            float(self.cycles[rows, at].sum()),
            int(self.resident[rows, at].sum()),
            int(self.moments[rows, at].max(initial=0)),
            byte_price,
            cap,
        )
