"""The price of a program: the cycles of every superstep, and their sum."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ...dialects import control, exchange
from ...dialects.tile import Arrival, CopyOp, LoadOp, StoreOp, SuperstepOp, SyncOp, VerticesOp
from ...dialects.variable import Variable
from ...ir.geometry.fragments import fragments
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import Overlap, overlap, parts_of_cells, sent_elements
from ...ir.provenance import line_of, origin, place
from ...ir.support.arrays import Integers
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..fabrics.traffic import Carried, Traffic
from ..target import Target
from . import cost
from .codelets import cells_cycles
from .words import words_only
from .workload import Workload


@dataclass(frozen=True)
class SuperstepPrice:
    """The cycles of one execution of a superstep.

    A tile computes as soon as its own exchange has ended, and waits for the others at the next
    sync. So the tile whose exchange and compute together take longest decides.

    Attributes:
        origin: the node that it came from.
        line: of the user's file, such as net.py:12; "" if it is not known.
        times: how often a run of the program executes it.
        sync_cycles: until all tiles have met.
        busiest_tile: the tile that decides.
        exchange_cycles: in which it receives and sends.
        compute_cycles: in which it computes, including copies within the tile and padding that it
            fills.
        worst_compute_cycles: what the superstep takes beside its sync and exchange_cycles if the
            indices of each lookup all name rows of one tile, instead of rows that are spread
            evenly.
        exchange_bytes: received from other tiles, summed over all tiles.
    """

    name: str
    origin: str | None
    line: str
    times: int
    sync_cycles: int
    exchange_cycles: int
    compute_cycles: int
    exchange_bytes: int
    busiest_tile: int
    worst_compute_cycles: int

    @property
    def cycles(self) -> int:
        """The cycles of one execution."""
        return self.sync_cycles + self.exchange_cycles + self.compute_cycles


@dataclass(frozen=True)
class Totals:
    """The sums over a run of a program: supersteps, cycles, and exchanged bytes.

    Attributes:
        worst_cycles: the cycles if the indices of each lookup all name rows of one tile.
    """

    supersteps: int
    cycles: int
    sync_cycles: int
    exchange_cycles: int
    compute_cycles: int
    exchange_bytes: int
    worst_cycles: int


def totals(prices: Sequence[SuperstepPrice]) -> Totals:
    """The sums over all executions of all supersteps."""
    return Totals(
        supersteps=sum(p.times for p in prices),
        cycles=sum(p.times * p.cycles for p in prices),
        sync_cycles=sum(p.times * p.sync_cycles for p in prices),
        exchange_cycles=sum(p.times * p.exchange_cycles for p in prices),
        compute_cycles=sum(p.times * p.compute_cycles for p in prices),
        exchange_bytes=sum(p.times * p.exchange_bytes for p in prices),
        worst_cycles=sum(
            p.times * (p.cycles - p.compute_cycles + p.worst_compute_cycles) for p in prices
        ),
    )


def price(module: ModuleOp, target: Target) -> tuple[SuperstepPrice, ...]:
    """The price of every superstep of an exchange module, in the order of its text.

    A repeat's body counts once per iteration, and a function once per call. A while's test and body
    count once. Of an if, the more expensive branch counts. Traffic with the host is not part of it;
    loads from remote memory and stores to it are.
    Messages are charged by their bytes and by the fragments that they travel in, and copies within
    a tile as one contiguous copy per source. What only carries the numbers of stochastic roundings
    costs nothing (see words.py).
    Raises InputError if the module has no entry function or names an unknown variable.
    """
    variables = variables_of(module)
    steps = [op for op in module.walk() if isinstance(op, SuperstepOp)]
    free = words_only(module)
    prices = {step: superstep_price(step, variables, target, free) for step in steps}
    times = Executions(functions_of(module), {s: p.cycles for s, p in prices.items()}).entry()
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
    """The function that is called.

    Raises InputError if it does not exist, or if it calls itself.

    Args:
        calling: the functions that are being called.
    """
    name = call.callee.string_value()
    if name not in functions:
        raise InputError(f"{call.name} at {place(call)}: no function @{name}")
    if name in calling:
        raise InputError(f"{call.name} at {place(call)}: @{name} calls itself")
    return functions[name]


def operands_of(op: VerticesOp | CopyOp, variables: Mapping[str, Variable]) -> list[Variable]:
    """The variables that an operation reads and, last, those that it writes.

    Raises InputError for a variable that does not exist.
    """
    names = [*op.sources, *op.destinations]
    for name in names:
        if name not in variables:
            raise InputError(f"{op.name} at {place(op)}: no variable @{name}")
    return [variables[name] for name in names]


# How often a superstep runs

MOST_TIMES = 10**18
"""How often a superstep is counted at most. Nested loops and calls can repeat it more often."""


@dataclass(frozen=True)
class Executions:
    """How often the supersteps of a program run.

    Attributes:
        cycles: of one execution of each superstep.
    """

    functions: Mapping[str, func.FuncOp]
    cycles: Mapping[SuperstepOp, int]
    _known: dict[Block, dict[SuperstepOp, int]] = field(
        default_factory=dict[Block, dict[SuperstepOp, int]], repr=False, compare=False
    )

    def entry(self) -> dict[SuperstepOp, int]:
        """How often a run executes each superstep."""
        return self.block(self.functions[ENTRY].body.block, (ENTRY,))

    def block(self, block: Block, calling: tuple[str, ...]) -> dict[SuperstepOp, int]:
        """How often each superstep runs while a block runs once, at most MOST_TIMES.

        Each block is looked at once.

        Args:
            calling: as for callee_of.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        times: dict[SuperstepOp, int] = {}
        for op in block.ops:
            for step, count in self._operation(op, calling).items():
                times[step] = min(times.get(step, 0) + count, MOST_TIMES)
        self._known[block] = times
        return times

    def _operation(self, op: Operation, calling: tuple[str, ...]) -> dict[SuperstepOp, int]:
        match op:
            case SuperstepOp():
                return {op: 1}
            case control.RepeatOp():
                once = self.block(op.body.block, calling)
                return {step: count * op.iterations for step, count in once.items()}
            case control.IfOp():
                return self.block(self.dearer_branch(op, calling), calling)
            case control.WhileOp():
                test = dict(self.block(op.test.block, calling))
                for step, count in self.block(op.body.block, calling).items():
                    test[step] = test.get(step, 0) + count
                return test
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                return self.block(callee.body.block, (*calling, callee.sym_name.data))
            case _:
                return {}

    def dearer_branch(self, op: control.IfOp, calling: tuple[str, ...]) -> Block:
        """The branch of an if that takes more cycles; the first if both take as many."""
        branches = (op.then.block, op.otherwise.block)
        return max(branches, key=lambda each: self.cost(self.block(each, calling)))

    def cost(self, times: Mapping[SuperstepOp, int]) -> int:
        """The cycles of these executions."""
        return sum(count * self.cycles[step] for step, count in times.items())


