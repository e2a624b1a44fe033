"""Advice to compute values again instead of keeping them, with the effect of each change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from ...dialects.levels import NN
from ...ir.pass_manager import PassManager, parse_specs
from ...ir.upstream import ModuleOp
from ...passes.pipelines import shorthand_from
from ...passes.recompute import Recompute
from ..driver.executable import Executable
from ..driver.extensions.loaded import Extensions
from .memory_map import MemoryMap
from .recomputable import recomputable
from .room import Compile, CompileSettings, Trial, trial

ROUNDS = 3
"""How often more nodes are named, each time for the tile that is then the fullest."""

DEFAULT = shorthand_from(NN)
"""The pipeline that "" stands for."""


def recomputations(
    found: MemoryMap,
    exe: Executable,
    own: CompileSettings,
    compile_with: Compile,
    known: Extensions,
) -> Iterator[Trial]:
    """Pipelines that compute values again instead of keeping them on the fullest tile, compiled.

    Each pipeline also names the nodes of the one before it. The last one fits, or nothing more can
    be computed again, or the next one would neither free memory nor be faster. There are none if
    can_change_nn returns false.

    Args:
        found, exe: the program as it is.
        own: how it was compiled.
    """
    if not can_change_nn(found, exe, own):
        return
    passes = own.passes or DEFAULT
    named: tuple[str, ...] = ()
    before, last = exe, trial("", own, exe)
    for _ in range(ROUNDS):
        module = module_behind_nn(exe, own, known, named)
        more = [name for name in recomputable(before.memory, module) if name not in named]
        if not more:
            return
        named = (*named, *more)
        change = replace(own, passes=_pipeline(passes, named))
        after = compile_with(change)
        tried = trial(f"-p {quote(change.passes)}", change, after)
        # The planner spends free memory: in a program that fits, it may have bought cycles.
        is_faster = tried.fits and (tried.cycles or 0) < (last.cycles or 0)
        if tried.bytes >= last.bytes and not is_faster:
            return
        yield tried
        if tried.fits:
            return
        before, last = after, tried


def can_change_nn(found: MemoryMap, exe: Executable, own: CompileSettings) -> bool:
    """Whether advice may change how a program's operators are computed, and could help.

    It cannot help if the variables that always live are too large on their own.
    """
    named = any(each.name == NN.name for each in parse_specs(own.passes or DEFAULT))
    return found.chips == 1 and NN.name in exe.levels and named


def _pipeline(passes: str, nodes: Sequence[str]) -> str:
    """A pipeline that computes nodes again after its passes at nn."""
    specs = parse_specs(passes)[_behind_nn(passes) :]
    return ",".join((_up_to_nn(passes, nodes), *map(str, specs)))


def _up_to_nn(passes: str, nodes: Sequence[str]) -> str:
    """The passes of a pipeline that stay at nn."""
    specs = parse_specs(passes)[: _behind_nn(passes)]
    again = (Recompute(tuple(nodes)).spec(),) if nodes else ()
    return ",".join(map(str, (*specs, *again)))


def _behind_nn(passes: str) -> int:
    """The number of passes of a pipeline up to the level nn, inclusive."""
    return max(i for i, each in enumerate(parse_specs(passes), 1) if each.name == NN.name)


def module_behind_nn(
    exe: Executable, own: CompileSettings, known: Extensions, nodes: Sequence[str] = ()
) -> ModuleOp:
    """The program after those passes of a pipeline that stay at nn.

    Args:
        nodes: to compute again.
    """
    module = exe.module_at(NN.name).clone()
    passes = known.pipeline(_up_to_nn(own.passes or DEFAULT, nodes), exe.target.spelling())
    PassManager(passes).run(known.context(), module)
    return module
