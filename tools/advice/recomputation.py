"""Advice to compute values again instead of keeping them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...dialects.levels import NN
from ...ir.pass_manager import PassManager, parse_specs
from ...ir.upstream import ModuleOp
from ...passes.pipelines import shorthand_from
from ..driver.executable import Executable
from ..driver.extensions.loaded import Extensions
from ..driver.recomputation.asked import AUTO
from .memory_map import MemoryMap
from .room import Compile, CompileSettings, Trial, trial

RECOMPUTING = f"--recompute {AUTO}"
"""The option that lets the compiler choose what to compute again."""

DEFAULT = shorthand_from(NN)
"""The pipeline that "" stands for."""


def recomputations(
    found: MemoryMap, exe: Executable, own: CompileSettings, compile_with: Compile
) -> Iterator[Trial]:
    """The program with as much computed again as its memory asks for, compiled.

    There is none if the program fits, if can_change_nn returns false, or if nothing can be computed
    again that would free memory on the fullest tile.

    Args:
        found, exe: the program as it is.
        own: how it was compiled.
    """
    if found.fits or own.recompute or not can_change_nn(found, exe, own):
        return
    change = replace(own, recompute=AUTO)
    after = compile_with(change)
    if after.recomputed:
        yield trial(RECOMPUTING, change, after)


def can_change_nn(found: MemoryMap, exe: Executable, own: CompileSettings) -> bool:
    """Whether advice may change how a program's operators are computed, and could help.

    It cannot help if the variables that always live are too large on their own.
    """
    named = any(each.name == NN.name for each in parse_specs(own.passes or DEFAULT))
    return found.chips == 1 and NN.name in exe.levels and named


def module_behind_nn(exe: Executable, own: CompileSettings, known: Extensions) -> ModuleOp:
    """The program after those passes of a pipeline that stay at nn."""
    module = exe.module_at(NN.name).clone()
    specs = parse_specs(own.passes or DEFAULT)
    last = max(i for i, each in enumerate(specs, 1) if each.name == NN.name)
    spec = ",".join(map(str, specs[:last]))
    passes = known.pipeline(spec, exe.target.spelling())
    PassManager(passes).run(known.context(), module)
    return module