# What a superstep costs


def superstep_price(
    step: SuperstepOp,
    variables: Mapping[str, Variable],
    target: Target,
    free: Container[Operation] = (),
) -> SuperstepPrice:
    """The price of one execution of a superstep. Raises InputError for an unknown variable.

    Args:
        free: operations that cost nothing.
    """
    charge = no_charge(max(target.tiles, last_tile(step, variables)))
    for op in step.body.block.ops:
        if isinstance(op, CopyOp | VerticesOp | LoadOp | StoreOp):
            charge_operation(op, variables, target, charge, free)
    return charged_price(step, charge, target, free)


def charge_operation(
    op: CopyOp | VerticesOp | LoadOp | StoreOp,
    variables: Mapping[str, Variable],
    target: Target,
    charge: Charge,
    free: Container[Operation] = (),
) -> None:
    """Add what each tile does for a copy, a compute set, a load or a store.

    Args:
        free: operations that cost nothing.
    """
    if op in free:
        return
    if isinstance(op, CopyOp):
        charge_copy(op, variables, target, charge)
    elif isinstance(op, LoadOp | StoreOp):
        charge_remote(op, variables, target, charge)
    else:
        charge_vertices(op, variables, target, charge)


def charged_price(
    step: SuperstepOp, charge: Charge, target: Target, free: Container[Operation] = ()
) -> SuperstepPrice:
    """The price of one execution of a superstep.

    Args:
        charge: of all its operations.
        free: operations that cost nothing. A superstep of these alone costs no sync either.
    """
    busiest = busiest_of(charge, target)
    ops = [op for op in step.body.block.ops if not isinstance(op, SyncOp)]
    is_free = bool(ops) and all(op in free for op in ops)
    return SuperstepPrice(
        name=step.sym_name.data,
        origin=origin(step),
        line=line_of(step),
        times=1,
        sync_cycles=0 if is_free else cost.sync_cycles(target, zone_of_step(step)),
        exchange_cycles=busiest.exchange_cycles,
        compute_cycles=busiest.compute_cycles,
        exchange_bytes=int(charge.traffic.received.sum()),
        busiest_tile=busiest.tile,
        worst_compute_cycles=busiest.worst_compute_cycles,
    )


