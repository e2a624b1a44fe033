"""What a program costs: the cycles of every superstep, and of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ..dialects import control
from ..dialects.exchange import ComputeOp, MoveOp, SuperstepOp
from ..dialects.program import Copy, Variable, Vertices
from ..ir.errors import InputError
from ..ir.geometry.layout import Layout
from ..ir.geometry.overlap import Overlap, overlap, parts_of_cells
from ..ir.provenance import origin, place
from ..ir.upstream import ModuleOp
from . import cost
from .codelets.prices import cells_cycles
from .target import Target

Integers = NDArray[np.int64]

ENTRY = "main"


@dataclass(frozen=True)
class SuperstepPrice:
    """The cycles of one superstep, each time that it runs.

    origin: the node that it came from. times: how often a run of the program executes it.
    sync_cycles: all tiles meet. exchange_cycles: of the tile that receives or sends longest.
    compute_cycles: of the tile that computes longest; what a tile copies to itself and the
    padding that it fills are charged here. exchange_bytes: received from other tiles, over
    all tiles. busiest_tile: the one that exchanges and computes longest.
    """

    name: str
    origin: str | None
    times: int
    sync_cycles: int
    exchange_cycles: int
    compute_cycles: int
    exchange_bytes: int
    busiest_tile: int

    @property
    def cycles(self) -> int:
        """All cycles of one execution."""
        return self.sync_cycles + self.exchange_cycles + self.compute_cycles


@dataclass(frozen=True)
class Totals:
    """A run of a program: supersteps executed, their cycles, the bytes that they exchange."""

    supersteps: int
    cycles: int
    sync_cycles: int
    exchange_cycles: int
    compute_cycles: int
    exchange_bytes: int


def totals(prices: Sequence[SuperstepPrice]) -> Totals:
    """The sum over all executions."""
    return Totals(
        supersteps=sum(p.times for p in prices),
        cycles=sum(p.times * p.cycles for p in prices),
        sync_cycles=sum(p.times * p.sync_cycles for p in prices),
        exchange_cycles=sum(p.times * p.exchange_cycles for p in prices),
        compute_cycles=sum(p.times * p.compute_cycles for p in prices),
        exchange_bytes=sum(p.times * p.exchange_bytes for p in prices),
    )


def price(module: ModuleOp, target: Target) -> tuple[SuperstepPrice, ...]:
    """The price of every superstep of an exchange module, in the order of its text.

    A repeat's body counts as often as it turns and a function as often as it is called; a
    while's test and body count once; of an if's branches the dearer one runs. Traffic with
    the host is not charged. Messages are charged by their bytes alone, and what a tile
    copies to itself as one contiguous copy a source.
    Raises InputError for a module that has no entry function or names no such variable.
    """
    variables = variables_of(module)
    steps = [op for op in module.walk() if isinstance(op, SuperstepOp)]
    prices = {step: superstep_price(step, variables, target) for step in steps}
    times = _Executions(functions_of(module), {s: p.cycles for s, p in prices.items()}).entry()
    return tuple(replace(prices[step], times=times.get(step, 0)) for step in steps)


def variables_of(module: ModuleOp) -> dict[str, Variable]:
    """The variables of a program by name."""
    return {op.symbol: op for op in module.body.block.ops if isinstance(op, Variable)}


def functions_of(module: ModuleOp) -> dict[str, func.FuncOp]:
    """The functions of a program by name. Raises InputError if there is no entry."""
    functions = {
        op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)
    }
    if ENTRY not in functions:
        raise InputError(f"the module has no function @{ENTRY}")
    return functions


def callee_of(
    call: func.CallOp, functions: Mapping[str, func.FuncOp], calling: Sequence[str]
) -> func.FuncOp:
    """The function that is called. Raises InputError if there is none, or it calls itself."""
    name = call.callee.string_value()
    if name not in functions:
        raise InputError(f"{call.name} at {place(call)}: no function @{name}")
    if name in calling:
        raise InputError(f"{call.name} at {place(call)}: @{name} calls itself")
    return functions[name]


def operands_of(op: Vertices | Copy, variables: Mapping[str, Variable]) -> list[Variable]:
    """The variables that an operation reads and, last, the one it writes.

    Raises InputError where there is no such variable.
    """
    names = [*op.sources, op.destination]
    for name in names:
        if name not in variables:
            raise InputError(f"{op.name} at {place(op)}: no variable @{name}")
    return [variables[name] for name in names]


# How often a superstep runs


@dataclass(frozen=True)
class _Executions:
    functions: Mapping[str, func.FuncOp]
    cycles: Mapping[SuperstepOp, int]

    def entry(self) -> dict[SuperstepOp, int]:
        """Executions of each superstep in a run."""
        return self._block(self.functions[ENTRY].body.block, (ENTRY,))

    def _block(self, block: Block, calling: tuple[str, ...]) -> dict[SuperstepOp, int]:
        times: dict[SuperstepOp, int] = {}
        for op in block.ops:
            for step, count in self._operation(op, calling).items():
                times[step] = times.get(step, 0) + count
        return times

    def _operation(self, op: Operation, calling: tuple[str, ...]) -> dict[SuperstepOp, int]:
        match op:
            case SuperstepOp():
                return {op: 1}
            case control.RepeatOp():
                once = self._block(op.body.block, calling)
                return {step: count * op.turns for step, count in once.items()}
            case control.IfOp():
                branches = [self._block(r.block, calling) for r in (op.then, op.otherwise)]
                return max(branches, key=self._cost)
            case control.WhileOp():
                test = self._block(op.test.block, calling)
                for step, count in self._block(op.body.block, calling).items():
                    test[step] = test.get(step, 0) + count
                return test
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                return self._block(callee.body.block, (*calling, callee.sym_name.data))
            case _:
                return {}

    def _cost(self, times: Mapping[SuperstepOp, int]) -> int:
        return sum(count * self.cycles[step] for step, count in times.items())


# What a superstep costs


def superstep_price(
    step: SuperstepOp, variables: Mapping[str, Variable], target: Target
) -> SuperstepPrice:
    """The price of one superstep, executed once. Raises InputError for an unknown variable."""
    tiles = max(target.tiles, _last_tile(step, variables))
    received = np.zeros(tiles, np.int64)
    arriving = np.zeros(tiles, np.int64)
    sent = np.zeros(tiles, np.int64)
    compute = np.zeros(tiles, np.int64)
    for op in step.body.block.ops:
        if isinstance(op, MoveOp):
            _charge_move(op, variables, target, received, arriving, sent, compute)
        elif isinstance(op, ComputeOp):
            *reads, result = operands_of(op, variables)
            dtypes = [v.dtype for v in (*reads, result)]
            plan = op.plan.data
            cycles = cells_cycles(op.structure(), plan, dtypes, target)
            order = [*plan.order, *(d for d in range(cycles.ndim) if d not in plan.order)]
            compute[plan.first_tile : plan.first_tile + cycles.size] += cycles.transpose(
                order
            ).ravel()
    exchange = cost.exchange_cycles(arriving, sent, target)
    return SuperstepPrice(
        name=step.sym_name.data,
        origin=origin(step),
        times=1,
        sync_cycles=cost.sync_cycles(target),
        exchange_cycles=int(exchange.max(initial=0)),
        compute_cycles=int(compute.max(initial=0)),
        exchange_bytes=int(received.sum()),
        busiest_tile=int(np.argmax(exchange + compute)),
    )


def _last_tile(step: SuperstepOp, variables: Mapping[str, Variable]) -> int:
    last = 0
    for op in step.body.block.ops:
        if isinstance(op, Copy | Vertices):
            used = operands_of(op, variables)
            last = max(last, *(v.placed.first_tile + v.placed.cells for v in used))
        if isinstance(op, Vertices):
            last = max(last, op.plan.data.first_tile + prod(op.plan.data.split))
    return last


def copy_overlaps(op: Copy, variables: Mapping[str, Variable]) -> list[Overlap]:
    """How the blocks that a copy fills are made of the blocks of each of its sources."""
    *sources, destination = operands_of(op, variables)
    moves = op.spaces or (None,) * len(sources)
    return [
        overlap(source.placed, destination.placed, move)
        for source, move in zip(sources, moves, strict=True)
    ]


def _charge_move(
    op: MoveOp,
    variables: Mapping[str, Variable],
    target: Target,
    received: Integers,
    arriving: Integers,
    sent: Integers,
    compute: Integers,
) -> None:
    """Add to every tile's bytes received and sent, and its cycles for copies and padding.

    arriving: the bytes received as its own bus would have to bring them.
    """
    destination = variables[op.destination]
    layout, itemsize = destination.placed, destination.dtype.itemsize
    here = slice(layout.first_tile, layout.first_tile + layout.cells)
    padding = block_sizes(layout)
    for shared in copy_overlaps(op, variables):
        source = shared.source
        own = shared.received * itemsize
        received[here] += own
        arriving[here] += bus_bytes(layout, own, target)
        sent[source.first_tile : source.first_tile + source.cells] += (
            sent_elements(shared) * itemsize
        )
        compute[here] += cost.copy_cycles(shared.local * itemsize, target)
        padding = padding - shared.wanted
    compute[here] += cost.fill_cycles(np.maximum(padding, 0) * itemsize, target)


def bus_bytes(layout: Layout, received: Integers, target: Target) -> Integers:
    """What each cell receives, as bytes that its own bus would bring in the same time: (cells,).

    The two tiles of a pair have buses that reach both: where they want one block, each brings a
    share of it. Pairs are tiles 2i and 2i + 1.
    """
    if target.exchange.pair_factor == 1:
        return received
    shared = np.ceil(received / target.exchange.pair_factor).astype(np.int64)
    return np.where(shares_bus(layout), shared, received)


@lru_cache(maxsize=4096)
def shares_bus(layout: Layout) -> NDArray[np.bool_]:
    """Whether the other tile of each cell's pair holds the same block: (cells,)."""
    own = tuple(d for d in layout.split_dims if d not in layout.replica_dims)
    block = parts_of_cells(layout.parts, own)
    cells = np.arange(layout.cells)
    partner = ((cells + layout.first_tile) ^ 1) - layout.first_tile
    inside = (partner >= 0) & (partner < layout.cells)
    return inside & (block[np.where(inside, partner, 0)] == block)


