"""The price of a program: the cycles of every superstep, and those of a run."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ...dialects import exchange
from ...dialects.steps import Arrival, Copy, Departure, Load, Store, Superstep, Sync, Vertices
from ...dialects.variable import Variable
from ...ir.geometry.fragments import fragments
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import Overlap, overlap, sent_elements
from ...ir.geometry.tile_pairs import partners_alike
from ...ir.provenance import line_of, origin, place
from ...ir.support.arrays import Integers
from ...ir.support.errors import InputError
from ...ir.support.kept_tables import kept_tables
from ...ir.upstream import ModuleOp
from ..clocks.advance import Advance
from ..clocks.executions import Executions
from ..clocks.program import ProgramClocks
from ..clocks.syncs import groups_of, meeting_cycles
from ..clocks.zones import Zones, zones_of
from ..fabrics.traffic import Carried, Traffic
from ..functions import functions_of
from ..target import Target
from ..timetable.moves import moves_of_copy
from . import cost
from .codelets import cells_cycles
from .words import words_only
from .workload import Workload


@dataclass(frozen=True)
class PhaseCycles:
    """Cycles of sync, of exchange and of compute."""

    sync: int
    exchange: int
    compute: int

    @property
    def total(self) -> int:
        """The sum."""
        return self.sync + self.exchange + self.compute


@dataclass(frozen=True)
class SuperstepPrice:
    """The cycles of a superstep: of one execution, and of a run's critical path.

    A tile computes as soon as its own exchange has ended, and waits for the others at the next
    sync. So the tile whose exchange and compute together take longest decides. On several chips,
    one tile of each chip decides when this chip goes on. The fields then say what happens on the
    chip where the superstep takes longest.

    The critical path is the longest chain of supersteps of a run, each of which waits for the one
    before it. It may go from chip to chip where chips meet. Its cycles are those of the run. On one
    chip, all executions are on it.

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
        chips: the number of chips that do anything, or wait for others.
        critical: the cycles that a run spends in it on the critical path, over all executions.
        worst_critical_cycles: the same, with indices as for worst_compute_cycles.
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
    chips: int
    critical: PhaseCycles
    worst_critical_cycles: int

    @property
    def cycles(self) -> int:
        """The cycles of one execution."""
        return self.sync_cycles + self.exchange_cycles + self.compute_cycles