@dataclass(frozen=True)
class Busiest:
    """The tile whose exchange and compute together take longest; the first of them.

    Attributes:
        worst_compute_cycles: as that of a SuperstepPrice.
    """

    tile: int
    exchange_cycles: int
    compute_cycles: int
    worst_compute_cycles: int


def busiest_of(charge: Charge, target: Target) -> Busiest:
    """The tile that decides how long a charge takes."""
    exchange = charged_exchange(charge, target)
    total = exchange + charge.compute
    tile = int(np.argmax(total))
    own = int(exchange[tile])
    return Busiest(
        tile, own, int(charge.compute[tile]), int((total + charge.crowded).max(initial=0)) - own
    )


def charged_exchange(charge: Charge, target: Target) -> Integers:
    """The cycles in which each tile exchanges: (tiles,)."""
    return cost.exchange_cycles(charge.traffic, target) + cost.remote_cycles(charge.remote, target)


def zone_of_step(step: SuperstepOp) -> str:
    """The zone of the sync that a superstep begins with."""
    sync = step.body.block.first_op
    assert isinstance(sync, SyncOp)
    return sync.zone.data


def last_tile(step: SuperstepOp, variables: Mapping[str, Variable]) -> int:
    """The tile behind the last one that a superstep uses."""
    last = 0
    for op in step.body.block.ops:
        if isinstance(op, CopyOp | VerticesOp):
            used = operands_of(op, variables)
            last = max(last, *(v.placed.tiles.end for v in used))
        if isinstance(op, VerticesOp):
            last = max(last, op.plan.data.tiles.end)
    return last


def copy_overlaps(op: CopyOp, variables: Mapping[str, Variable]) -> list[Overlap]:
    """For each source of a copy, the overlap of its blocks with those that the copy fills."""
    *sources, destination = operands_of(op, variables)
    moves = op.spaces or (None,) * len(sources)
    return [
        overlap(source.placed, destination.placed, move)
        for source, move in zip(sources, moves, strict=True)
    ]


