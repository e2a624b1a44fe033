"""The memory of the values of a program whose plans are decided, over time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...dialects.variable import bytes_per_tile
from ...ir.geometry.layout import Layout
from .graph import Function, Lifetime, Operator, PlanningGraph
from .layouts import Decided


@dataclass
class Memory:
    """Bytes of values on the fullest tile of each chip, at every moment of every function.

    Attributes:
        chips: the number of chips.
        peaks: the most bytes that a function takes at any moment, (chips,), by its name.
    """

    graph: PlanningGraph
    decided: Decided
    chips: int
    peaks: dict[str, NDArray[np.int64]] = field(default_factory=dict[str, NDArray[np.int64]])

    def live(self, function: Function) -> NDArray[np.int64]:
        """The bytes of live values by moment, without the memory of operators and calls: (moments,
        chips)."""
        changes = np.zeros((function.moments + 2, self.chips), np.int64)
        for each in function.lifetimes:
            size, chips = self.bytes_of(each), self._chips(each.slot)
            changes[each.start, chips] += size
            changes[each.end + 1, chips] -= size
        return np.cumsum(changes, axis=0)

    def with_operators(self, function: Function) -> NDArray[np.int64]:
        """The bytes of live values, operators and calls by moment: (moments, chips)."""
        live = self.live(function)
        for node in function.operators:
            choice = self.decided.options[node].choice
            # An operator's own bytes include its result.
            live[node.moment, self.chips_of(node)] += choice.temporary_bytes
        for moment, callee in function.calls:
            live[moment] += self.peak(callee)
        return live

    def chips_of(self, node: Operator) -> NDArray[np.int64]:
        """The chips on which an operator takes memory, with the one that combines its partials."""
        plan = self.decided.options[node].choice.plan
        ends = [plan] if plan.combine is None else [plan, plan.combine]
        return np.unique(np.concatenate([node.part.chips_of(each.tiles) for each in ends]))

    def _chips(self, slot: int) -> NDArray[np.int64]:
        return self.graph.parts[slot].chips_of(self._layout(slot).tiles)

    def bytes_of(self, each: Lifetime) -> int:
        """The bytes of a value on a tile; 0 if it overwrites a state."""
        layout, parts = self._layout(each.slot), self.graph.parts
        if each.into is not None and parts[each.slot] == parts[each.into]:
            if layout == self._layout(each.into):
                return 0
        return bytes_per_tile(layout, each.itemsize)

    def _layout(self, slot: int) -> Layout:
        return self.graph.fixed.get(slot) or self.decided.layouts[slot]

    def peak(self, name: str) -> NDArray[np.int64]:
        """The most bytes that a function takes at any moment: (chips,)."""
        if name not in self.peaks:
            # This entry ends a recursion: a call of a function by itself counts as 0.
            self.peaks[name] = np.zeros(self.chips, np.int64)
            function = self.graph.functions.get(name, Function())
            self.peaks[name] = self.with_operators(function).max(axis=0)
        return self.peaks[name]


def live_bytes(graph: PlanningGraph, decided: Decided, chips: int) -> NDArray[np.int64]:
    """Bytes of values and temporaries at the worst moment, on the fullest tile of each chip:
    (chips,)."""
    memory = Memory(graph, decided, chips)
    found = np.zeros(chips, np.int64)
    for name in graph.functions:
        np.maximum(found, memory.peak(name), out=found)
    return found


def other_bytes(graph: PlanningGraph, decided: Decided, chips: int) -> dict[Operator, int]:
    """By operator, the bytes of all other values while it runs, including those of its callers, on
    the fullest of its chips."""
    memory = Memory(graph, decided, chips)
    live = {name: memory.live(function) for name, function in graph.functions.items()}
    known: dict[str, NDArray[np.int64]] = {}

    def below(name: str) -> NDArray[np.int64]:
        if name not in known:
            known[name] = np.zeros(chips, np.int64)
            found = known[name]
            for caller, function in graph.functions.items():
                for moment, callee in function.calls:
                    if callee == name:
                        found = np.maximum(found, below(caller) + live[caller][moment])
            known[name] = found
        return known[name]

    return {
        node: int((below(name) + live[name][node.moment])[node.part.chips].max())
        for name, function in graph.functions.items()
        for node in function.operators
    }
