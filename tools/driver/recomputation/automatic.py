"""Compile a program that recomputes as much as a memory bound asks for.

The program is compiled as it is. If it takes more than the bound, the choice is made on the memory
over time that its plans give, and the program is compiled again with the choice, so that the
planner can use the memory. If it still takes too much, more is chosen in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ....dialects.levels import NN
from ....ir.node_names import node_names
from ....ir.upstream import ModuleOp
from ....ir.xdsl.walk import operations
from ....passes.plans.fused import FusedGroups
from ....passes.recompute import Recompute, by_name, is_repeatable, name_of
from ..executable import MACHINE, Executable
from .choice import Candidates, Chosen, choose
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
    names = _Names.of(exe)
    choices: tuple[Recomputed, ...] = ()
    for _ in range(ROUNDS):
        over = exe.memory.max_tile_bytes - most
        more = names.chosen(exe, over, choices) if over > 0 else ()
        if not more:
            break
        choices = (*choices, *more)
        again = _pass(choices)
        exe = compile_with(again)
        if exe.memory.max_tile_bytes < best.exe.memory.max_tile_bytes:
            best = Result(exe, again, choices)
    if best.choices:
        write_recomputed(best.exe.module_at(MACHINE), best.choices)
    return best


@dataclass(frozen=True)
class _Names:
    """The names of the operations of a program, before any of them has a copy.

    Attributes:
        by_key: the names of all operations with the same origins, in order.
    """

    by_key: dict[tuple[str, ...], list[str]]

    @classmethod
    def of(cls, exe: Executable) -> _Names:
        """The names in a program in which nothing is computed again."""
        module = _planned(exe)
        found: dict[tuple[str, ...], list[str]] = {}
        if module is not None:
            alike = by_name(module)
            for op in filter(is_repeatable, operations(module)):
                found.setdefault(node_names(op), []).append(name_of(op, alike))
        return cls(found)

    def in_module(self, module: ModuleOp) -> dict[Operation, str]:
        """The names of the operations of a module that are no copies, as far as that is known.

        A copy follows its original, so the only operation of its origins comes first.
        """
        every: dict[tuple[str, ...], list[Operation]] = {}
        for op in filter(is_repeatable, operations(module)):
            every.setdefault(node_names(op), []).append(op)
        return {
            op: name
            for key, ops in every.items()
            if (own := self.by_key.get(key, ())) and (len(own) == 1 or len(own) == len(ops))
            for op, name in zip(ops, own, strict=False)
            if name
        }

    def chosen(
        self, exe: Executable, over: int, before: Sequence[Recomputed]
    ) -> tuple[Recomputed, ...]:
        """What else to compute again, so that the fullest tile takes fewer bytes.

        Args:
            over: how many fewer.
            before: what a program computes again.
        """
        module = _planned(exe)
        memory = None if module is None else memory_over_time(module, exe.target)
        if module is None or memory is None:
            return ()
        named = self.in_module(module)
        done = {name for each in before for name in (*each.nodes, *each.apart)}
        peak = memory.with_again(Asked()).peak
        free = frozenset(op for op, name in named.items() if name not in done)
        found, _ = choose(memory, max(peak - over, 0), Candidates(free, frozenset(named)))
        return tuple(_recorded(each, named) for each in found)


def _planned(exe: Executable) -> ModuleOp | None:
    """A copy of a program at nn with plans, and groups as single operations; None if there is
    none."""
    kept = exe.stages.plans
    if kept is None or NN.name not in exe.levels:
        return None
    module = kept.module.clone()
    FusedGroups(module).fuse()
    return module


def _recorded(each: Chosen, named: Mapping[Operation, str]) -> Recomputed:
    """A choice by name, in the order of the program."""
    late, apart = (
        tuple(name for op, name in named.items() if op in ops)
        for ops in (each.asked.late, each.asked.apart)
    )
    return Recomputed(late, apart, each.bytes, round(each.cycles))


def _pass(choices: Sequence[Recomputed]) -> Recompute:
    """The pass that makes all choices."""
    nodes = dict.fromkeys(name for each in choices for name in each.nodes)
    apart = dict.fromkeys(name for each in choices for name in each.apart)
    return Recompute(tuple(nodes), tuple(apart))
