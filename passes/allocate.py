"""At which address every variable lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ..backends.memory import NARROWER
from ..backends.target import Target, with_more_memory
from ..dialects import control, tile
from ..dialects.levels import TILE
from ..dialects.program import ALIGNMENT, Variable
from ..ir.distinct import distinct
from ..ir.errors import DoesNotFit, InputError
from ..ir.provenance import origin_names, place
from .convert_nn_to_partition import target_of
from .schedule_supersteps import SUPERSTEP

ADDRESS = "address"
"""The attribute of a tile.variable that holds its address in bytes."""

FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Allocate(ModulePass):
    """Give variables addresses by liveness. tile -> tile.

    Two variables share bytes only if they have no tile in common or are never live in the same
    phase. A superstep has two phases, exchange and compute, so what is sent may be overwritten
    by what is then computed. A result lies on an operand that is not needed any more, where every
    point reads of it just the element that it writes. Addresses that variables have already are
    kept; then what always lives is placed, then the large before the small, each on such an
    operand or result of its own, or else at the lowest address that is free.
    unbounded: though it be beyond the end of the tile, for reports on what does not fit.
    Raises DoesNotFit naming the fullest tile and what lies on it.
    """

    name = "allocate"
    takes = TILE
    unbounded: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        variables = [v for v in op.body.block.ops if isinstance(v, tile.VariableOp)]
        lives, target = lifetimes(op, variables), target_of(op)
        given = [_given(v) for v in variables]
        addresses = pack(variables, lives, given, target.usable_bytes_per_tile)
        if not self.unbounded:
            check_fits(variables, lives.phases, addresses, target)
        for variable, address in zip(variables, addresses, strict=True):
            variable.attributes[ADDRESS] = IntegerAttr(int(address), i64)


# Lifetimes


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """When variables live, by their numbers.

    phases: first and last phase of each, (variables, 2). inherits: for each, those of which one
    ends in the phase in which the other begins, so that they may lie on the same bytes all the
    same: a result, and an operand that is read in place and never again.
    """

    phases: NDArray[np.int64]
    inherits: tuple[frozenset[int], ...]


@dataclass(frozen=True)
class _Access:
    """A variable touched in a phase. inside: the control operations round it, outermost first."""

    phase: int
    writes: bool
    inside: tuple[Operation, ...]


@dataclass
class _Clock:
    """Walks a program in order and notes when each variable is touched."""

    functions: dict[str, func.FuncOp]
    now: int = 0
    accesses: dict[str, list[_Access]] = field(default_factory=dict[str, list[_Access]])
    loops: list[tuple[int, int, tuple[Operation, ...]]] = field(
        default_factory=list[tuple[int, int, tuple[Operation, ...]]]
    )
    overwrites: list[tuple[int, tile.VerticesOp]] = field(
        default_factory=list[tuple[int, tile.VerticesOp]]
    )
    calling: list[str] = field(default_factory=list[str])
    inside: tuple[Operation, ...] = ()

    def touch(self, reads: Sequence[str], writes: Sequence[str], phase: int = 0) -> None:
        for names, writing in ((reads, False), (writes, True)):
            for name in names:
                access = _Access(self.now + phase, writing, self.inside)
                self.accesses.setdefault(name, []).append(access)

    def walk(self, block: Block) -> None:
        step: int | None = None
        for op in block.ops:
            if isinstance(op, tile.SuperstepOp):
                # Grouped already: the program is continued.
                self.now += 2
                step = None
                for inner in op.body.block.ops:
                    self.touched(inner)
                continue
            number = op.attributes.get(SUPERSTEP)
            if not isinstance(number, IntegerAttr):
                self.now += 2
                step = None
                self.control(op)
                continue
            if number.value.data != step:
                self.now += 2
                step = number.value.data
            self.touched(op)

    def touched(self, op: Operation) -> None:
        """Note what an operation of a superstep touches: vertices come after copies."""
        match op:
            case tile.CopyOp():
                self.touch(op.sources, [op.destination])
            case tile.VerticesOp():
                self.touch(op.sources, [op.destination], phase=1)
                self.overwrites.append((self.now + 1, op))
            case tile.ComputeSetOp():
                for vertices in op.body.block.ops:
                    self.touched(vertices)
            case tile.InputOp():
                self.touch([], [op.writes.string_value()])
            case tile.OutputOp():
                self.touch([op.reads.string_value()], [])
            case _:
                pass

    def control(self, op: Operation) -> None:
        if isinstance(op, func.CallOp):
            callee = op.callee.string_value()
            if callee not in self.functions:
                raise InputError(f"{op.name} at {place(op)}: no function @{callee}")
            if callee in self.calling:
                raise InputError(f"{op.name} at {place(op)}: @{callee} calls itself")
            self.calling.append(callee)
            self.walk(self.functions[callee].body.block)
            self.calling.pop()
        elif isinstance(op, tile.ReadOp):
            self.touch([op.variable.string_value()], [])
        elif isinstance(op, tile.CopyOp | tile.ComputeSetOp | tile.InputOp | tile.OutputOp):
            raise InputError(f"{op.name} at {place(op)}: no superstep; run schedule-supersteps")
        start, outer = self.now, self.inside
        self.inside = (*outer, op)
        for region in op.regions:
            for block in region.blocks:
                self.walk(block)
        if isinstance(op, control.RepeatOp | control.WhileOp):
            self.loops.append((start, self.now + 1, self.inside))
        self.inside = outer


def lifetimes(module: ModuleOp, variables: Sequence[Variable]) -> Lifetimes:
    """When each variable lives.

    State and constants live always. What a loop takes over from outside, or hands on, or may
    carry from one turn to the next, lives through the loop. A called function's variables live
    from its first call to its last.
    Raises InputError for a module without @main, a function that is not there or calls itself, and
    operations that are in no superstep.
    """
    functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, func.FuncOp)}
    if "main" not in functions:
        raise InputError("the module has no function @main")
    clock = _Clock(functions)
    clock.walk(functions["main"].body.block)
    phases = np.array(
        [
            (0, FOREVER)
            if variable.is_resident
            else _life(clock.accesses.get(variable.symbol, []), clock.loops)
            for variable in variables
        ],
        np.int64,
    ).reshape(-1, 2)
    return Lifetimes(phases, _inherits(clock, variables, phases))


def _inherits(
    clock: _Clock, variables: Sequence[Variable], phases: NDArray[np.int64]
) -> tuple[frozenset[int], ...]:
    """As of Lifetimes."""
    number = {v.symbol: i for i, v in enumerate(variables)}
    found = [set[int]() for _ in variables]
    for phase, op in clock.overwrites:
        result = number[op.destination]
        if phases[result, 0] != phase or _times(clock, op.destination, phase) > 1:
            continue
        for name in op.overwritable():
            operand = number[name]
            if (
                phases[operand, 1] == phase
                and _times(clock, name, phase) == op.sources.count(name)
                and variables[operand].dtype.itemsize == variables[result].dtype.itemsize
            ):
                found[result].add(operand)
                found[operand].add(result)
    return tuple(map(frozenset, found))


def _times(clock: _Clock, name: str, phase: int) -> int:
    """How often a variable is touched in a phase."""
    return sum(access.phase == phase for access in clock.accesses[name])


def _life(
    accesses: Sequence[_Access], loops: Sequence[tuple[int, int, tuple[Operation, ...]]]
) -> tuple[int, int]:
    """First and last phase of a variable's life; loops are listed inner before outer."""
    if not accesses:
        return 0, 0
    first, last = accesses[0].phase, accesses[-1].phase
    for start, end, inside in loops:
        if last < start or first > end:
            continue
        entering = next((a for a in accesses if start <= a.phase <= end), None)
        local = start <= first and last <= end
        # A turn that surely begins by writing all of it carries nothing over from the last one.
        if local and entering is not None and entering.writes and entering.inside == inside:
            continue
        first, last = min(first, start), max(last, end)
    return first, last