@lru_cache(maxsize=4096)
def block_sizes(layout: Layout) -> Integers:
    """Elements of each cell's block, padding included: (cells,)."""
    sizes = np.ones(layout.parts, np.int64)
    for axis in range(len(layout.access.axes)):
        sizes = sizes * layout.counts(axis)
    return sizes.ravel()


def sent_elements(shared: Overlap) -> Integers:
    """Elements that each source cell sends to other tiles: (source cells,).

    What several tiles want is sent once. An upper bound where some elements have several other
    receivers and some have none, exact otherwise.
    """
    source, destination = shared.source, shared.destination
    cells = np.arange(source.cells)
    named = {d for g in shared.groups for d in g.destination_dims}
    free = prod(destination.parts[d] for d in destination.split_dims if d not in named)
    wanted = free * shared.at_sources(tuple(group.requested for group in shared.groups))
    first = cells.copy()
    for d in source.replica_dims:
        at = parts_of_cells(source.parts, (d,))
        wanted *= at == 0
        first -= at * source.weights[d]
    receiver = cells + source.first_tile - destination.first_tile
    same = (receiver >= 0) & (receiver < destination.cells)
    # What a tile has a replica of, the first one need not send it.
    saved = np.bincount(first[same], shared.local[receiver[same]], len(cells))
    wanted -= saved.astype(np.int64)
    return np.minimum(wanted, shared.sent)