@dataclass(frozen=True)
class Totals:
    """The sums over a run of a program: supersteps, cycles, and exchanged bytes.

    Cycles are those of the critical path, so that those of a whole program are those of its run.

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
    """The sums over all executions of supersteps."""
    return Totals(
        supersteps=sum(p.times for p in prices),
        cycles=sum(p.critical.total for p in prices),
        sync_cycles=sum(p.critical.sync for p in prices),
        exchange_cycles=sum(p.critical.exchange for p in prices),
        compute_cycles=sum(p.critical.compute for p in prices),
        exchange_bytes=sum(p.times * p.exchange_bytes for p in prices),
        worst_cycles=sum(p.worst_critical_cycles for p in prices),
    )


@dataclass(frozen=True)
class ZonePrice:
    """What a clock zone does in a run: a chip, or the I/O tiles of one.

    Attributes:
        chip: its number.
        busy: its cycles of sync, exchange and compute.
        end: its clock at the end of the run.
    """

    chip: int
    busy: PhaseCycles
    end: int

    @property
    def waiting_cycles(self) -> int:
        """The cycles in which it waits for other zones."""
        return self.end - self.busy.total


@dataclass(frozen=True)
class ProgramPrice:
    """The price of a program.

    Attributes:
        steps: in the order of the text.
        zones: what each clock zone does: each chip, and then the I/O tiles of each chip.
    """

    steps: tuple[StepPrice, ...]
    zones: tuple[ZonePrice, ...]

    @property
    def chips(self) -> tuple[ZonePrice, ...]:
        """What each chip does beside its I/O tiles, as many as there are."""
        return tuple(each for k, each in enumerate(self.zones) if each.chip == k)

    @property
    def supersteps(self) -> tuple[SuperstepPrice, ...]:
        """The prices of the supersteps, in the order of the text."""
        return tuple(each.price for each in self.steps)

    @property
    def remote_cycles(self) -> tuple[int, int]:
        """The cycles of loads from remote memory and stores to it in a run, and those of them that
        are hidden: they are not on the critical path."""
        remote = [each.price for each in self.steps if _is_remote(each.step)]
        cycles = sum(each.times * each.cycles for each in remote)
        return cycles, cycles - sum(each.critical.total for each in remote)

    @property
    def cycles(self) -> int:
        """The cycles of a run: until the last chip is done."""
        return totals(self.supersteps).cycles


def _is_remote(step: Superstep) -> bool:
    """Whether a superstep loads from remote memory or stores to it."""
    return any(isinstance(op, Load | Store) for op in step.body.block.ops)


@dataclass(frozen=True, eq=False)
class StepPrice:
    """A superstep with its price, and with what it does to the clock of each zone.

    Attributes:
        taken: how often the critical path goes through each zone in it, (zones,).
    """

    step: Superstep
    price: SuperstepPrice
    advance: Advance
    taken: Integers


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
    return program_price(module, target).supersteps


def program_price(module: ModuleOp, target: Target) -> ProgramPrice:
    """The price of an exchange module. Raises InputError as `price` does."""
    return run_price(module, tuple(step_prices(module, target)), target)


def step_prices(module: ModuleOp, target: Target) -> Iterable[StepPrice]:
    """One execution of each superstep, in the order of the text."""
    variables, free = variables_of(module), words_only(module)
    for op in module.walk():
        if isinstance(op, Superstep):
            charge = charge_superstep(op, variables, target, free)
            yield charged_price(op, charge, target, free)


def run_price(module: ModuleOp, found: Sequence[StepPrice], target: Target) -> ProgramPrice:
    """The price of a program whose supersteps have theirs.

    Args:
        found: all supersteps, in the order of the text, each as if it ran once.
    """
    advances = {each.step: each.advance for each in found}
    zones = zones_of(target, target.tiles)
    clocks = ProgramClocks(functions_of(module), advances, zones.count)
    end, taken = clocks.run
    times = Executions(clocks).entry()
    worst = {s: replace(a, compute_cycles=a.worst_compute_cycles) for s, a in advances.items()}
    crowded = any(np.any(a.worst_compute_cycles != a.compute_cycles) for a in advances.values())
    late = (
        ProgramClocks(clocks.functions, worst, zones.count, clocks.branches).run[1]
        if crowded
        else taken
    )
    nowhere = np.zeros(zones.count, np.int64)

    def in_run(each: StepPrice) -> StepPrice:
        step, own = each.step, taken.get(each.step, nowhere)
        price = replace(
            each.price,
            times=times.get(step, 0),
            critical=phases_of(each.advance, own),
            worst_critical_cycles=phases_of(worst[step], late.get(step, nowhere)).total,
        )
        return replace(each, price=price, taken=own)

    return ProgramPrice(
        tuple(map(in_run, found)),
        tuple(
            ZonePrice(int(chip), busy, int(last))
            for chip, busy, last in zip(
                zones.chip, _busy(found, times, zones.count), end, strict=True
            )
        ),
    )


def _busy(
    found: Sequence[StepPrice], times: Mapping[Superstep, int], zones: int
) -> list[PhaseCycles]:
    """The cycles in which each zone is busy in a run."""
    if not found:
        return [PhaseCycles(0, 0, 0)] * zones
    counts = np.array([times.get(each.step, 0) for each in found])
    phases = ("sync_cycles", "exchange_cycles", "compute_cycles")
    sums = (
        _repeated(counts, np.array([getattr(each.advance, name) for each in found])).tolist()
        for name in phases
    )
    return [PhaseCycles(*each) for each in zip(*sums, strict=True)]


MANY = 1 << 24
"""Times cycles, and the sum over supersteps, fit in 64 bits as long as none runs more often."""


def _repeated(times: Integers, cycles: Integers) -> NDArray[Any]:
    """The sums of times and cycles: (...,), exact also where they do not fit in 64 bits.

    Args:
        times: (n,).
        cycles: of one time, (n, ...).
    """
    exact = object if times.max(initial=0) > MANY else np.int64
    return np.asarray(np.dot(times.astype(exact), cycles.astype(exact)))


def phases_of(advance: Advance, times: Integers) -> PhaseCycles:
    """The cycles of a superstep in some zones.

    Args:
        times: how often it runs in each of them, (zones,).
    """
    return PhaseCycles(
        *(
            int(_repeated(times, each).item())
            for each in (advance.sync_cycles, advance.exchange_cycles, advance.compute_cycles)
        )
    )


def variables_of(module: ModuleOp) -> dict[str, Variable]:
    """The variables of a program by name."""
    return {op.symbol: op for op in module.body.block.ops if isinstance(op, Variable)}


def operands_of(op: Vertices | Copy, variables: Mapping[str, Variable]) -> list[Variable]:
    """The variables that an operation reads and, last, those that it writes.

    Raises InputError for a variable that does not exist.
    """
    names = [*op.sources, *op.destinations]
    for name in names:
        if name not in variables:
            raise InputError(f"{op.name} at {place(op)}: no variable @{name}")
    return [variables[name] for name in names]


def moved_variable(op: Arrival | Departure, variables: Mapping[str, Variable]) -> Variable:
    """The variable that something outside of the tiles fills or reads.

    Raises InputError if it does not exist.
    """
    name = op.destination if isinstance(op, Arrival) else op.source
    if name not in variables:
        raise InputError(f"{op.name} at {place(op)}: no variable @{name}")
    return variables[name]


# What a superstep costs


def charge_superstep(
    step: Superstep,
    variables: Mapping[str, Variable],
    target: Target,
    free: Container[Operation] = (),
) -> Charge:
    """What each tile does in one execution of a superstep. Raises InputError for an unknown
    variable.

    Args:
        free: operations that cost nothing.
    """
    charge = no_charge(max(target.tiles, last_tile(step, variables)))
    for op in step.body.block.ops:
        if isinstance(op, Copy | Vertices | Load | Store):
            charge_operation(op, variables, target, charge, free)
    return charge


def charge_operation(
    op: Copy | Vertices | Load | Store,
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
    if isinstance(op, Copy):
        charge_copy(op, variables, target, charge)
    elif isinstance(op, Load | Store):
        charge_remote(op, variables, target, charge)
    else:
        charge_vertices(op, variables, target, charge)


def charged_price(
    step: Superstep,
    charge: Charge,
    target: Target,
    free: Container[Operation] = (),
) -> StepPrice:
    """The price of one execution of a superstep, as if it were the program.

    Args:
        charge: of all its operations.
        free: operations that cost nothing. A superstep of these alone costs no sync either.
    """
    ops = [op for op in step.body.block.ops if not isinstance(op, Sync)]
    is_free = bool(ops) and all(op in free for op in ops)
    zones = zones_of(target, len(charge.compute))
    advance = _advance(step, charge, target, zones)
    if is_free:
        none = np.zeros(zones.count, np.int64)
        advance = replace(advance, sync_cycles=none, group=none - 1)
    slowest = int(np.argmax(advance.cycles))
    own = (np.arange(zones.count) == slowest).astype(np.int64)
    return StepPrice(
        step,
        SuperstepPrice(
            name=step.sym_name.data,
            origin=origin(step),
            line=line_of(step),
            times=1,
            sync_cycles=int(advance.sync_cycles[slowest]),
            exchange_cycles=int(advance.exchange_cycles[slowest]),
            compute_cycles=int(advance.compute_cycles[slowest]),
            exchange_bytes=int(charge.traffic.received.sum()),
            busiest_tile=int(advance.tile[slowest]),
            worst_compute_cycles=int(advance.worst_compute_cycles[slowest]),
            chips=len(np.unique(zones.chip[advance.takes_part])),
            critical=phases_of(advance, own),
            worst_critical_cycles=int(advance.worst_cycles.max()),
        ),
        advance,
        own,
    )


def _advance(step: Superstep, charge: Charge, target: Target, zones: Zones) -> Advance:
    """What one execution of a superstep does to the clocks.

    A zone takes part if it does anything, or meets others. If none does, all take part.
    """
    exchange = charged_exchange(charge, target)
    total = exchange + charge.compute
    tile = zones.first_with_most(total)
    sync = sync_of(step)
    works = zones.most(total + charge.traffic.received + charge.traffic.sent) > 0
    group = zones.meeting(groups_of(sync, target.chips), works)
    takes_part = works | (group >= 0)
    if not takes_part.any():
        takes_part[:] = True
    return Advance(
        takes_part=takes_part,
        group=group,
        tile=tile,
        sync_cycles=np.where(takes_part, meeting_cycles(sync, target)[zones.chip], 0),
        exchange_cycles=exchange[tile],
        compute_cycles=charge.compute[tile],
        worst_compute_cycles=zones.most(total + charge.crowded) - exchange[tile],
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


def sync_of(step: Superstep) -> Sync:
    """The sync that a superstep begins with."""
    sync = step.body.block.first_op
    assert isinstance(sync, Sync)
    return sync


def last_tile(step: Superstep, variables: Mapping[str, Variable]) -> int:
    """The tile behind the last one that a superstep uses."""
    last = 0
    for op in step.body.block.ops:
        if isinstance(op, Copy | Vertices):
            used = operands_of(op, variables)
            last = max(last, *(v.placed.tiles.end for v in used))
        if isinstance(op, Vertices):
            last = max(last, op.plan.data.tiles.end)
    return last


def copy_overlaps(op: Copy, variables: Mapping[str, Variable]) -> list[Overlap]:
    """For each source of a copy, the overlap of its blocks with those that the copy fills."""
    *sources, destination = operands_of(op, variables)
    filled, moves = op.routes(destination.placed)
    return [
        overlap(source.placed, filled, move)
        for source, move in zip(sources, moves or (None,) * len(sources), strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Charge:
    """What each tile does in a superstep; each array is (tiles,), and operations add to it.

    Attributes:
        traffic: what tiles send each other.
        compute: cycles.
        crowded: further cycles if all indices of a lookup name rows of the tile.
        remote: bytes that the tile's zone moves from remote memory and to it.
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


