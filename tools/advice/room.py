"""Changes that free memory on the fullest tile of a program, and their effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...backends.target import PRESETS, Target
from ...backends.target.presets import CHIP_OF
from ...dialects.levels import NN
from ...ir.pass_manager import parse_specs
from ...ir.support.errors import InputError
from ...passes.narrow_floats import NarrowFloats
from ...passes.pipelines import shorthand_from
from ...passes.planner.limits import PROPORTION
from ..driver.executable import Executable
from .memory_map import MemoryMap

NARROWING = NarrowFloats.name
"""The pass that makes floats narrower, so that twice as many fit."""

NARROWER = "--precision float16"
"""The option that stands for the pass."""

PROPORTIONS = (0.3, 0.1, 0.03)
"""Memory proportions to try, until one fits."""

MORE_CHIPS = 3
"""How many numbers of chips to try, each twice the one before, starting at the least power of two
that can hold what always lives."""


@dataclass(frozen=True)
class CompileSettings:
    """How a program is compiled, as far as advice may change it.

    Attributes:
        passes: a pipeline as for -p; "" for the default one.
        proportion: the memory proportion; None for the program's own.
        operators: memory proportions of single operators, by name, in addition to the constraints.
        recompute: as of a request.
        micro_batches: the parts of a batch of training; 0 for the program's own.
        shard: which dimensions are cut across chips, besides those that the user cuts.
    """

    target: Target
    passes: str = ""
    proportion: float | None = None
    operators: tuple[tuple[str, float], ...] = ()
    recompute: str = ""
    micro_batches: int = 0
    shard: tuple[str, ...] = ()


Compile = Callable[[CompileSettings], Executable]
"""Compiles the program, even if it does not fit."""


@dataclass(frozen=True)
class Trial:
    """A change, and the fullest tile with it.

    Attributes:
        bytes: of variables and of the target's reserve, out of `available`.
        cycles: None if nothing was compiled, because `bytes` is only a bound.
        note: why it frees no memory, if that is known.
    """

    change: str
    bytes: int
    available: int
    cycles: int | None
    note: str = ""

    @property
    def keeps_target(self) -> bool:
        """Whether the program stays on its target."""
        return "--target" not in self.change and "--chips" not in self.change

    @property
    def fits(self) -> bool:
        """Whether the program fits with this change."""
        return self.bytes <= self.available


def trials(found: MemoryMap, own: CompileSettings, compile_with: Compile) -> Iterator[Trial]:
    """Changes that free memory on the fullest tile. Each is compiled, or excluded by a bound.

    Changes of a kind are tried until one fits.

    Args:
        own: how the program was compiled.
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
    largest = _bytes(machine)
    for name in (each for each in PRESETS if CHIP_OF[each] == each):
        if _bytes(PRESETS[name]) > largest:
            largest = _bytes(PRESETS[name])
            tried = _tried(f"--target {name}", replace(own, target=PRESETS[name]), compile_with)
            yield tried
            if tried.fits:
                break
    if found.is_wide and (passes := narrowed(own.passes, found.level)):
        bound = _bound(NARROWER, found.narrow_always_live, own)
        narrower = replace(own, passes=passes)
        yield _tried(NARROWER, narrower, compile_with) if bound.fits else bound


def more_chips(found: MemoryMap, own: CompileSettings, compile_with: Compile) -> Iterator[Trial]:
    """The program on more chips of its machine, until it fits.

    There is none for a machine that cannot have several chips.

    Args:
        own: how the program was compiled.
    """
    machine = own.target
    least = machine.chips * max(found.chips, 2)
    first = 1 << (least - 1).bit_length()
    for many in (first << i for i in range(MORE_CHIPS)):
        try:
            several = _with_more_chips(machine, many)
        except InputError:
            return
        change = f"--chips {many}"
        if several.spelling() in PRESETS or machine.chips > 1:
            change = f"--target {several.spelling()}"
        tried = _tried(change, replace(own, target=several), compile_with)
        yield tried
        if tried.fits:
            return


def _with_more_chips(machine: Target, chips: int) -> Target:
    """This machine with more chips of its kind. Raises InputError if there can be none."""
    if machine.chips == 1:
        return machine.with_chips(chips)
    links = replace(machine.links, chips=chips)
    return replace(machine, tiles=chips * machine.tiles_per_chip, links=links).as_preset()


def _bytes(machine: Target) -> int:
    return machine.tiles * machine.bytes_per_tile


def narrowed(passes: str, level: str) -> str:
    """A pipeline with narrower floats; "" if it has them, or if the program is below nn."""
    if level != NN.name or any(each.name == NARROWING for each in parse_specs(passes)):
        return ""
    return ",".join((NARROWING, passes or shorthand_from(NN)))


def _bound(change: str, always_live: int, own: CompileSettings) -> Trial:
    """A lower bound for the fullest tile, from bytes that all tiles together must hold."""
    machine = own.target
    least = -(-always_live // machine.tiles) + machine.memory.reserved_bytes
    return Trial(f"{change}: what always lives alone", least, machine.bytes_per_tile, None)


def _tried(change: str, how: CompileSettings, compile_with: Compile) -> Trial:
    return trial(change, how, compile_with(how))


def trial(change: str, how: CompileSettings, exe: Executable) -> Trial:
    """The effect of a change.

    Args:
        change: in words.
        how: how it was compiled.
    """
    return Trial(
        change, exe.memory.max_tile_bytes, how.target.bytes_per_tile, int(exe.profile["cycles"])
    )
