"""What lies in the memory of every tile, how long, and why it does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ..dialects import control
from ..dialects.exchange import ReadOp, SuperstepOp, VariableOp
from ..dialects.program import Copy, HostInput, HostOutput, Vertices
from ..ir.errors import DoesNotFit
from ..ir.provenance import origin
from ..ir.upstream import ModuleOp
from .price import ENTRY, callee_of, functions_of
from .target import Target, with_more_memory

Integers = NDArray[np.int64]

NARROWER = "float16 (-p narrow-floats,nn,partition,tile,exchange)"
"""Advice that halves float32."""

SHOWN = 6
"""Layers and variables that a message names."""


@dataclass(frozen=True)
class TileVariable:
    """What one variable takes on a tile. resident: live before, in and after every run. live: in
    the superstep in which most of the tile's bytes are. waits: live then, not always, and nothing
    reads or writes it there."""

    name: str
    origin: str | None
    dtype: str
    address: int
    bytes: int
    resident: bool
    live: bool
    waits: bool


@dataclass(frozen=True)
class StepMemory:
    """The most bytes that are live on any tile in one superstep, and the tile."""

    name: str
    tile: int
    bytes: int


@dataclass(frozen=True, eq=False)
class MemoryReport:
    """The memory of a program's tiles.

    max_tile_bytes: up to the end of the highest variable of any tile, with what the target
    reserves; fullest_tile has it, and variables are those on that tile, the largest first.
    tile_bytes: the same of every tile, 0 where nothing lies, (tiles,). always_live_bytes: of
    state and constants, (tiles,). transient_bytes: the most that are live of all others at
    any time, (tiles,). Live bytes count neither gaps nor the reserve. worst_steps: the superstep
    of that time, its number in steps, -1 where nothing ever is, (tiles,). steps: in the order of
    execution, a loop's body once and a function once a call.
    """

    target: Target
    max_tile_bytes: int
    tiles_used: int
    fullest_tile: int
    variables: tuple[TileVariable, ...]
    tile_bytes: Integers
    always_live_bytes: Integers
    transient_bytes: Integers
    worst_steps: Integers
    steps: tuple[StepMemory, ...]

    @property
    def worst_step(self) -> str:
        """The superstep in which most of the fullest tile's bytes are live; "" if none are."""
        step = int(self.worst_steps[self.fullest_tile])
        return self.steps[step].name if step >= 0 else ""

    @property
    def gap_bytes(self) -> int:
        """Bytes below the highest variable of the fullest tile that are not live even then."""
        tile = self.fullest_tile
        live = int(self.always_live_bytes[tile] + self.transient_bytes[tile])
        return max(self.max_tile_bytes - self.target.memory.reserved_bytes - live, 0)

    @property
    def tiles(self) -> int:
        """Tiles that the program asks for, up to the highest it uses."""
        return len(self.tile_bytes)

    @property
    def over_bytes(self) -> int:
        """Bytes that the fullest tile lacks; 0 if all fits."""
        return max(self.max_tile_bytes - self.target.bytes_per_tile, 0)

    def problem(self) -> DoesNotFit | None:
        """Why the program does not fit, ready to be raised; None if it does."""
        used = np.flatnonzero(self.tile_bytes)
        if len(used) and used[-1] >= self.target.tiles:
            return DoesNotFit(
                "the program",
                int(used[-1]) + 1,
                self.target.tiles,
                units="tiles",
                remedy="plan it again for this target",
            )
        if not self.over_bytes:
            return None
        return DoesNotFit(
            f"the program ({', '.join(_layers(self.variables))}; largest are "
            f"{', '.join(f'@{v.name} {v.bytes} B' for v in self.variables[:SHOWN])}) is "
            f"{self.over_bytes} bytes too large: it",
            self.max_tile_bytes,
            self.target.bytes_per_tile,
            tile=self.fullest_tile,
            remedy=self._remedy(),
        )

    def _remedy(self) -> str:
        wide = sum(v.bytes for v in self.variables if v.dtype == "float32")
        advice: list[str] = []
        if wide:
            advice.append(f"{NARROWER} halves {wide} of these bytes")
        advice.append(f"more tiles than {self.target.tiles} leave less on each")
        roomier = with_more_memory(self.target)
        other = f" or a target with more memory a tile (--target {roomier})" if roomier else ""
        advice.append(f"a smaller batch{other} needs less of it")
        return "; ".join(advice)


