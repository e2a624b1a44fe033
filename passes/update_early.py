"""Decide when states are updated: at the time at which the needed values take the fewest bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from ..dialects import nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..dialects.structured import Reinterpretation
from ..ir.edit import Edit, source_at
from ..ir.rewriting import may_rewrite
from ..ir.upstream import Context, ModuleOp, ModulePass
from ..ir.xdsl.walk import operations


@dataclass(frozen=True)
class UpdateEarly(ModulePass):
    """Move operations that only the update of one state needs to the earliest place, or to the end.

    nn -> nn, values unchanged. The gradient of a weight, and the operands of the gradient, then
    live until the weight is updated, and no longer. If these operands are smaller than the
    gradient, the update moves to the end instead, when other values are gone. The computation of a
    stored value stays behind all reads of the state's old value, so that it can overwrite it. A
    group of operations moves as one. If a state is stored to several times, the last store counts,
    so neither these stores move nor the operations that they read. All other operations stay in
    order.

        %g = nn.matmul %dy, %x transpose 1      %dx = nn.matmul %w, %dy transpose 1
        %dx = nn.matmul %w, %dy transpose 1     %g = nn.matmul %dy, %x transpose 1
        %dv = nn.matmul %dx, %z transpose 1     %new = nn.sub %w, %g
        %new = nn.sub %w, %g                    nn.store %new, @w
        nn.store %new, @w                       %dv = nn.matmul %dx, %z transpose 1
    """

    name = "update-early"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        stores = [each for each in operations(op) if isinstance(each, nn.StoreOp)]
        times = Counter(each.state.string_value() for each in stores)
        once = {each for each in stores if times[each.state.string_value()] == 1}
        for block in dict.fromkeys(each.parent for each in once):
            if block is not None and may_rewrite():
                _reorder(block, once)


@dataclass(eq=False)
class _Unit:
    """An operation, or the members of a group, which run at the place of the last member.

    Attributes:
        place: the index of the unit itself if it does not move; else the index of the staying unit
            that it will follow, -1 for the front of the block.
        update: the store whose update it belongs to; None if it stays.
    """

    members: tuple[Operation, ...]
    place: int
    update: int | None = None

    @property
    def last(self) -> Operation:
        """The operation whose results other units read."""
        return self.members[-1]


@dataclass
class _Units:
    """The units of a block in order, and the unit of each operation."""

    block: Block
    every: list[_Unit] = field(default_factory=list[_Unit])
    of: dict[Operation, _Unit] = field(default_factory=dict[Operation, _Unit])

    def __post_init__(self) -> None:
        groups = {g.members[-1]: g.members for g in nn.groups_of(self.block)}
        inner = {op for members in groups.values() for op in members[:-1]}
        for op in self.block.ops:
            if op not in inner:
                unit = _Unit(groups.get(op, (op,)), len(self.every))
                self.every.append(unit)
                self.of.update((each, unit) for each in unit.members)

    def read(self, unit: _Unit) -> Iterator[SSAValue]:
        """The values that a unit reads, in its regions too."""
        for op in unit.members:
            for each in operations(op) if op.regions else (op,):
                yield from each.operands

    def makers(self, unit: _Unit) -> Iterator[_Unit]:
        """The units that compute the values which a unit reads."""
        owners = (value.owner for value in self.read(unit))
        yield from (self.of[op] for op in owners if isinstance(op, Operation) and op in self.of)

    def readers(self, unit: _Unit) -> Iterator[_Unit]:
        """The units that read the values of a unit, in their regions too."""
        for value in unit.last.results:
            for use in value.uses:
                op: Operation | None = use.operation
                while op is not None and op not in self.of:
                    op = op.parent_op()
                if op is not None:
                    yield self.of[op]

    def readers_of_elements(self, unit: _Unit) -> Iterator[_Unit]:
        """The units that read the values of a unit, directly or through reshapes."""
        for each in self.readers(unit):
            if isinstance(each.last, Reinterpretation):
                yield from self.readers_of_elements(each)
            else:
                yield each

    def maker_of_elements(self, value: SSAValue) -> _Unit | None:
        """The unit that computes a value, looking through reshapes; None if it is not in the
        block."""
        while isinstance(value.owner, Reinterpretation) and isinstance(value.owner, Operation):
            value = value.owner.operands[0]
        return self.of.get(value.owner) if isinstance(value.owner, Operation) else None


def _reorder(block: Block, movable: Collection[Operation]) -> None:
    """Move the units that belong to updates.

    Args:
        movable: the stores that may move.
    """
    units = _Units(block)
    stay = _find_updates(units, movable)
    if not stay:
        return
    _find_places(units, stay[-1].place)
    moving = sorted((u for u in units.every if u.update is not None), key=lambda u: u.place)
    before = {op: op.prev_op for unit in moving for op in unit.members}
    for op in before:
        op.detach()
    # The last operation so far that was moved to follow each staying unit.
    behind: dict[int, Operation] = {}
    first = block.first_op
    assert first is not None
    for unit in moving:
        for op in unit.members:
            if unit.place < 0:
                block.insert_op_before(op, first)
            else:
                block.insert_op_after(op, behind.get(unit.place, units.every[unit.place].last))
                behind[unit.place] = op
    moved = [op for op, old in before.items() if op.prev_op is not old]
    if moved:
        with Edit(UPDATE, moved[0]) as edit:
            for op in moved:
                edit.modified(op)


def _find_updates(units: _Units, movable: Collection[Operation]) -> list[_Unit]:
    """Assign units to updates, and return the units that belong to none, which stay.

    A unit belongs to the update of a state if all its readers lead to the store of this state, or
    to stores of states from which the new value follows, such as a running mean of gradients.
    """
    reached: dict[_Unit, int] = {}
    stores: list[_Unit] = []
    for unit in reversed(units.every):
        readers = [*units.readers(unit)]
        if unit.last in movable:
            reached[unit] = 1 << len(stores)
            stores.append(unit)
        elif readers and all(each in reached for each in readers) and _only_computes(unit.last):
            reached[unit] = 0
            for each in readers:
                reached[unit] |= reached[each]
    family = [1 << i for i in range(len(stores))]
    for i, store in enumerate(stores):
        for maker in units.makers(store):
            for j in _bits(reached.get(maker, 0)):
                family[j] |= 1 << i
    widest = sorted(range(len(stores)), key=lambda j: -family[j].bit_count())
    update = {
        found: next((j for j in widest if not found & ~family[j]), None)
        for found in dict.fromkeys(reached.values())
    }
    for unit, found in reached.items():
        unit.update = update[found]
    return [unit for unit in units.every if unit.update is None and not _ends(unit.last)]


def _only_computes(op: Operation) -> bool:
    return isinstance(op, nn.LoadOp) or op.has_trait(Pure)


def _ends(op: Operation) -> bool:
    """Whether an operation ends its block."""
    return op.next_op is None


def _bits(number: int) -> Iterator[int]:
    """The indices of the set bits of a number."""
    return (i for i in range(number.bit_length()) if number >> i & 1)


def _find_places(units: _Units, end: int) -> None:
    """Choose the staying unit that each moving unit will follow.

    Args:
        end: the index of the last staying unit.
    """
    late = _late(units)
    behind: dict[_Unit, list[_Unit]] = {}
    loads: dict[str, list[_Unit]] = {}
    for unit in units.every:
        if unit.update is not None:
            behind[unit] = [*units.makers(unit)]
            unit.place = end if unit.update in late else -1
        if isinstance(unit.last, nn.LoadOp):
            loads.setdefault(unit.last.state.string_value(), []).append(unit)
    for unit in units.every:
        if unit.update is not None and isinstance(unit.last, nn.StoreOp):
            maker = units.maker_of_elements(unit.last.stored)
            later = maker if maker in behind else unit
            for load in loads.get(unit.last.state.string_value(), ()):
                readers = units.readers_of_elements(load)
                # The operation that ends the block may return the old value; the store need not
                # follow it.
                behind[later] += [each for each in readers if not _ends(each.last)]
    _push_behind(units, behind)
    for i, unit in reversed([*enumerate(units.every)]):
        if unit.update is None or isinstance(unit.last, nn.StoreOp):
            continue
        # Compute a value no earlier than its first reader needs it.
        unit.place = min(each.place for each in units.readers(unit))
        if isinstance(unit.last, nn.LoadOp) and i <= unit.place:
            # A load costs nothing, so it stays where it is unless it must come earlier.
            unit.update, unit.place = None, i


def _push_behind(units: _Units, behind: Mapping[_Unit, Sequence[_Unit]]) -> None:
    """Move each unit behind all units in `behind[unit]`.

    The latest places are handed on first, so each unit is visited once.
    """
    after: dict[_Unit, list[_Unit]] = {}
    for unit, earlier in behind.items():
        for each in earlier:
            after.setdefault(each, []).append(unit)
    visited: set[_Unit] = set()
    for last in sorted(units.every, key=lambda each: -each.place):
        place, waiting = last.place, [last]
        while waiting:
            unit = waiting.pop()
            if unit not in visited:
                visited.add(unit)
                unit.place = place
                waiting += after.get(unit, ())


def _late(units: _Units) -> set[int]:
    """The updates whose largest value is larger than all values together that they read, except
    states.
    """
    read: dict[int, set[SSAValue]] = {}
    largest: dict[int, int] = {}
    for unit in units.every:
        if unit.update is None or isinstance(unit.last, nn.LoadOp):
            continue
        given = read.setdefault(unit.update, set())
        for value in units.read(unit):
            maker = units.maker_of_elements(value)
            if maker is None or (
                maker.update != unit.update
                and not isinstance(maker.last, nn.LoadOp | nn.ConstantOp)
            ):
                given.add(value)
        made = max(map(_bytes, unit.last.results), default=0)
        largest[unit.update] = max(largest.get(unit.update, 0), made)
    return {each for each, size in largest.items() if sum(map(_bytes, read[each])) < size}


def _bytes(value: SSAValue) -> int:
    return prod(nn.shape_of(value)) * numpy_dtype(nn.element_of(value)).itemsize


UPDATE = source_at("move updates", UpdateEarly.apply)