# Addresses


def _given(variable: tile.VariableOp) -> int | None:
    """The address that a variable has already."""
    address = variable.attributes.get(ADDRESS)
    if not isinstance(address, IntegerAttr):
        return None
    if address.value.data < 0 or address.value.data % ALIGNMENT:
        raise InputError(
            f"@{variable.symbol} at {place(variable)}: address {address.value.data}; need a "
            f"multiple of {ALIGNMENT} from 0"
        )
    return address.value.data


class Boxes:
    """Variables as boxes of tiles and time, to be laid at addresses.

    size: bytes on each tile of each variable.
    """

    def __init__(self, variables: Sequence[Variable], lives: Lifetimes) -> None:
        self._lives = lives.phases
        self._inherits = [np.array(sorted(each), np.int64) for each in lives.inherits]
        self.size = np.array([v.bytes_per_tile for v in variables], np.int64)
        self._first = np.array([v.placed.first_tile for v in variables], np.int64)
        self._last = self._first + np.array([v.placed.cells for v in variables], np.int64)

    def clash(self, index: int, others: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of some others, those that are on a tile of a variable's while it is live."""
        first, last = self._lives[index]
        return others[
            (self._first[others] < self._last[index])
            & (self._first[index] < self._last[others])
            & (self._lives[others, 0] <= last)
            & (first <= self._lives[others, 1])
            & (self.size[others] > 0)
        ]

    def hit(
        self, index: int, others: NDArray[np.int64], address: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Of some others, those on which a variable lies at its address, and must not."""
        if self.size[index] == 0:
            return others[:0]
        clash = self.clash(index, others)
        begin, ends = address[clash], address[clash] + self.size[clash]
        hit = clash[(begin < address[index] + self.size[index]) & (address[index] < ends)]
        on_it = hit[address[hit] == address[index]]
        return hit[~np.isin(hit, np.intersect1d(on_it, self._inherits[index]))]

    def place(self, index: int, others: NDArray[np.int64], address: NDArray[np.int64]) -> int:
        """The address of a variable, in bytes: that of one of some others from which it inherits,
        or which inherits from it, else the lowest that is free of them."""
        clash = self.clash(index, others)
        if not len(clash) or self.size[index] == 0:
            return 0
        for near in np.intersect1d(clash, self._inherits[index]):
            tried = address.copy()
            tried[index] = address[near]
            if not len(self.hit(index, clash, tried)):
                return int(address[near])
        clash = clash[np.argsort(address[clash], kind="stable")]
        ends = np.maximum.accumulate(address[clash] + self.size[clash])
        starts = np.concatenate(((0,), ends))
        room = np.concatenate((address[clash], (FOREVER,))) - starts
        return int(starts[np.argmax(room >= self.size[index])])


ORDERS: tuple[Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]], ...] = (
    lambda size, spans: -size,
    lambda size, spans: -size * spans,
    lambda size, spans: -spans,
)
"""In which order variables are placed, by their bytes on a tile and the phases that they live."""


def pack(
    variables: Sequence[Variable],
    lives: Lifetimes,
    given: Sequence[int | None] | None = None,
    room: int = 0,
) -> NDArray[np.int64]:
    """An address in bytes for each variable, (variables,): first fit, the largest first.

    given: addresses decided already, None for those to be found. room: bytes of a tile; where they
    are not enough, other orders are tried, and the one that takes least is taken.
    Raises InputError if two given addresses put variables on each other.
    """
    boxes = Boxes(variables, lives)
    fixed = np.array([g is not None for g in given or [None] * len(variables)], bool)
    resident = np.array([v.is_resident for v in variables], bool)
    start = np.array([g or 0 for g in given or [0] * len(variables)], np.int64)
    _check_given(variables, boxes, np.flatnonzero(fixed), start)
    number = np.arange(len(variables))
    # What always lives is placed first anyway.
    spans = np.minimum(np.diff(lives.phases)[:, 0], 1 << 31)
    best, least = start, FOREVER
    for key in ORDERS if room else ORDERS[:1]:
        address = start.copy()
        order = np.lexsort((number, key(boxes.size, spans), ~resident, ~fixed))
        for count, i in enumerate(map(int, order)):
            if not fixed[i]:
                address[i] = boxes.place(i, order[:count], address)
        end = int((address + boxes.size).max(initial=0))
        if end < least:
            best, least = address, end
        if least <= room:
            break
    return best


def _check_given(
    variables: Sequence[Variable],
    boxes: Boxes,
    fixed: NDArray[np.int64],
    address: NDArray[np.int64],
) -> None:
    """Raise InputError if two given addresses put variables on each other. fixed: those that have
    one."""
    for count, i in enumerate(map(int, fixed)):
        over = boxes.hit(i, fixed[:count], address)
        if len(over):
            own = variables[i]
            raise InputError(
                f"@{own.symbol} at {place(own)}: address {address[i]} lies "
                f"on @{variables[over[0]].symbol}, which is live at the same time"
            )


def check_fits(
    variables: Sequence[Variable],
    lives: NDArray[np.int64],
    address: NDArray[np.int64],
    target: Target,
) -> None:
    """Raise DoesNotFit if a tile needs more than the target has, or there are too few tiles."""
    for v in variables:
        if v.placed.first_tile + v.placed.cells > target.tiles:
            raise DoesNotFit(
                f"@{v.symbol}",
                v.placed.first_tile + v.placed.cells,
                target.tiles,
                units="tiles",
                remedy="plan again for this target",
            )
    if not variables:
        return
    ends = address + np.array([v.bytes_per_tile for v in variables], np.int64)
    worst = int(np.argmax(ends))
    available = target.usable_bytes_per_tile
    if ends[worst] <= available:
        return
    tile_index = variables[worst].placed.first_tile
    here = np.array(
        [
            v.placed.first_tile <= tile_index < v.placed.first_tile + v.placed.cells
            for v in variables
        ]
    )
    when = _busiest(variables, lives, here)
    live = here & (lives[:, 0] <= when) & (when <= lives[:, 1])
    layers: dict[str, int] = {}
    for i in np.flatnonzero(live).tolist():
        v = variables[i]
        layer = "+".join(n.split("/")[0] for n in origin_names(v)) or v.symbol
        layers[layer] = layers.get(layer, 0) + v.bytes_per_tile
    largest = sorted(layers.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{layer} {size} B" for layer, size in largest[:6])
    rest = sum(size for _, size in largest[6:])
    names = sorted(np.flatnonzero(live).tolist(), key=lambda i: -variables[i].bytes_per_tile)[:3]
    examples = ", ".join(f"@{variables[i].symbol} ({variables[i].bytes_per_tile} B)" for i in names)
    over = int(ends[worst]) - available
    gaps = int(ends[worst]) - sum(layers.values())
    others = f", others {rest} B" if rest else ""
    roomier = with_more_memory(target)
    other = f"a target with more memory a tile (--target {roomier}), " if roomier else ""
    raise DoesNotFit(
        f"the program ({shown}{others}{f', gaps {gaps} B' if gaps else ''}; largest variables "
        f"{examples}), {over} bytes over,",
        int(ends[worst]),
        available,
        tile=tile_index,
        remedy=f"use {NARROWER}, a smaller batch, {other}or more tiles",
    )


def _busiest(
    variables: Sequence[Variable], lives: NDArray[np.int64], here: NDArray[np.bool_]
) -> int:
    """The phase in which the variables of a tile take most bytes."""
    size = np.array([v.bytes_per_tile for v in variables], np.int64) * here
    times = distinct(lives[here, 0])
    load = [int(size[(lives[:, 0] <= t) & (t <= lives[:, 1])].sum()) for t in times]
    return int(times[int(np.argmax(load))])
