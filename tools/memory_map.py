"""What lies on the fullest tile of a program, of which layers, and what would make room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..backends.memory import MemoryReport, TileVariable
from ..backends.overheads import overheads
from ..backends.price import variables_of
from ..backends.target import PRESETS, Target
from ..passes.planner.limits import PROPORTION
from .executable import MACHINE, Executable

WIDE = ("float32", "float64")
"""Types that a narrower float could take the place of."""

PROPORTIONS = (0.3, 0.1, 0.03)
"""Memory proportions that are tried for advice, until one fits."""

MORE_CHIPS = 3
"""Numbers of chips that are tried for advice, from those that hold what always lives."""

Compile = Callable[[float | None, Target], Executable]
"""Compiles the program with a memory proportion, its own if None, for a target, whether it fits or
not."""


@dataclass(frozen=True)
class LayerMemory:
    """Bytes of one layer on a tile: of what always lives, and of what lives in its worst step."""

    layer: str
    always_live: int
    live_now: int


@dataclass(frozen=True)
class MemoryMap:
    """The fullest tile of a program at its worst superstep.

    categories: bytes by what they are for, in the order of the columns: variables that always
    live, those that live then, gaps that are free then, code, vertex state, exchange code and
    stacks. reserved: what the target keeps for the last four. all_always_live: on all tiles
    together. layers: the largest first. steps: supersteps with the most live bytes on any tile, and
    the tile.
    """

    target: Target
    tile: int
    step: str
    categories: dict[str, int]
    reserved: int
    all_always_live: int
    layers: tuple[LayerMemory, ...]
    variables: tuple[TileVariable, ...]
    steps: tuple[tuple[str, int, int], ...]
    cycles: int

    @property
    def variable_bytes(self) -> int:
        """What variables take, gaps among them."""
        return sum(self.categories[key] for key in ("always live", "live now", "gaps"))

    @property
    def overhead_bytes(self) -> int:
        """What all else takes, by the rules of `backends/overheads`."""
        return sum(self.categories.values()) - self.variable_bytes

    @property
    def fits(self) -> bool:
        """Whether the variables do, beside what the target reserves."""
        return self.variable_bytes <= self.target.usable_bytes_per_tile

    @property
    def wide_bytes(self) -> int:
        """Live bytes of 32-bit and wider floats."""
        return sum(v.bytes for v in self.variables if v.live and v.dtype in WIDE)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        return asdict(self) | {
            "target": self.target.spelling(),
            "bytes_per_tile": self.target.bytes_per_tile,
            "fits": self.fits,
        }


def memory_map(exe: Executable) -> MemoryMap:
    """The map of a compiled program."""
    report, module = exe.memory, exe.module_at(MACHINE)
    more = overheads(module, variables_of(module), report.tiles, exe.target)
    tile = report.fullest_tile
    return MemoryMap(
        target=exe.target,
        tile=tile,
        step=report.worst_step,
        categories={
            "always live": int(report.always_live_bytes[tile]),
            "live now": int(report.transient_bytes[tile]),
            "gaps": report.gap_bytes,
            "code": int(more.code[tile]),
            "vertex state": int(more.vertex_state[tile]),
            "exchange code": int(more.exchange_code[tile]),
            "stacks": int(more.stacks[tile]),
        },
        reserved=exe.target.memory.reserved_bytes,
        all_always_live=int(report.always_live_bytes.sum()),
        layers=tuple(_layers(report)),
        variables=report.variables,
        steps=tuple(
            (step.name, step.bytes, step.tile)
            for step in sorted(report.steps, key=lambda each: -each.bytes)
        ),
        cycles=int(exe.profile["cycles"]),
    )


def _layers(report: MemoryReport) -> Iterator[LayerMemory]:
    found: dict[str, list[int]] = {}
    for v in report.variables:
        if v.live:
            bytes_of = found.setdefault((v.origin or v.name).split("/")[0], [0, 0])
            bytes_of[not v.resident] += v.bytes
    for layer, (always, now) in sorted(found.items(), key=lambda item: -sum(item[1])):
        yield LayerMemory(layer, always, now)


# What would make room


@dataclass(frozen=True)
class Trial:
    """One thing to change, and the fullest tile with it.

    bytes: of variables and the target's reserve, of `available`. cycles: None where nothing was
    compiled, the figure being a bound.
    """

    change: str
    bytes: int
    available: int
    cycles: int | None

    @property
    def fits(self) -> bool:
        """Whether the program does, with it."""
        return self.bytes <= self.available


def trials(
    found: MemoryMap, compile_with: Compile, proportion: float | None = None
) -> Iterator[Trial]:
    """What would make room on the fullest tile: each is compiled, but for those told by a bound.

    proportion: the memory proportion that the map was made with. Changes of a kind are tried until
    one fits. Several chips are compiled as one of so many tiles: their bytes are told and their
    cycles are not, since nothing prices the links between them.
    """
    own, reserve = found.target, found.reserved
    chips = max(-(-found.all_always_live // (own.tiles * own.usable_bytes_per_tile)), 1)
    if chips > 1:
        least = -(-found.all_always_live // own.tiles) + reserve
        change = "any memory proportion: what always lives alone"
        yield Trial(change, least, own.bytes_per_tile, None)
    for smaller in PROPORTIONS if chips == 1 else ():
        if smaller < (PROPORTION if proportion is None else proportion):
            tried = _tried(f"--memory-proportion {smaller:g}", smaller, own, compile_with)
            yield tried
            if tried.fits:
                break
    for name, preset in PRESETS.items():
        if preset.bytes_per_tile * preset.tiles > own.bytes_per_tile * own.tiles:
            tried = _tried(f"--target {name}", proportion, preset, compile_with)
            yield tried
            if tried.fits:
                break
    if found.wide_bytes:
        halved = found.variable_bytes - found.wide_bytes // 2 + reserve
        yield Trial("float16 instead of float32, as planned now", halved, own.bytes_per_tile, None)
    for many in range(max(chips, 2), max(chips, 2) + MORE_CHIPS):
        several = replace(own, tiles=many * own.tiles)
        change = f"--target {several.spelling()}: {many} chips as one"
        tried = replace(_tried(change, proportion, several, compile_with), cycles=None)
        yield tried
        if tried.fits:
            break


def _tried(change: str, proportion: float | None, target: Target, compile_with: Compile) -> Trial:
    exe = compile_with(proportion, target)
    return Trial(
        change, exe.memory.max_tile_bytes, target.bytes_per_tile, int(exe.profile["cycles"])
    )
