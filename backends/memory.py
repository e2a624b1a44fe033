"""The contents of every tile's memory, and why a program does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..dialects.exchange import VariableOp
from ..dialects.steps import Remote
from ..ir.provenance import origin
from ..ir.support.arrays import Integers
from ..ir.support.errors import DoesNotFit
from ..ir.upstream import ModuleOp
from .functions import functions_of
from .lifetimes import PHASES, Timeline
from .target import Target

ADVICE = "`abele memory MODEL --advise`, with the same options, tries changes that free memory"
"""What an error says about a program that does not fit. Only a compiler knows what would help."""

SHOWN = 6
"""Layers and variables that a message names at most. Assumed: as many as fit a few lines."""


@dataclass(frozen=True)
class TileVariable:
    """A variable on a tile.

    Attributes:
        bytes: the bytes that it takes on this tile.
        resident: whether it is live before, during and after every run.
        live: whether it is live in the superstep in which most of the tile's bytes are live.
        waits: whether it is live in that superstep without being resident, read or written there.
    """

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
    """The tile with the most live bytes in one superstep, and those bytes."""

    name: str
    tile: int
    bytes: int


@dataclass(frozen=True, eq=False)
class MemoryReport:
    """The memory of a program's tiles.

    Attributes:
        tile_bytes: the bytes up to the end of the highest variable of each tile, plus those that
            the target reserves; 0 on tiles without variables, (tiles,).
        max_tile_bytes: the largest of these numbers, which is that of fullest_tile.
        variables: the variables on the fullest tile, the largest first.
        always_live_bytes: the bytes of states and constants, (tiles,).
        transient_bytes: the most bytes of all other variables that are live at once, (tiles,). Live
            bytes do not include gaps and the reserve.
        worst_steps: the superstep in which these most bytes are live, as an index of steps; -1 on
            tiles without any, (tiles,).
        steps: the supersteps in the order of execution. A loop's body appears once, and a function
            once per call; if there would be very many steps, only in its first and last call (see
            Timeline).
        remote_bytes: those of states in remote memory.
        timeline: the accesses from which all this follows.
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
    remote_bytes: int
    timeline: Timeline = field(repr=False)

    @property
    def worst_step(self) -> str:
        """The superstep in which most bytes of the fullest tile are live; "" if none are."""
        step = int(self.worst_steps[self.fullest_tile])
        return self.steps[step].name if step >= 0 else ""

    @property
    def gap_bytes(self) -> int:
        """Bytes of the fullest tile below its highest variable that are not live in its worst
        superstep."""
        tile = self.fullest_tile
        live = int(self.always_live_bytes[tile] + self.transient_bytes[tile])
        return max(self.max_tile_bytes - self.target.memory.reserved_bytes - live, 0)

    @property
    def tiles(self) -> int:
        """Tiles of the target, or up to the highest tile that the program uses if that is more."""
        return len(self.tile_bytes)

    @property
    def over_bytes(self) -> int:
        """The bytes that the fullest tile lacks; 0 if its memory is large enough."""
        return max(self.max_tile_bytes - self.target.bytes_per_tile, 0)

    @property
    def shortage(self) -> str:
        """What the target lacks for the program, in a few words; "" if the program fits."""
        if self.tiles > self.target.tiles:
            return f"it needs {self.tiles:,} tiles, and the target has {self.target.tiles:,}"
        if self.over_bytes:
            return f"tile {self.fullest_tile} needs {self.over_bytes:,} bytes more than it has"
        if self.remote_bytes > self.target.remote_bytes:
            return (
                f"it needs {self.remote_bytes:,} bytes of remote memory, and the target has "
                f"{self.target.remote_bytes:,}"
            )
        return ""

    def problem(self) -> DoesNotFit | None:
        """The error to raise if the program does not fit; None if it fits."""
        if self.tiles > self.target.tiles:
            return DoesNotFit(
                "the program",
                self.tiles,
                self.target.tiles,
                units="tiles",
                remedy="plan it again for this target",
            )
        if not self.over_bytes:
            return remote_problem(self.remote_bytes, self.target)
        return DoesNotFit(
            "the program",
            self.max_tile_bytes,
            self.target.bytes_per_tile,
            tile=self.fullest_tile,
            remedy=ADVICE,
            details=(
                f"{self.over_bytes} bytes too large: {', '.join(_layers(self.variables))}",
                "largest variables: "
                + ", ".join(f"@{v.name} {v.bytes} B" for v in self.variables[:SHOWN]),
            ),
        )


def remote_problem(needed: int, target: Target) -> DoesNotFit | None:
    """The error to raise if states need more remote memory than a target has; None if they fit.

    Args:
        needed: bytes of all states in remote memory.
    """
    if needed <= target.remote_bytes:
        return None
    return DoesNotFit(
        "the program",
        needed,
        target.remote_bytes,
        units="bytes of remote memory",
        remedy="keep fewer states there, or give the target more remote.gbytes",
    )


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
    """The memory report of an exchange module.

    Raises InputError for a module that has no entry function.
    """
    variables = {v.symbol: v for v in module.body.block.ops if isinstance(v, VariableOp)}
    ends = [v.placed.tiles.end for v in variables.values()]
    tiles = max([target.tiles, *ends])
    highest = np.zeros(tiles, np.int64)
    always = np.zeros(tiles, np.int64)
    for v in variables.values():
        here = v.placed.tiles.rows
        highest[here] = np.maximum(highest[here], v.start + v.bytes_per_tile)
        always[here] += v.bytes_per_tile * v.is_resident
    used = np.zeros(tiles, bool)
    for v in variables.values():
        used[v.placed.tiles.rows] = True
    tile_bytes = np.where(used, highest + target.memory.reserved_bytes, 0)
    fullest = int(np.argmax(tile_bytes))
    here = [v for v in variables.values() if fullest in v.placed.tiles]
    timeline = Timeline(functions_of(module), variables)
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
        timeline=timeline,
        remote_bytes=sum(op.bytes for op in module.body.block.ops if isinstance(op, Remote)),
    )


def _sweep(
    timeline: Timeline, always: Integers
) -> tuple[Integers, Integers, tuple[StepMemory, ...]]:
    """The most transient bytes of each tile, the phase in which they are live, and the fullest tile
    of each superstep."""
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
                live[v.placed.tiles.rows] -= v.bytes_per_tile
            for v in begin[phase]:
                live[v.placed.tiles.rows] += v.bytes_per_tile
            np.maximum(most, live, out=most)
            worst[live > peak] = phase
            np.maximum(peak, live, out=peak)
        tile = int(np.argmax(most + always))
        steps.append(StepMemory(name, tile, int(most[tile] + always[tile])))
    return peak, worst, tuple(steps)
