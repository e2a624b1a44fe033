"""Compile a program that recomputes as much as a memory bound asks for.

The program is compiled as it is. If it takes more than the bound, the choice is made on the memory
over time that its plans give, and the program is compiled again with the choice, so that the
planner can use the memory. What the estimate leaves out, such as weights and code, is known from
each compile: the next choice is made for as many bytes more or fewer. Where the published schedule
could cost fewer cycles, it is compiled too, so the result is never worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.ir import Operation

from ....dialects.levels import NN
from ....ir.node_names import node_names
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import ModuleOp
from ....ir.xdsl.walk import operations
from ....passes.analysis.checkpoints import SQRT, between_checkpoints
from ....passes.narrow_stashes import STASH, NarrowStashes, Stash, StashType, is_wider
from ....passes.plans.fused import FusedGroups
from ....passes.recompute import Recompute, by_name, is_repeatable, name_of
from ..executable import MACHINE, Executable
from .choice import Candidates, Chosen, choose, one_by_one
from .memory_over_time import MemoryOverTime, memory_over_time
from .record import Recomputed, write_recomputed

ROUNDS = 4
"""The most compiles with own choices: each one takes as long as the first.

Measured on SqueezeNet, 8 images, mk2, auto:308960: 2,291,977 cycles with one, 2,285,696 with four.
"""


Changes: TypeAlias = tuple[Recompute | NarrowStashes, ...]
"""Passes that change what is kept, in order."""

Compile: TypeAlias = Callable[[Changes, int], Executable]
"""Compiles the program with passes, and with plans of so many bytes less, even if it does not fit.
"""


@dataclass(frozen=True)
class Result:
    """A program.

    Attributes:
        changes: the passes that make it; () if everything is kept.
        spare: by how many bytes its plans are smaller than those chosen first.
    """

    exe: Executable
    changes: Changes = ()
    choices: tuple[Recomputed, ...] = ()
    spare: int = 0

    @property
    def bytes(self) -> int:
        """The bytes of the fullest tile."""
        return self.exe.memory.max_tile_bytes

    @property
    def cycles(self) -> int:
        """The cycles of a run."""
        return int(self.exe.profile["cycles"])

    def or_better(self, other: Result, most: int) -> Result:
        """The faster one of two within a bound, or the one that comes closest to it."""
        return min(self, other, key=lambda each: (max(each.bytes, most), each.cycles))

    def leaner(self, most: int, compile_with: Compile) -> Result:
        """The same with smaller plans if it takes more than a bound, and there are such plans.

        The planner uses all memory that it estimates to be free, but a few bytes more may be taken,
        by gaps between variables and by copies.
        """
        lack = self.bytes - most
        if lack <= 0:
            return self
        try:
            exe = compile_with(self.changes, lack)
        except (DoesNotFit, InputError):
            return self
        return self.or_better(replace(self, exe=exe, spare=lack), most)


def within(bound: int | None, compile_with: Compile, kinds: Sequence[StashType] = ()) -> Result:
    """The fastest program found that takes no more than a bound, or the one that comes closest.

    Args:
        bound: bytes of a tile, with what the target reserves; None for all that it has.
        kinds: the types in which values may wait for the backward pass.
    """
    kept = Result(compile_with((), 0))
    most = kept.exe.target.bytes_per_tile if bound is None else bound
    best = _within(most, kept, compile_with, kinds)
    if kinds and best.bytes > most:
        # The estimate may have taken what saves less than it says.
        best = best.or_better(_within(most, kept, compile_with, ()), most)
    if best.choices:
        write_recomputed(best.exe.module_at(MACHINE), best.choices)
    return best


def _within(most: int, kept: Result, compile_with: Compile, kinds: Sequence[StashType]) -> Result:
    """As within, for a program that keeps everything."""
    best = kept
    choosing = _Choosing.of(kept.exe, kinds) if kept.bytes > most else None
    if choosing is None:
        return kept
    tried: list[tuple[Recomputed, ...]] = [()]
    room = choosing.memory.with_again().peak + most - kept.bytes
    for _ in range(ROUNDS):
        choices, peak = choosing.within(room)
        if choices in tried:
            break
        tried.append(choices)
        changes = _passes(choices)
        found = Result(compile_with(changes, 0), changes, choices)
        best = best.or_better(found.leaner(most, compile_with), most)
        if found.bytes > most >= best.bytes:
            break
        room = peak + most - found.bytes
    published = choosing.published()
    if best.bytes > most or sum(each.cycles for each in published) < best.cycles - kept.cycles:
        changes = (Recompute(schedule=SQRT),)
        best = best.or_better(Result(compile_with(changes, 0), changes, published), most)
    return best


@dataclass(frozen=True)
class _Choosing:
    """Choices of what a program computes again.

    Attributes:
        memory: of the program if it computes nothing again.
        names: the operations that can be computed again.
        schedule: those that the published schedule computes again.
        narrow: the name of each operation whose results may wait in narrower types.
        kinds: these types.
    """

    memory: MemoryOverTime
    names: dict[Operation, str]
    schedule: frozenset[Operation]
    narrow: dict[Operation, str]
    kinds: Sequence[StashType]

    @classmethod
    def of(cls, exe: Executable, kinds: Sequence[StashType]) -> _Choosing | None:
        """Choices for a program in which nothing is computed again; None if there are none."""
        module = _planned(exe)
        memory = None if module is None else memory_over_time(module, exe.target)
        if module is None or memory is None:
            return None
        alike = by_name(module)
        every = {op: name_of(op, alike) for op in operations(module) if is_repeatable(op)}
        names = {op: name for op, name in every.items() if name and not _is_of_stash(name)}
        schedule = frozenset(between_checkpoints(module)) & frozenset(names)
        return cls(memory, names, schedule, _narrow_names(memory) if kinds else {}, kinds)

    def within(self, room: int) -> tuple[tuple[Recomputed, ...], int]:
        """Choices after which the estimated peak is no higher, and that peak."""
        every = frozenset(self.names)
        narrow = {op: [k for k in self.kinds if is_wider(op, k)] for op in self.narrow}
        among = Candidates(every, every, narrow)
        found, after = choose(self.memory, max(room, 0), among, self.schedule)
        return self._recorded(found), after.peak

    def published(self) -> tuple[Recomputed, ...]:
        """The choices of the published schedule."""
        return self._recorded(one_by_one(self.memory, self.schedule))

    def _recorded(self, choices: Sequence[Chosen]) -> tuple[Recomputed, ...]:
        """Choices by name, each in the order of the program."""
        return tuple(
            Recomputed(
                self._names(each.asked.late),
                self._names(each.asked.apart),
                self._names(each.asked.anew),
                each.bytes,
                round(each.cycles),
                tuple(
                    str(Stash(kind, name))
                    for op, name in self.narrow.items()
                    for kind in self.kinds
                    if (op, kind) in each.asked.narrow
                ),
            )
            for each in choices
        )

    def _names(self, ops: frozenset[Operation]) -> tuple[str, ...]:
        return tuple(name for op, name in self.names.items() if op in ops)


def _planned(exe: Executable) -> ModuleOp | None:
    """A copy of a program at nn with plans, and groups as single operations; None if there is
    none."""
    kept = exe.stages.plans
    if kept is None or NN.name not in exe.levels:
        return None
    module = kept.module.clone()
    FusedGroups(module).fuse()
    return module


def _narrow_names(memory: MemoryOverTime) -> dict[Operation, str]:
    """The shortest name of each stash that no other stash has. Stashes without one are left out."""
    alike = Counter(name for op in memory.stashes for name in node_names(op))
    found: dict[Operation, str] = {}
    for op in memory.stashes:
        own = [name for name in node_names(op) if alike[name] == 1 and not _is_of_stash(name)]
        if own:
            found[op] = min(own, key=len)
    return found


def _is_of_stash(name: str) -> bool:
    """Whether a name is that of what keeps a stash narrow, which is not there yet when values are
    chosen that are computed again."""
    return name.endswith(f"/{STASH}")


def _passes(choices: Sequence[Recomputed]) -> Changes:
    """The passes that make all choices."""
    again = Recompute(
        _once(each.nodes for each in choices),
        _once(each.apart for each in choices),
        _once(each.anew for each in choices),
    )
    narrow = NarrowStashes(_once(each.narrow for each in choices))
    recomputes = bool(again.nodes or again.apart or again.anew)
    return (again,) * recomputes + (narrow,) * bool(narrow.stashes)


def _once(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All names, in order, without repeats."""
    return tuple(dict.fromkeys(name for some in names for name in some))
