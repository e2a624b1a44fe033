"""What would make room on the fullest tile of a program: changes, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...backends.target import PRESETS, Target
from ...dialects.levels import NN
from ...ir.pass_manager import parse_specs
from ...passes.narrow_floats import NarrowFloats
from ...passes.pipelines import shorthand_from
from ...passes.planner.limits import PROPORTION
from ..driver.executable import Executable
from .memory_map import MemoryMap

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
    the program's own if None. operators: memory proportions of some operators, by name, beside
    what constraints say.
    """

    target: Target
    passes: str = ""
    proportion: float | None = None
    operators: tuple[tuple[str, float], ...] = ()


Compile = Callable[[Way], Executable]
"""Compiles the program, whether it fits or not."""


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
        yield _bound("any memory proportion", found.once_always_live, own)
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
    if level != NN.name or any(each.name == NARROWING for each in parse_specs(passes)):
        return ""
    return ",".join((NARROWING, passes or shorthand_from(NN)))


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
