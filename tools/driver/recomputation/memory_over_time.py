"""The memory of the fullest tile over time, with some values computed again instead of kept.

It is estimated from the plans of one compile: layouts give the bytes of every value, and prices the
cycles of every operation. So a choice is tried in milliseconds, without planning or lowering. The
rules are those of the pass `recompute`; a test compares its copies with these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....backends.prices import cost
from ....backends.target import Target
from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ....dialects.structured import Reinterpretation, Structured
from ....ir.upstream import ModuleOp
from ....ir.well_known import ENTRY
from ....passes.analysis.waiting import Moments, moments
from ....passes.narrow_stashes import StashOf, StashType, stashes_of
from ....passes.planner.limits import Limits
from ....passes.planner.memory_of_function import MemoryOfFunction, memory_of
from ....passes.recompute import is_repeatable

Bytes = NDArray[np.int64]

SMALL = 8
"""A value is computed again from values that are smaller by this factor; those then live on."""


@dataclass(frozen=True)
class Value:
    """The results of an operation in memory.

    Attributes:
        lives: for each result, its first and last moment and its bytes on a tile.
        readers: the index in the block of each operation that reads a result, in order.
    """

    lives: tuple[tuple[int, int, int], ...]
    readers: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The bytes of all results."""
        return sum(size for _, _, size in self.lives)


@dataclass(frozen=True)
class SharedCopy:
    """A copy of a value in another layout, which several operations read.

    Attributes:
        readers: the index in the block of each of them, in order.
        bytes: what it takes on a tile.
        cycles: what making it again costs.
    """

    readers: tuple[int, ...]
    bytes: int
    cycles: float


@dataclass(frozen=True)
class Asked:
    """What is not kept.

    Attributes:
        late: operations that are copied after long waits.
        apart: operations that are copied for each reader.
        anew: operations before which operands that waited are laid out anew.
        narrow: operations whose results wait in a narrower type, each with the type.
    """

    late: frozenset[Operation] = frozenset()
    apart: frozenset[Operation] = frozenset()
    anew: frozenset[Operation] = frozenset()
    narrow: frozenset[tuple[Operation, StashType]] = frozenset()

    def __or__(self, other: Asked) -> Asked:
        return Asked(
            self.late | other.late,
            self.apart | other.apart,
            self.anew | other.anew,
            self.narrow | other.narrow,
        )

    @property
    def gives_up(self) -> frozenset[Operation]:
        """The operations whose results do not wait as they are."""
        return self.late | self.apart | frozenset(op for op, _ in self.narrow)


NOTHING = Asked()


@dataclass(frozen=True, eq=False)
class Estimate:
    """The memory over time, and what it costs.

    Attributes:
        live: bytes at each moment of the function, with what the operation of the moment takes.
        cycles: of all copies, of operations and in other layouts.
        copies: each operation that is copied, with the index before which its copy runs.
        is_legal: whether no copy reads a large state after it has changed.
    """

    live: Bytes
    cycles: float
    copies: tuple[tuple[Operation, int], ...]
    is_legal: bool

    @property
    def peak(self) -> int:
        """The most bytes at any moment."""
        return int(self.live.max(initial=0))


