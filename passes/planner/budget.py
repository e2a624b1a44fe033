"""The choice of plans that fit the tiles together: cycles for bytes, operator by operator.

Each operator has plans that differ in cycles, bytes that stay on a tile, and bytes that they take
for a while. A cap on what any moment may take leaves the plans that keep it; one price of a
resident byte, found by bisection, chooses among them; and what is then left is spent where it saves
most. The plans are priced at one layout of the operands, so what is chosen is priced once more at
its own, and what that needs beyond or short of the estimate corrects the next try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...ir.distinct import distinct
from .choice import Choice
from .graph import Operator

Integers = NDArray[np.int64]

CAPS = 12
"""Caps on what any moment may take that are tried."""

BISECTIONS = 24
HIGHEST_BYTE_PRICE = 1e3
LOWEST_BYTE_PRICE = 1e-4


@dataclass(frozen=True)
class Selection:
    """A choice for each operator. cycles, resident, moment: by estimate; the latter two are bytes
    that stay, and at the worst moment bytes beside them. byte_price: cycles for a resident byte.
    cap: what any moment may take."""

    choices: dict[Operator, Choice]
    cycles: float
    resident: int
    moment: int
    byte_price: float
    cap: int


class Fronts:
    """The plans of all operators of a program as arrays: (operators, plans), infinite for none.

    live: by operator, the bytes of other values at its moment, on the tile that has most.
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
        """The fastest choice that is found to need at most so many bytes; None where none is."""
        found = [self._capped(int(cap), available) for cap in self._caps(available)]
        return min((s for s in found if s is not None), key=lambda s: s.cycles, default=None)

    def smallest(self) -> Selection:
        """The choice that is found to need fewest bytes."""
        found = [
            self._selection(
                self._cheapest(int(cap), HIGHEST_BYTE_PRICE), HIGHEST_BYTE_PRICE, int(cap)
            )
            for cap in self._caps(2**62)
        ]
        return min(found, key=lambda s: (s.resident + s.moment, s.cycles))

    def _caps(self, available: int) -> Integers:
        """Bytes that any moment may take: what some plans take, from the least that is possible."""
        there = np.isfinite(self.cycles)
        least = np.where(there, self.moments, 2**62).min(1).max(initial=0)
        taken = distinct(self.moments[there])
        taken = taken[(taken >= least) & (taken <= max(available, least))]
        if len(taken) <= CAPS:
            return taken
        wish = np.geomspace(max(int(taken[0]), 1), max(int(taken[-1]), 1), CAPS)
        return distinct(taken[np.searchsorted(taken, wish.round(), side="right") - 1])

    def _cheapest(self, cap: int, byte_price: float) -> Integers:
        """The index of each operator's plan that is cheapest at a price, within a cap."""
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
        """A choice with what is left of the bytes spent on plans that are faster for it."""
        rows = np.arange(len(at))
        at = at.copy()
        while True:
            left = available - self._bytes(at)
            more = self.resident - self.resident[rows, at][:, None]
            saved = self.cycles[rows, at][:, None] - self.cycles
            # A moment within the highest one so far takes no more bytes.
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
