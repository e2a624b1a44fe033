"""Compile a program that recomputes as much as a memory bound asks for.

The program is compiled as it is. If it takes more than the bound, the choice is made on the memory
over time that its plans give, and the program is compiled again with the choice, so that the
planner can use the memory. If it still takes too much, the next choice aims lower by as much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ....dialects.levels import NN
from ....ir.upstream import ModuleOp
from ....ir.xdsl.walk import operations
from ....passes.plans.fused import FusedGroups
from ....passes.recompute import Recompute, by_name, name_of
from ..executable import MACHINE, Executable
from .choice import Chosen, choose
from .memory_over_time import Asked, memory_over_time
from .record import Recomputed, write_recomputed

ROUNDS = 4
"""The most compiles after the first one.

Chosen by judgement: each one takes as long as the first.
"""


@dataclass(frozen=True)
class Result:
    """The program that comes closest to the bound.

    Attributes:
        again: the pass that makes it; None if nothing is recomputed.
    """

    exe: Executable
    again: Recompute | None
    choices: tuple[Recomputed, ...] = ()


def within(bound: int | None, compile_with: Callable[[Recompute | None], Executable]) -> Result:
    """The program that takes no more than a bound, or the one that comes closest to it.

    Args:
        bound: bytes of a tile, with what the target reserves; None for all that it has.
        compile_with: compiles the program with a pass, even if it does not fit.
    """
    exe = compile_with(None)
    best = Result(exe, None)
    most = exe.target.bytes_per_tile if bound is None else bound
    kept = exe.stages.plans
    if exe.memory.max_tile_bytes <= most or kept is None or NN.name not in exe.levels:
        return best
    module = kept.module.clone()
    FusedGroups(module).fuse()
    memory = memory_over_time(module, exe.target)
    if memory is None:
        return best
    aim = memory.with_again(Asked()).peak - (exe.memory.max_tile_bytes - most)
    before: Recompute | None = None
    for _ in range(ROUNDS):
        choices, estimate = choose(memory, max(aim, 0))
        recorded = tuple(_recorded(choices, module))
        again = _pass(recorded)
        if not recorded or again == before:
            break
        found = compile_with(again)
        size = found.memory.max_tile_bytes
        if size < best.exe.memory.max_tile_bytes:
            best = Result(found, again, recorded)
        if size <= most:
            break
        before, aim = again, min(aim, estimate.peak) - (size - most)
    if best.choices:
        write_recomputed(best.exe.module_at(MACHINE), best.choices)
    return best


def _recorded(choices: Iterable[Chosen], module: ModuleOp) -> Iterator[Recomputed]:
    """The choices by name. A choice of an operation without a name is left out."""
    alike = by_name(module)
    order = {op: i for i, op in enumerate(operations(module))}

    def named(ops: Collection[Operation]) -> tuple[str, ...]:
        return tuple(name_of(op, alike) for op in sorted(ops, key=lambda op: order[op]))

    for each in choices:
        late, apart = named(each.asked.late), named(each.asked.apart)
        if all((*late, *apart)):
            yield Recomputed(late, apart, each.bytes, round(each.cycles))


def _pass(choices: Sequence[Recomputed]) -> Recompute:
    """The pass that makes all choices."""
    nodes = dict.fromkeys(name for each in choices for name in each.nodes)
    apart = dict.fromkeys(name for each in choices for name in each.apart)
    return Recompute(tuple(nodes), tuple(apart))