def _layers(variables: Sequence[TileVariable]) -> Iterator[str]:
    """Bytes by layer, the largest first."""
    layers: dict[str, int] = {}
    for v in variables:
        name = (v.origin or v.name).split("/")[0]
        layers[name] = layers.get(name, 0) + v.bytes
    largest = sorted(layers.items(), key=lambda item: -item[1])
    yield from (f"{name} {size} B" for name, size in largest[:SHOWN])
    if rest := sum(size for _, size in largest[SHOWN:]):
        yield f"others {rest} B"


def memory_report(module: ModuleOp, target: Target) -> MemoryReport:
    """What an exchange module keeps on every tile.

    Raises InputError for a module that has no entry function.
    """
    variables = {v.symbol: v for v in module.body.block.ops if isinstance(v, VariableOp)}
    ends = [v.placed.first_tile + v.placed.cells for v in variables.values()]
    tiles = max([target.tiles, *ends])
    highest = np.zeros(tiles, np.int64)
    always = np.zeros(tiles, np.int64)
    for v in variables.values():
        here = _tiles(v)
        highest[here] = np.maximum(highest[here], v.start + v.bytes_per_tile)
        always[here] += v.bytes_per_tile * v.is_resident
    used = np.zeros(tiles, bool)
    for v in variables.values():
        used[_tiles(v)] = True
    tile_bytes = np.where(used, highest + target.memory.reserved_bytes, 0)
    fullest = int(np.argmax(tile_bytes))
    here = [v for v in variables.values() if _tiles(v).start <= fullest < _tiles(v).stop]
    timeline = _Timeline(functions_of(module), variables)
    timeline.run()
    transient, worst, steps = _sweep(timeline, always)
    phase = int(worst[fullest])
    then = timeline.live(phase) if len(steps) else set[str]()
    waiting = then - timeline.touched(phase // PHASES)
    return MemoryReport(
        target=target,
        max_tile_bytes=int(tile_bytes[fullest]),
        tiles_used=int(used.sum()),
        fullest_tile=fullest,
        variables=tuple(
            TileVariable(
                v.symbol,
                origin(v),
                v.dtype.name,
                v.start,
                v.bytes_per_tile,
                v.is_resident,
                v.is_resident or v.symbol in then,
                v.symbol in waiting,
            )
            for v in sorted(here, key=lambda v: (-v.bytes_per_tile, v.start))
        ),
        tile_bytes=tile_bytes,
        always_live_bytes=always,
        transient_bytes=transient,
        worst_steps=worst // PHASES,
        steps=steps,
    )


def _tiles(v: VariableOp) -> slice:
    return slice(v.placed.first_tile, v.placed.first_tile + v.placed.cells)


# When a variable is live

EXCHANGE, BEFORE, AFTER = range(3)
"""The phases of a superstep. A result that lies on an operand is there after it has been computed,
the operand before: else both are there in both."""

PHASES = 3


@dataclass(frozen=True, order=True)
class _Access:
    """A variable is touched in a phase; reads come before writes.

    certain: whether a write happens for sure, so that what was there before is dead.
    """

    phase: int
    writes: bool
    certain: bool


@dataclass
class _Timeline:
    """The program in order of execution, each superstep of PHASES phases."""

    functions: Mapping[str, func.FuncOp]
    variables: Mapping[str, VariableOp]
    accesses: dict[str, list[_Access]] = field(default_factory=dict[str, list[_Access]])
    loops: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    names: list[str] = field(default_factory=list[str])

    def run(self) -> None:
        self._block(self.functions[ENTRY].body.block, (ENTRY,), True)

    def lives(self) -> Iterator[tuple[VariableOp, int, int]]:
        """When each variable that does not always live does: first and last phase."""
        for name, accesses in self.accesses.items():
            v = self.variables.get(name)
            if v is not None and not v.is_resident:
                for first, last in _segments(accesses, self.loops):
                    yield v, first, last

    def live(self, phase: int) -> set[str]:
        """The names of those that live in a phase."""
        return {v.symbol for v, first, last in self.lives() if first <= phase <= last}

    def touched(self, step: int) -> set[str]:
        """The names of those that a superstep reads or writes."""
        return {
            name
            for name, accesses in self.accesses.items()
            if any(access.phase // PHASES == step for access in accesses)
        }

    def _touch(self, name: str, phase: int, writes: bool, certain: bool) -> None:
        # A predicate may be read before the first superstep.
        access = _Access(max(PHASES * (len(self.names) - 1) + phase, 0), writes, certain)
        self.accesses.setdefault(name, []).append(access)

    def _touch_all(self, names: Sequence[str], phase: int, writes: bool, certain: bool) -> None:
        for name in names:
            self._touch(name, phase, writes, certain)

    def _lies_on(self, op: Vertices, source: str) -> bool:
        """Whether the result of vertices lies on a variable that they read."""
        own, other = self.variables.get(op.destination), self.variables.get(source)
        return (
            own is not None
            and other is not None
            and own.start == other.start
            and not own.is_resident
            and source in op.overwritable()
        )

    def _block(self, block: Block, calling: tuple[str, ...], certain: bool) -> None:
        for op in block.ops:
            self._operation(op, calling, certain)

    def _operation(self, op: Operation, calling: tuple[str, ...], certain: bool) -> None:
        match op:
            case SuperstepOp():
                self.names.append(op.sym_name.data)
                self._block(op.body.block, calling, certain)
            case Copy():
                self._touch_all(op.sources, EXCHANGE, False, certain)
                self._touch(op.destination, EXCHANGE, True, certain)
            case Vertices():
                # What the result lies on gives way to it: never are both there.
                under = [name for name in op.sources if self._lies_on(op, name)]
                apart = [name for name in op.sources if name not in under]
                self._touch_all(under, BEFORE, False, certain)
                self._touch_all(apart, AFTER, False, certain)
                self._touch(op.destination, AFTER if under else BEFORE, True, certain)
            case HostInput():
                self._touch(op.writes.string_value(), EXCHANGE, True, certain)
            case HostOutput():
                self._touch(op.reads.string_value(), EXCHANGE, False, certain)
            case ReadOp():
                self._touch(op.variable.string_value(), AFTER, False, certain)
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                self._block(callee.body.block, (*calling, callee.sym_name.data), certain)
            case control.IfOp():
                for region in op.regions:
                    self._block(region.block, calling, False)
            case control.RepeatOp() | control.WhileOp():
                start = PHASES * len(self.names)
                for region in op.regions:
                    self._block(region.block, calling, certain)
                self.loops.append((start, PHASES * len(self.names) - 1))
            case _:
                pass


def _segments(accesses: Sequence[_Access], loops: Sequence[tuple[int, int]]) -> list[list[int]]:
    """First and last phases in which a variable's bytes are needed, in order, disjoint."""
    found: list[list[int]] = []
    ordered = sorted(accesses)
    for access in ordered:
        if not found:
            found.append([access.phase if access.writes else 0, access.phase])
        elif access.writes and access.certain:
            found.append([access.phase, access.phase])
        else:
            found[-1][1] = access.phase
    for start, end in loops:
        inside = [a for a in ordered if start <= a.phase <= end]
        # What a turn reads before it is written comes from the turn before, or from outside.
        if inside and not (inside[0].writes and inside[0].certain):
            found.append([start, end])
    merged: list[list[int]] = []
    for first, last in sorted(found):
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    return merged


def _sweep(
    timeline: _Timeline, always: Integers
) -> tuple[Integers, Integers, tuple[StepMemory, ...]]:
    """The most transient bytes of every tile and their phase, and the fullest tile of every
    superstep."""
    phases = PHASES * len(timeline.names)
    begin: list[list[VariableOp]] = [[] for _ in range(phases + 2)]
    end: list[list[VariableOp]] = [[] for _ in range(phases + 2)]
    for v, first, last in timeline.lives():
        begin[first].append(v)
        end[last + 1].append(v)
    live = np.zeros(len(always), np.int64)
    peak, worst = live.copy(), np.full(len(always), -1)
    steps: list[StepMemory] = []
    for step, name in enumerate(timeline.names):
        most = np.zeros(len(always), np.int64)
        for phase in range(PHASES * step, PHASES * (step + 1)):
            for v in end[phase]:
                live[_tiles(v)] -= v.bytes_per_tile
            for v in begin[phase]:
                live[_tiles(v)] += v.bytes_per_tile
            np.maximum(most, live, out=most)
            worst[live > peak] = phase
            np.maximum(peak, live, out=peak)
        tile = int(np.argmax(most + always))
        steps.append(StepMemory(name, tile, int(most[tile] + always[tile])))
    return peak, worst, tuple(steps)