def goes_between(op: CopyOp, variables: Mapping[str, Variable], chip_tiles: int) -> bool:
    """Whether a copy moves elements from one chip to another.

    Args:
        chip_tiles: the tiles of a chip.
    """
    for shared in copy_overlaps(op, variables):
        flows = Carried(shared, 1).flows()
        if np.any(flows.source // chip_tiles != flows.destination // chip_tiles):
            return True
    return False


@dataclass(frozen=True, eq=False)
class Charge:
    """What each tile does in a superstep; each array is (tiles,), and operations add to it.

    Attributes:
        traffic: what tiles send each other.
        compute: cycles.
        crowded: further cycles if all indices of a lookup name rows of the tile.
        remote: bytes that the tile's chip moves from remote memory and to it.
    """

    traffic: Traffic
    compute: Integers
    crowded: Integers
    remote: Integers

    def add(self, other: Charge) -> None:
        """Add what other operations do in the same superstep."""
        self.traffic.add(other.traffic)
        self.compute[:] += other.compute
        self.crowded[:] += other.crowded
        self.remote[:] += other.remote


def no_charge(tiles: int) -> Charge:
    """The charge of tiles that do nothing yet."""
    return Charge(Traffic.none(tiles), *(np.zeros(tiles, np.int64) for _ in range(3)))


def updates_in_place(op: VerticesOp, variables: Mapping[str, Variable]) -> bool:
    """Whether updates are written over the operand that they begin with: in its variable, or in one
    of the same address."""
    structure = op.structure()
    if not structure.body.updates:
        return False
    held, result = op.sources[structure.own_operands - 1], op.destination
    if held == result:
        return True
    places = [variables[name] for name in (held, result)]
    starts = [each.start for each in places if isinstance(each, exchange.VariableOp)]
    return len(set(starts)) == 1 and places[0].dtype == places[1].dtype


def charge_vertices(
    op: VerticesOp, variables: Mapping[str, Variable], target: Target, charge: Charge
) -> None:
    """Add the cycles that each tile computes for a compute set.

    Raises InputError if the target has no codelet for its plan's method.
    """
    dtypes = [v.dtype for v in operands_of(op, variables)]
    plan = op.plan.data
    work = Workload.of(op.structure(), dtypes, target)
    work = replace(work, in_place=updates_in_place(op, variables))
    try:
        cycles = cells_cycles(work, plan)
    except ValueError as error:
        # A plan may come from a text, and its method from another target.
        raise InputError(
            f"{op.name} at {place(op)}: {error}; need another method in its plan"
        ) from None
    order = [*plan.order, *(d for d in range(cycles.ndim) if d not in plan.order)]
    own = plan.tiles.rows
    charge.compute[own] += cycles.transpose(order).ravel()
    if work.structure.space.relations:
        crowded = cells_cycles(replace(work, lookups="together"), plan) - cycles
        charge.crowded[own] += crowded.transpose(order).ravel()


def charge_remote(
    op: LoadOp | StoreOp, variables: Mapping[str, Variable], target: Target, charge: Charge
) -> None:
    """Add the bytes that each chip moves from remote memory or to it.

    A chip moves the elements that its tiles hold. Those that several of its tiles hold cross its
    link once. Raises InputError for an unknown variable.
    """
    name = op.destination if isinstance(op, Arrival) else op.source
    if name not in variables:
        raise InputError(f"{op.name} at {place(op)}: no variable @{name}")
    variable = variables[name]
    cells = np.zeros(len(charge.remote), np.int64)
    cells[variable.placed.tiles.rows] = block_sizes(variable.placed) * variable.dtype.itemsize
    chip = np.arange(len(cells)) // target.tiles_per_chip
    own = np.bincount(chip, cells).astype(np.int64)
    charge.remote[:] += np.minimum(own, variable.tensor_bytes)[chip]


def charge_copy(
    op: CopyOp, variables: Mapping[str, Variable], target: Target, charge: Charge
) -> None:
    """Add what each tile receives and sends, and its cycles for copies and padding."""
    destination = variables[op.destination]
    layout, itemsize = destination.placed, destination.dtype.itemsize
    here = layout.tiles.rows
    padding, traffic = block_sizes(layout), charge.traffic
    for shared in copy_overlaps(op, variables):
        source, moved = shared.source, fragments(shared)
        there = source.tiles.rows
        own = shared.received * itemsize
        traffic.received[here] += own
        traffic.arriving[here] += bus_bytes(layout, own, target)
        traffic.sent[there] += sent_elements(shared) * itemsize
        traffic.control[here] += cost.control_cycles(0, moved.received, moved.places, target)
        traffic.control[there] += cost.control_cycles(moved.sent, 0, 0, target)
        traffic.carried.append(Carried(shared, itemsize))
        charge.compute[here] += cost.copy_cycles(shared.local * itemsize, target)
        padding = padding - shared.wanted
    charge.compute[here] += cost.fill_cycles(np.maximum(padding, 0) * itemsize, target)


def bus_bytes(layout: Layout, received: Integers, target: Target) -> Integers:
    """The bytes that each cell's own bus brings: (cells,).

    Each bus of a pair of tiles reaches both: if both tiles want the same block, each bus brings a
    share of it. Pairs are tiles 2i and 2i + 1.

    Args:
        received: bytes that each cell receives, (cells,).
    """
    if target.exchange.pair_factor == 1:
        return received
    alike = _shares_bus_alike(layout)
    if alike is False:
        return received
    shared = np.ceil(received / target.exchange.pair_factor).astype(np.int64)
    return shared if alike else np.where(_shares_bus(layout), shared, received)


def first_shares_bus(layout: Layout) -> bool:
    """Whether the other tile of the first cell's pair holds the same block."""
    if layout.first_tile % 2 or not layout.split_dims:
        return False
    return layout.split_dims[-1] in layout.replica_dims


def _shares_bus_alike(layout: Layout) -> bool | None:
    """Whether the other tile of a cell's pair holds the same block, if this is quick to tell and
    the same for all cells; else None.

    The last cut dimension tells, as neighbouring cells are different parts of it.
    """
    if not layout.split_dims:
        return False
    last = layout.split_dims[-1]
    if last not in layout.replica_dims:
        return False
    numbers = layout.first_tile, layout.apart, layout.parts[last] // layout.grid[last].chips
    return None if any(n % 2 for n in numbers) else True


@lru_cache(maxsize=4096)
def _shares_bus(layout: Layout) -> NDArray[np.bool_]:
    """Whether the other tile of each cell's pair holds the same block: (cells,)."""
    own = tuple(d for d in layout.split_dims if d not in layout.replica_dims)
    block = parts_of_cells(layout.parts, own)
    partner = layout.tiles.cells_on(layout.tiles.of(np.arange(layout.cells)) ^ 1)
    return (partner >= 0) & (block[np.maximum(partner, 0)] == block)


@lru_cache(maxsize=4096)
def block_sizes(layout: Layout) -> Integers:
    """Elements of each cell's block, including padding: (cells,)."""
    sizes = np.ones(layout.parts, np.int64)
    for axis in range(len(layout.access.axes)):
        sizes = sizes * layout.counts(axis)
    return sizes.ravel()