def updates_in_place(op: Vertices, variables: Mapping[str, Variable]) -> bool:
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
    op: Vertices, variables: Mapping[str, Variable], target: Target, charge: Charge
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
    op: Load | Store, variables: Mapping[str, Variable], target: Target, charge: Charge
) -> None:
    """Add the bytes that each zone moves from remote memory or to it.

    A chip moves the elements that its tiles hold. Those that several of its tiles hold cross its
    link once. A chip has one link, so its I/O tiles wait for what goes to other tiles directly, but
    not the other way round. Raises InputError for an unknown variable.
    """
    variable = moved_variable(op, variables)
    cells = np.zeros(len(charge.remote), np.int64)
    cells[variable.placed.tiles.rows] = block_sizes(variable.placed) * variable.dtype.itemsize
    zones = zones_of(target, len(cells))
    own = np.bincount(zones.of_tile, cells, zones.count).astype(np.int64)
    moved = np.minimum(own, variable.tensor_bytes)
    moved[zones.chips :] += moved[zones.chip[zones.chips :]]
    charge.remote[:] += moved[zones.of_tile]


def charge_copy(
    op: Copy, variables: Mapping[str, Variable], target: Target, charge: Charge
) -> None:
    """Add what each tile receives and sends, and its cycles for copies and padding."""
    destination = variables[op.destination]
    layout, itemsize = destination.placed, destination.dtype.itemsize
    here = layout.tiles.rows
    padding, traffic = block_sizes(layout), charge.traffic
    if target.exchange.timetables:
        traffic.moves.extend(moves_of_copy(op, variables))
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
    return shared if alike else np.where(partners_alike(layout), shared, received)


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


@kept_tables(len, entries=4096)
def block_sizes(layout: Layout) -> Integers:
    """Elements of each cell's block, including padding: (cells,)."""
    sizes = np.ones(layout.parts, np.int64)
    for axis in range(len(layout.access.axes)):
        sizes = sizes * layout.counts(axis)
    found = sizes.ravel()
    found.flags.writeable = False
    return found
