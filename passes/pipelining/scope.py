"""The operations of one micro-batch, each in its stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import control, nn
from ...dialects.structured import Movement, Reinterpretation
from ...ir.edit import Edit
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import InsertPoint
from ..gradients.way import read_by
from .stages import operations_of, set_stage, stage_of


@dataclass
class Scope:
    """The operations of one micro-batch: the body of a loop, or the body of a function.

    Attributes:
        block: the operations.
        carried: the values that a loop carries from one micro-batch to the next.
        yielded: what each of these becomes.
        stages: the stage of each operation.
        made: the stage that makes each value; of a carried value, the one that gives it its next
            value.
    """

    block: Block
    carried: tuple[SSAValue, ...] = ()
    yielded: tuple[SSAValue, ...] = ()
    stages: dict[Operation, int] = field(default_factory=dict[Operation, int])
    made: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    @classmethod
    def of_loop(cls, loop: control.RepeatOp) -> Scope:
        """The scope of a loop over micro-batches."""
        block, last = loop.body.block, loop.body.block.last_op
        assert isinstance(last, control.YieldOp)
        return cls(block, tuple(block.args[: len(loop.initial)]), tuple(last.values))

    @cached_property
    def places(self) -> dict[SSAValue, int]:
        """The index of each carried value."""
        return {value: i for i, value in enumerate(self.carried)}

    @property
    def ops(self) -> list[Operation]:
        """All operations that get a stage."""
        return [op for op in operations_of(self.block) if not isinstance(op, _EVERYWHERE)]

    def rootless(self) -> dict[Operation, bool]:
        """The operations without a stage to which no operation with a stage leads; each with
        whether it depends on a carried value."""
        found: dict[Operation, bool] = {}
        for op in self.ops:
            if stage_of(op) is not None:
                continue
            makers = [self._maker(value) for value in read_by(op)]
            if all(maker is None or maker in found for maker in makers):
                found[op] = any(value in self.places for value in read_by(op)) or any(
                    found[maker] for maker in makers if maker is not None
                )
        return found

    def _maker(self, value: SSAValue) -> Operation | None:
        """The operation of the scope that makes a value; None if the value comes from elsewhere."""
        owner = value.owner
        if not isinstance(owner, Operation) or isinstance(owner, _EVERYWHERE):
            return None
        return owner if owner.parent is self.block else None

    def floating(self) -> set[Operation]:
        """The operations without a stage that belong wherever they are read: those that look rows
        of the batch up, and those that depend on carried values alone."""
        found: set[Operation] = set()
        rows: set[Operation] = set()
        numbers = {*self.block.args} - {*self.carried}
        for op, is_carried in self.rootless().items():
            makers = [self._maker(value) for value in read_by(op)]
            if any(maker is not None and maker not in found for maker in makers):
                continue
            reads_rows = any(v in numbers for v in read_by(op)) or any(m in rows for m in makers)
            if isinstance(op, LOOKUPS) or (is_carried and not reads_rows):
                found.add(op)
            if reads_rows:
                rows.add(op)
        return found

    def readers(self) -> dict[SSAValue, list[Operation]]:
        """The operations that read each value, without the end of the block."""
        found: dict[SSAValue, list[Operation]] = {}
        for op in self.ops:
            for value in dict.fromkeys(read_by(op)):
                found.setdefault(value, []).append(op)
        return found

    def complete(self) -> None:
        """Find the stage of each operation.

        Operations keep the stages that attributes say. Every other one is in the first stage that
        has all its operands; if it depends on no operation of the micro-batch, in the first stage
        that needs it.

        Raises InputError for a value that is read in an earlier stage than it is made in.
        """
        own = {op: stage for op in self.ops if (stage := stage_of(op)) is not None}
        rootless, readers = self.rootless(), self.readers()
        for op in self.ops:
            if op not in own and op not in rootless:
                makers = filter(None, map(self._maker, read_by(op)))
                own[op] = max((own[maker] for maker in makers if maker in own), default=0)
        place_of = {value: i for i, value in enumerate(self.yielded)}
        for op in reversed(rootless):
            if op in own:
                continue
            values = [*op.results]
            # What a carried value becomes is known before another micro-batch needs it.
            values += [
                self.carried[place_of[v]] for v in op.results if v in place_of and self.carried
            ]
            near = [own[each] for v in values for each in readers.get(v, ()) if each in own]
            own[op] = min(near, default=0)
        self.stages = own
        self.made = {value: stage for op, stage in own.items() for value in op.results}
        self.made.update(zip(self.carried, self._homes(readers), strict=True))
        self._check(readers)

    def _homes(self, readers: Mapping[SSAValue, Sequence[Operation]]) -> list[int]:
        """For each carried value, the stage that gives it its next value.

        Values that only move from one place to another, or come from outside, all belong to the
        first stage that reads one of them.
        """
        makers = [self._maker(self._followed(value)) for value in self.yielded]
        idle = [v for v, made in zip(self.carried, makers, strict=True) if made is None]
        near = [self.stages[op] for value in idle for op in readers.get(value, ())]
        return [min(near, default=0) if made is None else self.stages[made] for made in makers]

    def _followed(self, value: SSAValue) -> SSAValue:
        """The value that a carried value is given at last, through others that are carried."""
        seen: set[SSAValue] = set()
        while value in self.places and value not in seen:
            seen.add(value)
            value = self.yielded[self.places[value]]
        return value

    def _check(self, readers: Mapping[SSAValue, Sequence[Operation]]) -> None:
        """Raise InputError if a value flows to an earlier stage."""
        homes = {value: self.made[value] for value in self.carried}
        for op, stage in self.stages.items():
            for value in read_by(op):
                maker = self._maker(value)
                if maker is not None and self.stages[maker] > stage:
                    raise InputError(
                        f"{op.name} at {place(op)}: in stage {stage}, but reads what {maker.name} "
                        f"at {place(maker)} makes in stage {self.stages[maker]}; values only flow "
                        "to later stages"
                    )
                if value in homes and homes[value] > stage:
                    raise InputError(
                        f"{op.name} at {place(op)}: stage {stage} reads a value that stage "
                        f"{homes[value]} gives to the next micro-batch, which begins before; put "
                        "both into one stage"
                    )

    @property
    def number(self) -> int:
        """The number of stages."""
        return max(self.stages.values(), default=0) + 1

    def recompute(self, forward: int, backward: int, edit: Edit) -> None:
        """Let a backward stage compute the values of its forward stage again, from what that stage
        reads."""
        readers, own = self.readers(), self.stages
        needed: dict[Operation, list[Operation]] = {}
        for op in self.ops:
            late = [
                each for v in op.results for each in readers.get(v, ()) if own[each] == backward
            ]
            if own[op] == forward and late:
                needed[op] = late
        again = set(needed)
        for op in reversed(self.ops):
            if op in again:
                makers = map(self._maker, read_by(op))
                again.update(each for each in makers if each is not None and own[each] == forward)
        first = next((op for op in self.ops if own[op] == backward), None)
        if first is None:
            return
        new: dict[SSAValue, SSAValue] = {}
        for op in [op for op in self.ops if op in again]:
            copy = op.clone(dict(new))
            copy.location = op.location
            set_stage(copy, backward)
            edit.insert(copy, InsertPoint.before(first))
            self.stages[copy] = backward
            new.update(zip(op.results, copy.results, strict=True))
        self.made.update((value, backward) for value in new.values())
        for each in dict.fromkeys(each for late in needed.values() for each in late):
            replace_reads(each, new)

    def repeat_lookups(self, edit: Edit) -> None:
        """Let each stage that reads a row of the batch look it up again, instead of keeping it."""
        readers = self.readers()
        light = [
            op
            for op, is_carried in self.rootless().items()
            if not is_carried and isinstance(op, LOOKUPS)
        ]
        for op in reversed(light):
            stages = {self.stages[each] for v in op.results for each in readers.get(v, ())}
            for stage in sorted(stages - {self.stages[op]}):
                copy = op.clone()
                copy.location = op.location
                set_stage(copy, stage)
                edit.insert(copy, InsertPoint.after(op))
                self.stages[copy] = stage
                for value in dict.fromkeys(read_by(copy)):
                    readers.setdefault(value, []).append(copy)
                for old, new in zip(op.results, copy.results, strict=True):
                    self.made[new] = stage
                    for reader in readers.get(old, ()):
                        if self.stages[reader] == stage:
                            replace_reads(reader, {old: new})


LOOKUPS = Reinterpretation | Movement | nn.GatherOp
"""Operations that find the row of a micro-batch in a batch. They are cheap, so that each stage has
its own."""

_EVERYWHERE = nn.ConstantOp | nn.LoadOp | nn.StoreOp
"""Operations that belong to no stage: each function that needs such a value has its own."""


def replace_reads(op: Operation, values: Mapping[SSAValue, SSAValue]) -> None:
    """Let an operation, and those in its regions, read other values."""
    for each in op.walk():
        for i, value in enumerate(each.operands):
            if value in values:
                each.operands[i] = values[value]
