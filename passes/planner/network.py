"""Plans for a whole program: every operator, all weights and activations in one memory.

Each operator has plans that trade cycles for bytes that stay on a tile for good. One price of
such a byte, found by bisection, chooses among them, so that all fit together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout
from .graph import Function, Graph, read_graph
from .layouts import Chooser, Decided, add_bytes
from .limits import Limits
from .problem import Choice, Problem

BISECTIONS = 7
HIGHEST_BYTE_PRICE = 1e3
LOWEST_BYTE_PRICE = 1e-3

BOUNDS = (1.0, 0.5, 0.25, 0.1)
"""Shares of a tile that one operator alone may use, tried in turn until all fit together."""


@dataclass(frozen=True)
class Asked:
    """What an operator's plan was searched for: search(problem, have, target, bound) does.

    have: the layout of every operand, None of those that stay where the plan wants them. bound:
    bytes of a tile.
    """

    problem: Problem
    have: tuple[Layout | None, ...]
    bound: int


@dataclass(frozen=True)
class NetworkPlan:
    """The plan of every operation, and what the program then needs.

    cycles: of a run, by the planner's estimate; both branches of an if are counted, and a while
    once. resident_bytes: weights and constants of the tile that has most. live_bytes: values and
    temporaries at the worst moment, if the busiest tiles of all were the same. asked: what each
    plan was searched for.
    """

    plans: dict[Operation, Plan]
    choices: dict[Operation, Choice]
    cycles: float
    resident_bytes: int
    live_bytes: int
    asked: dict[Operation, Asked]

    @property
    def bytes_per_tile(self) -> int:
        """What the fullest tile has to hold."""
        return self.resident_bytes + self.live_bytes


def plan_network(module: ModuleOp, target: Target, limits: Limits | None = None) -> NetworkPlan:
    """Decide every structured operation and movement of a module at nn.

    limits: what is asked of its plans. Plans that operations already carry are kept. Where
    nothing fits the tiles, the plans that need least memory are returned: the allocator says what
    does not fit.
    Raises InputError for a plan that is none of its operation's.
    """
    usable = target.usable_bytes_per_tile
    network = _Network(read_graph(module, target, limits or Limits()), target)
    smallest: NetworkPlan | None = None
    for share in BOUNDS:
        bound = int(usable * share)
        found = network.one_by_one(bound, 0.0)
        if found.bytes_per_tile <= usable:
            return network.better(found, bound, 0.0)
        cheap = network.one_by_one(bound, HIGHEST_BYTE_PRICE)
        if cheap.bytes_per_tile <= usable:
            return network.cheapest_that_fits(bound, cheap)
        smallest = min((smallest or cheap, found, cheap), key=lambda p: p.bytes_per_tile)
    assert smallest is not None
    return smallest


@dataclass(frozen=True)
class _Network:
    """A program, to be planned for a target at several bounds and prices."""

    graph: Graph
    target: Target

    def one_by_one(self, bound: int, byte_price: float) -> NetworkPlan:
        """Each operator planned for itself."""
        return self._plan(self._chooser(bound, byte_price).one_by_one(), bound)

    def better(self, found: NetworkPlan, bound: int, byte_price: float) -> NetworkPlan:
        """A plan that fits, or a faster one that fits, of all operators together."""
        decided = self._chooser(bound, byte_price).together()
        if decided.cycles >= found.cycles:
            return found
        together = self._plan(decided, bound)
        return together if together.bytes_per_tile <= self._usable else found

    def cheapest_that_fits(self, bound: int, fitting: NetworkPlan) -> NetworkPlan:
        """Bisect the price of a resident byte between one that is too low and one that fits."""
        low, high = np.log(LOWEST_BYTE_PRICE), np.log(HIGHEST_BYTE_PRICE)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            tried = self.one_by_one(bound, float(np.exp(middle)))
            if tried.bytes_per_tile <= self._usable:
                high = middle
                fitting = min(fitting, tried, key=lambda p: p.cycles)
            else:
                low = middle
        return self.better(fitting, bound, float(np.exp(high)))

    @property
    def _usable(self) -> int:
        return self.target.usable_bytes_per_tile

    def _chooser(self, bound: int, byte_price: float) -> Chooser:
        resident = np.zeros(self.target.tiles, np.int64)
        for layout, dtype in self.graph.stored:
            add_bytes(resident, layout, dtype.itemsize)
        return Chooser(self.graph, self.target, bound, byte_price, resident)

    def _plan(self, decided: Decided, bound: int) -> NetworkPlan:
        options = decided.options
        return NetworkPlan(
            plans={
                **{node.op: option.choice.plan for node, option in options.items()},
                **self.graph.empty,
            },
            choices={node.op: option.choice for node, option in options.items()},
            cycles=decided.cycles,
            resident_bytes=int(decided.resident.max(initial=0)),
            live_bytes=_live_bytes(self.graph, decided),
            asked={node.op: Asked(node.problem, decided.have[node], bound) for node in options},
        )


def _live_bytes(graph: Graph, decided: Decided) -> int:
    """Bytes of values and temporaries at the worst moment, of the tile that has most."""
    blocks = {slot: layout.block_elements for slot, layout in graph.fixed.items()}
    for option in decided.options.values():
        blocks |= {slot: layout.block_elements for slot, layout in option.layouts.items()}
    known: dict[str, int] = {}

    def peak(name: str) -> int:
        if name not in known:
            # Were a function to call itself, that call would count for nothing.
            known[name] = 0
            known[name] = worst(graph.functions[name]) if name in graph.functions else 0
        return known[name]

    def worst(function: Function) -> int:
        changes = np.zeros(function.moments + 2, np.int64)
        for each in function.lifetimes:
            size = blocks[each.slot] * each.itemsize
            changes[each.start] += size
            changes[each.end + 1] -= size
        live = np.cumsum(changes)
        for node in function.operators:
            # An operator's own bytes hold its result.
            live[node.moment] += decided.options[node].choice.temporary_bytes
        for moment, name in function.calls:
            live[moment] += peak(name)
        return int(live.max())

    return max((peak(name) for name in graph.functions), default=0)