@dataclass
class MemoryOverTime:
    """The memory of the entry function, and the operations of one block that could be repeated.

    Attributes:
        when: the moments of the block in which most bytes are live.
        values: what the operations of this block leave in memory.
        cycles, own: cycles and temporary bytes of each operation of this block.
        live: bytes of all values, and of their copies in other layouts, at each moment, if nothing
            is computed again.
        temporary: bytes that the operation of each moment takes beside its results' readers.
        at: the moment of each index of the block.
        stores: for each state that the block stores to, the index of the first store.
        relaid: the shared copies of what an operation of this block leaves in memory.
        stashes: the operations of this block that keep values for the backward pass, each with the
            indices that read them there, and whether an operation there can also compute casts.
        target: whose prices narrowing has.
    """

    when: Moments
    values: dict[SSAValue | Operation, Value]
    cycles: dict[Operation, float]
    own: dict[Operation, int]
    live: Bytes
    temporary: Bytes
    at: tuple[int, ...]
    stores: dict[str, int] = field(default_factory=dict[str, int])
    relaid: Mapping[SSAValue | Operation, Sequence[SharedCopy]] = field(
        default_factory=dict[SSAValue | Operation, Sequence[SharedCopy]]
    )
    stashes: Mapping[Operation, Mapping[int, bool]] = field(
        default_factory=dict[Operation, Mapping[int, bool]]
    )
    target: Target | None = None

    @property
    def candidates(self) -> Iterator[Operation]:
        """The operations that can be repeated, in order."""
        return (op for op in self.when.ops if op in self.cycles and is_repeatable(op))

    def with_again(self, asked: Asked = NOTHING) -> Estimate:
        """The memory over time if some operations are repeated."""
        live, temporary = self.live.copy(), self.temporary.copy()
        late: dict[SSAValue | Operation, list[int]] = {}
        copies: list[tuple[Operation, int]] = []
        cycles = 0.0
        index = self.when.index
        for op in sorted(asked.late | asked.apart, key=lambda op: index[op], reverse=True):
            value, more = self.values[op], sorted(late.pop(op, ()))
            own = self.own[op]
            if op in asked.apart:
                # Each reader computes it, so that it is never stored, and its operands live on.
                self._end(live, value)
                temporary[self.at[self.when.index[op]]] = 0
                own = max(own - value.bytes, 0)
                places = [*dict.fromkeys(value.readers)]
                stays: list[list[int]] = [[place] for place in (*places, *more)]
                cycles -= self.cycles[op]
                self._part(live, op, stays)
            else:
                first, *stays = self._stays(value.readers, more)
                self._cut(live, value, first)
                cycles += self._part(live, op, [first, *stays])
            for stay in stays:
                moment, last = self.at[stay[0]], self.at[stay[-1]]
                temporary[moment] = max(temporary[moment], own)
                if op not in asked.apart:
                    live[moment : last + 1] += value.bytes
                copies.append((op, stay[0]))
                cycles += self.cycles[op]
                for source in sources(op):
                    late.setdefault(source, []).append(stay[0])
        for op, kind in asked.narrow:
            cycles += self._narrow(live, op, kind, late.pop(op, ()))
        for source, places in late.items():
            if source in self.values:
                last = self.at[max(places)]
                for _, end, size in self.values[source].lives:
                    live[end + 1 : last + 1] += size
        named = {index[op] for op in asked.anew}
        laid = dict.fromkeys([*late, *(s for op in asked.anew for s in operands(op))])
        for source in laid:
            if source in self.relaid and source not in asked.gives_up:
                readers = [each.at for v in _values_of(source) for each in self.when.readers(v)]
                stays = self._stays(readers, late.get(source, ()))
                if source not in late:
                    stays = _joined(stays, named)
                cycles += self._part(live, source, stays)
        changed = [*copies, *((op, index[op]) for op in asked.anew)]
        return Estimate(live + temporary, cycles, tuple(copies), self._is_legal(changed))

    def _narrow(self, live: Bytes, op: Operation, kind: StashType, more: Collection[int]) -> float:
        """Let the results of an operation wait in a narrower type.

        A late reader that computes together with the cast needs no wide value in memory.

        Args:
            more: copies that read them too.

        Returns: the cycles of making them narrow, and wide for each late reader.
        """
        joins = {**self.stashes[op], **dict.fromkeys(more, False)}
        early = [at for at in self.values[op].readers if at not in joins]
        self._cut(live, self.values[op], early)
        cycles = self._part(live, op, [early, *([at] for at in joins)])
        made, last = self.at[self.when.index[op]], self.at[max(joins)]
        apart = sorted({self.at[at] for at, is_joined in joins.items() if not is_joined})
        for value, (_, _, size) in zip(op.results, self.values[op].lives, strict=False):
            wide = numpy_dtype(nn.element_of(value)).itemsize
            live[made : last + 1] += size * kind.format.bits // (8 * wide)
            live[apart] += size
            cycles += self._conversions(kind, size // wide, joins.values())
        return cycles

    def _conversions(self, kind: StashType, elements: int, joins: Iterable[bool]) -> float:
        """About the cycles of making some elements of a tile narrow, and wide for each reader.

        Args:
            joins: for each reader, whether it computes together with the cast.
        """
        if self.target is None:
            return 0.0
        codes = kind.format.numpy_dtype is None
        target, scale = self.target, ("scale",) if kind.scale else ()

        def following(*names: str) -> float:
            found = (cost.following_cycles(elements, 1, name, "float32", target) for name in names)
            return sum(map(float, found))

        alone = float(cost.elementwise_cycles(elements, 1, "cast", "float32", target))
        alone += target.exchange.sync_cycles
        back = following(*(("from_code",) if codes else ()), *scale)
        cycles = alone + following("to_code" if codes else "clip", *scale)
        return cycles + sum(back + (following("cast") if each else alone) for each in joins)

    def _stays(self, readers: Collection[int], more: Collection[int]) -> list[list[int]]:
        """The readers of an operation, cut at each long wait.

        Args:
            more: copies that read it too.
        """
        every = sorted([(at, False) for at in readers] + [(at, True) for at in more])
        places = [at for at, _ in every]
        ends = self.when.ends(places, [hasty for _, hasty in every])
        return [places[a:b] for a, b in pairwise((0, *ends))] or [[]]

    def _cut(self, live: Bytes, value: Value, stay: Collection[int]) -> None:
        """End the life of a value with the last reader of its first stay."""
        last = self.at[max(stay)] if stay else -1
        for start, end, size in value.lives:
            live[max(last, start) + 1 : end + 1] -= size
            # A copy may read the value later than any reader did.
            live[end + 1 : last + 1] += size

    def _end(self, live: Bytes, value: Value) -> None:
        """End the life of a value before it begins."""
        for start, end, size in value.lives:
            live[start : end + 1] -= size

    def _part(
        self, live: Bytes, source: SSAValue | Operation, stays: Sequence[Collection[int]]
    ) -> float:
        """Let each stay of a value's readers have own copies of it in other layouts.

        Returns: the cycles of making them.
        """
        cycles = 0.0
        for copy in self.relaid.get(source, ()):
            _keep_between(live, self.at, copy.readers, -copy.bytes)
            parts = [[r for r in copy.readers if r in stay] for stay in stays]
            for part in parts:
                _keep_between(live, self.at, part, copy.bytes)
            cycles += copy.cycles * max(sum(map(bool, parts)) - 1, 0)
        return cycles

    def next_readers(self, moment: int) -> Iterator[tuple[Operation, SharedCopy]]:
        """The shared copies that wait at a moment, each with the operation for which it waits."""
        for each in (copy for copies in self.relaid.values() for copy in copies):
            at = [self.at[i] for i in each.readers]
            if at[0] < moment < at[-1] and moment not in at:
                following = next(i for i in each.readers if self.at[i] > moment)
                yield self.when.ops[following], each

    def _is_legal(self, copies: Collection[tuple[Operation, int]]) -> bool:
        """Whether no copy reads the old value of a state that has changed, unless it is small."""
        return all(
            self.stores.get(source.state.string_value(), place) >= place
            or SMALL * bytes_once(source.result) <= sum(map(bytes_once, op.results))
            for op, place in copies
            for source in sources(op)
            if isinstance(source, nn.LoadOp)
        )

    def waiting(self, moment: int) -> Iterator[Operation]:
        """The operations whose results are live or made at a moment, largest first."""
        found = [op for op in self.candidates if self._lives(op, moment)]
        yield from sorted(found, key=lambda op: -self.values[op].bytes)

    def waits_at(self, op: Operation, moment: int) -> bool:
        """Whether results of a stash are live at a moment that is not one of its readers."""
        return self._lives(op, moment) and moment not in {self.at[i] for i in self.stashes[op]}

    def _lives(self, op: Operation, moment: int) -> bool:
        made = self.at[self.when.index[op]]
        return any(made <= moment <= b for _, b, _ in self.values[op].lives)

    def lives_at(self, source: SSAValue | Operation, index: int) -> bool:
        """Whether a value exists at an index of the block anyway."""
        if isinstance(source, nn.LoadOp | nn.ConstantOp) or source not in self.values:
            return True
        return any(end >= self.at[index] for _, end, _ in self.values[source].lives)

    def late(self, op: Operation) -> list[int]:
        """The indices before which an operation would be copied on its own."""
        return [stay[0] for stay in self._stays(self.values[op].readers, ())[1:]]


def memory_over_time(module: ModuleOp, target: Target) -> MemoryOverTime | None:
    """The memory of a planned program; None if no operation of it can be repeated.

    Args:
        module: at nn, with a plan on every operator and groups as single operations.
    """
    memory = memory_of(module, target, Limits(), ENTRY)
    if not len(memory.live):
        return None
    block = _fullest_block(memory)
    if block is None:
        return None
    stashes = {
        each.op: _late_readers(each)
        for each in stashes_of(module)
        if each.op.parent is block and each.op in memory.moments
    }
    return _of_block(memory, block, stashes, target)


def _late_readers(stash: StashOf) -> dict[int, bool]:
    """The indices that read a stash late, and whether the operation there can compute casts."""
    found: dict[int, bool] = {}
    for each in (r for readers in stash.readers.values() for r in readers):
        op = each.use.operation
        joins = isinstance(op, Structured) and op.structure().reads_in_place(each.use.index)
        found[each.at] = found.get(each.at, True) and joins
    return found


def _fullest_block(memory: MemoryOfFunction) -> Block | None:
    """The block that runs when most bytes are live."""
    fullest = int(np.argmax(memory.live + memory.temporary))
    before = [op for op, moment in memory.moments.items() if moment <= fullest]
    return max(before, key=lambda op: memory.moments[op]).parent if before else None


def _of_block(
    memory: MemoryOfFunction,
    block: Block,
    stashes: Mapping[Operation, Mapping[int, bool]],
    target: Target,
) -> MemoryOverTime:
    when = moments(block)
    following = len(memory.live) - 1
    at: list[int] = []
    for op in reversed(when.ops):
        following = memory.moments.get(op, following)
        at.append(following)
    at.reverse()
    values: dict[SSAValue | Operation, Value] = {}
    for owner in (*block.args, *when.ops):
        lives = tuple(memory.lives[v] for v in _values_of(owner) if v in memory.lives)
        if lives:
            readers = sorted(r.at for v in _values_of(owner) for r in when.readers_in_any_shape(v))
            values[owner] = Value(lives, tuple(readers))
    inside = {op for op in memory.moments if op.parent is block and op in values}
    relaid: dict[SSAValue | Operation, list[SharedCopy]] = {}
    live = memory.live.copy()
    for each in memory.relaid:
        if all(op.parent is block for op in each.readers):
            readers = tuple(sorted(when.index[op] for op in each.readers))
            copy = SharedCopy(readers, each.bytes, each.cycles)
            owner = each.value.owner
            source = owner if isinstance(owner, Operation) else each.value
            relaid.setdefault(source, []).append(copy)
            _keep_between(live, at, readers, copy.bytes)
    stores: dict[str, int] = {}
    for i, op in enumerate(when.ops):
        if isinstance(op, nn.StoreOp):
            stores.setdefault(op.state.string_value(), i)
    return MemoryOverTime(
        when,
        values,
        {op: memory.cycles[op] for op in inside},
        {op: memory.own[op] for op in inside},
        live,
        memory.temporary,
        tuple(at),
        stores,
        relaid,
        stashes,
        target,
    )


def _keep_between(live: Bytes, at: Sequence[int], readers: Iterable[int], size: int) -> None:
    """Add the bytes of a copy between the first and the last of its readers.

    At the moments of the readers, the copy counts as theirs.
    """
    for first, last in pairwise(at[i] for i in readers):
        live[first + 1 : last] += size


def _joined(stays: Iterable[list[int]], places: AbstractSet[int]) -> list[list[int]]:
    """Stays, each joined with the one before it unless it has one of some places."""
    found: list[list[int]] = []
    for stay in stays:
        if found and places.isdisjoint(stay):
            found[-1] += stay
        else:
            found.append(stay)
    return found


def _values_of(source: SSAValue | Operation) -> Sequence[SSAValue]:
    """The values that an operation makes, or the value itself."""
    return (source,) if isinstance(source, SSAValue) else source.results


def bytes_once(value: SSAValue) -> int:
    """The bytes of all elements of a value, without replicas."""
    return prod(nn.shape_of(value)) * numpy_dtype(nn.element_of(value)).itemsize


def operands(op: Operation) -> Iterator[SSAValue | Operation]:
    """What makes each operand of an operation."""
    for value in op.operands:
        yield value.op if isinstance(value, OpResult) else value


def sources(op: Operation) -> Iterator[SSAValue | Operation]:
    """What makes each operand of an operation, looking through reshapes."""
    for value in op.operands:
        while isinstance(value, OpResult) and isinstance(value.op, Reinterpretation):
            (value,) = value.op.operands
        yield value.op if isinstance(value, OpResult) else value
