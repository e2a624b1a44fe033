"""Advice to cut the layers with the largest weights across chips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.ir import Operation

from ...dialects.levels import NN
from ...dialects.structured import Movement, Structured
from ...ir.node_names import node_names, operations_named
from ...ir.phases import FORWARD, Phases
from ...ir.support.errors import InputError
from ...ir.xdsl.walk import operations
from ...passes.planner.shards import OPTION, Shard
from ...passes.planner.shards_of_training import shard_of_weight, weight_bytes
from ...passes.plans.fused import FusedGroups
from ..driver.executable import Executable
from .memory_map import MemoryMap
from .room import Compile, CompileSettings, Trial, trial

ROUNDS = 4
"""The most layers to cut."""


def shardings(
    found: MemoryMap,
    exe: Executable,
    own: CompileSettings,
    given: tuple[str, ...],
    compile_with: Compile,
) -> Iterator[Trial]:
    """Layers that are cut across all chips, the one with the largest weight first, until the
    program fits.

    There are none for a program that fits, on one chip, or if what always lives is too large for
    all chips together. A layer that frees no memory is tried, but not kept. One that no plan cuts
    is left out, and so is one that the user has cut.

    Args:
        found, exe: the program as it is.
        own: how it was compiled.
        given: the shards that the user has chosen.
    """
    chips = own.target.chips
    if found.fits or chips == 1 or found.chips > 1 or NN.name not in exe.levels:
        return
    taken = {Shard.read(each).name for each in given}
    free = [each for each in _shards(exe, chips) if each.name not in taken]
    before, size, last = own, exe.memory.max_tile_bytes, ""
    for shard in free[:ROUNDS]:
        changed = replace(before, shard=(*before.shard, str(shard)))
        change = f"{last} {OPTION} {shard}".strip()
        try:
            tried = trial(change, changed, compile_with(changed))
        except InputError:
            # No plan of the operator is cut so and fits a tile.
            continue
        yield tried
        if tried.fits:
            return
        if tried.bytes < size:
            before, size, last = changed, tried.bytes, change


def _shards(exe: Executable, chips: int) -> list[Shard]:
    """The shard of each layer with a weight, the one with the most bytes first."""
    module = exe.module_at(NN.name).clone()
    phases = Phases.of(module)
    with FusedGroups(module):
        planned = [op for op in operations(module) if isinstance(op, Structured | Movement)]
        forward = [op for op in planned if phases.phase(op) == FORWARD]
        forward.sort(key=weight_bytes, reverse=True)
        found = [
            shard_of_weight(op, _name_of(op, planned), chips) for op in forward if weight_bytes(op)
        ]
    return [each for each in found if each is not None and each.name]


def _name_of(op: Operation, planned: Sequence[Operation]) -> str:
    """The shortest name that only this operation has; "" if there is none."""
    names = sorted(node_names(op), key=len)
    return next((each for each in names if operations_named(each, planned) == [op]), "")
