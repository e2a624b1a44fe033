"""What lies on the fullest tile of a program, of which layers, and what would make room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

from ..backends.memory import MemoryReport, TileVariable
from ..backends.overheads import overheads
from ..backends.price import variables_of
from ..backends.target import PRESETS, Target
from ..dialects.exchange import VariableOp
from ..ir.pass_manager import parse_specs
from ..passes.narrow_floats import NarrowFloats
from ..passes.pipelines import LEVELS, way
from ..passes.planner.limits import PROPORTION
from .executable import MACHINE, Executable

WIDE = "float32"
"""The type that a narrower float can take the place of, by NARROWING."""

NARROWING = NarrowFloats.name
"""The pass that makes floats narrower, and twice as many of them fit."""

PROPORTIONS = (0.3, 0.1, 0.03)
"""Memory proportions that are tried for advice, until one fits."""

MORE_CHIPS = 3
"""Numbers of chips that are tried for advice, from those that hold what always lives."""


@dataclass(frozen=True)
class Way:
    """How a program is compiled: what advice may change.

    passes: a pipeline as -p takes it, or "" for the whole way. proportion: the memory proportion;
    the program's own if None.
    """

    target: Target
    passes: str = ""
    proportion: float | None = None


Compile = Callable[[Way], Executable]
"""Compiles the program, whether it fits or not."""


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
    together. narrow_always_live: of each element once, if float32 were half as wide. level: that
    the program came on. is_wide: whether any of it is float32. layers: the largest first. steps:
    supersteps with the most live bytes on any tile, and the tile.
    """

    target: Target
    tile: int
    step: str
    categories: dict[str, int]
    reserved: int
    all_always_live: int
    narrow_always_live: int
    level: str
    is_wide: bool
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
    def chips(self) -> int:
        """As how many chips of the target hold what always lives."""
        all_tiles = self.target.tiles * self.target.usable_bytes_per_tile
        return max(-(-self.all_always_live // all_tiles), 1)

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
    variables = [v for v in module.body.block.ops if isinstance(v, VariableOp)]
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
        narrow_always_live=sum(_narrow_bytes(v) for v in variables if v.is_resident),
        level=exe.levels[0],
        is_wide=any(v.dtype.name == WIDE for v in variables),
        layers=tuple(_layers(report)),
        variables=report.variables,
        steps=tuple(
            (step.name, step.bytes, step.tile)
            for step in sorted(report.steps, key=lambda each: -each.bytes)
        ),
        cycles=int(exe.profile["cycles"]),
    )


def _narrow_bytes(v: VariableOp) -> int:
    """Bytes of a variable's elements, each once, in the narrower type if there is one."""
    return prod(v.placed.shape) * v.dtype.itemsize // (1 + (v.dtype.name == WIDE))


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


def trials(found: MemoryMap, own: Way, compile_with: Compile) -> Iterator[Trial]:
    """What would make room on the fullest tile: each is compiled, but for those told by a bound.

    own: how the map's program was compiled. Changes of a kind are tried until one fits. Several
    chips are compiled as one of so many tiles: their bytes are told and their cycles are not, since
    nothing prices the links between them.
    """
    machine = own.target
    chips = found.chips
    if chips > 1:
        yield _bound("any memory proportion", found.all_always_live, own)
    for smaller in PROPORTIONS if chips == 1 else ():
        if smaller < (PROPORTION if own.proportion is None else own.proportion):
            less = replace(own, proportion=smaller)
            tried = _tried(f"--memory-proportion {smaller:g}", less, compile_with)
            yield tried
            if tried.fits:
                break
    for name, preset in PRESETS.items():
        if preset.bytes_per_tile * preset.tiles > machine.bytes_per_tile * machine.tiles:
            tried = _tried(f"--target {name}", replace(own, target=preset), compile_with)
            yield tried
            if tried.fits:
                break
    if found.is_wide and (passes := _narrowed(own.passes, found.level)):
        bound = _bound(f"-p {passes}", found.narrow_always_live, own)
        narrower = replace(own, passes=passes)
        yield _tried(f"-p {passes}", narrower, compile_with) if bound.fits else bound
    for many in range(max(chips, 2), max(chips, 2) + MORE_CHIPS):
        several = replace(machine, tiles=many * machine.tiles)
        change = f"--target {several.spelling()}: {many} chips as one"
        tried = _tried(change, replace(own, target=several), compile_with)
        yield replace(tried, cycles=None)
        if tried.fits:
            break


def _narrowed(passes: str, level: str) -> str:
    """A pipeline with narrower floats; "" for one that has them, or begins where nobody can."""
    if level != LEVELS[0] or any(each.name == NARROWING for each in parse_specs(passes)):
        return ""
    return ",".join((NARROWING, passes or ",".join(way(level))))


def _bound(change: str, always_live: int, own: Way) -> Trial:
    """What a tile would hold of so many bytes on all tiles: what is more than that cannot fit."""
    machine = own.target
    least = -(-always_live // machine.tiles) + machine.memory.reserved_bytes
    return Trial(f"{change}: what always lives alone", least, machine.bytes_per_tile, None)


def _tried(change: str, how: Way, compile_with: Compile) -> Trial:
    return trial(change, how, compile_with(how))


def trial(change: str, how: Way, exe: Executable) -> Trial:
    """What has come of a change. change: in words. how: as it was compiled."""
    return Trial(
        change, exe.memory.max_tile_bytes, how.target.bytes_per_tile, int(exe.profile["cycles"])
    )
