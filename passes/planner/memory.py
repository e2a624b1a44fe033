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
    """Bytes of values on the fullest tile, at every moment of every function."""

    graph: PlanningGraph
    decided: Decided
    peaks: dict[str, int] = field(default_factory=dict[str, int])

    def live(self, function: Function) -> NDArray[np.int64]:
        """The bytes of live values by moment, without the memory of operators and calls."""
        changes = np.zeros(function.moments + 2, np.int64)
        for each in function.lifetimes:
            size = self.bytes_of(each)
            changes[each.start] += size
            changes[each.end + 1] -= size
        return np.cumsum(changes)

    def bytes_of(self, each: Lifetime) -> int:
        """The bytes of a value on a tile; 0 if it overwrites a state."""
        layout = self._layout(each.slot)
        if each.into is not None and layout == self._layout(each.into):
            return 0
        return bytes_per_tile(layout, each.itemsize)

    def _layout(self, slot: int) -> Layout:
        return self.graph.fixed.get(slot) or self.decided.layouts[slot]

    def peak(self, name: str) -> int:
        """The most bytes that a function takes at any moment."""
        if name not in self.peaks:
            # This entry ends a recursion: a call of a function by itself counts as 0.
            self.peaks[name] = 0
            function = self.graph.functions.get(name, Function())
            live = self.live(function)
            for node in function.operators:
                # An operator's own bytes include its result.
                live[node.moment] += self.decided.options[node].choice.temporary_bytes
            for moment, callee in function.calls:
                live[moment] += self.peak(callee)
            self.peaks[name] = int(live.max())
        return self.peaks[name]


def live_bytes(graph: PlanningGraph, decided: Decided) -> int:
    """Bytes of values and temporaries at the worst moment, on the fullest tile."""
    memory = Memory(graph, decided)
    return max(map(memory.peak, graph.functions), default=0)


def other_bytes(graph: PlanningGraph, decided: Decided) -> dict[Operator, int]:
    """By operator, the bytes of all other values while it runs, including those of its callers."""
    memory = Memory(graph, decided)
    live = {name: memory.live(function) for name, function in graph.functions.items()}
    known: dict[str, int] = {}

    def below(name: str) -> int:
        if name not in known:
            known[name] = 0
            known[name] = max(
                (
                    below(caller) + int(live[caller][moment])
                    for caller, function in graph.functions.items()
                    for moment, callee in function.calls
                    if callee == name
                ),
                default=0,
            )
        return known[name]

    return {
        node: below(name) + int(live[name][node.moment])
        for name, function in graph.functions.items()
        for node in function.operators
    }
