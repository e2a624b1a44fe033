"""Turns a loop over micro-batches into a pipeline of calls.

Each stage becomes a function. A cycle calls the functions of all stages that work in it; what they
read was made in earlier cycles, so that stages on different chips can work at the same time. What
one stage makes for another one is handed on at the end of a cycle. If a stage reads it only after
the next micro-batch has overwritten it, it also goes into a *stash* on the chip of its readers: a
table whose rows are used in turn.

    %1 = control.repeat 4 (%0) {       %a, %n = func.call @stage0(%0, ...)      fill
      stage 0                          %2:3 = control.repeat 3 (%a, %n, ...) {  all stages work
      stage 1                            func.call @stage0(...)
    }                                    func.call @stage1(...)
                                       }
                                       func.call @stage1(...)                   flush
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import control, nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.placement import Placement
from ...ir.blob import Blob
from ...ir.edit import Edit
from ...ir.geometry.pipeline import Pipeline
from ...ir.support.unused_names import UnusedNames
from ..gradients.emit import Emitter
from ..gradients.iteration_rows import row_of, with_row
from ..gradients.way import read_by
from .outline import STEP, Outline
from .scope import Scope


@dataclass(frozen=True)
class Kept:
    """Something that a pipeline keeps from one cycle to the next.

    Attributes:
        kind: "carried", a value that the loop carried; "latest", the latest value for readers on a
            chip; "stash", older ones; "count", how often a function has been called.
        value: what is kept; None for a count.
        chip: where it lies.
        stage: whose count it is.
        slots: of the stashes in whose slots the count goes round; 0 for a count without end.
    """

    kind: str
    value: SSAValue | None
    chip: int
    stage: int = 0
    slots: int = 0


Read = Kept | SSAValue


@dataclass(frozen=True)
class Step:
    """One call of a function in each row, or, without a function, something that is renamed.

    Attributes:
        offset: the cycles between the beginning of a micro-batch and the call.
        reads: the operands of the call.
        writes: for each result, what it becomes.
    """

    offset: int
    function: str
    reads: tuple[Read, ...]
    writes: tuple[tuple[Kept, ...], ...]


Cycle = Sequence[Step]


@dataclass
class PipelinedLoop:
    """A loop over micro-batches, while it becomes a pipeline.

    Attributes:
        scope: its operations, in stages.
        chips: the chip of each stage.
        replicas, apart: how many copies of each stage there are, and how many chips lie between
            their chips.
        types: the type of what is kept.
        initial: what is kept before the first cycle, where that matters.
        homes: for each carried value, the stage that gives it its next value.
        flows: the chips that read each value which crosses a border of stages, each with the stages
            there that do.
        crossing: these values, for each stage that makes some.
    """

    main: FuncOp
    loop: control.RepeatOp
    scope: Scope
    pipeline: Pipeline
    chips: Sequence[int]
    replicas: int
    apart: int
    names: UnusedNames
    edit: Edit
    types: dict[Kept, Attribute] = field(default_factory=dict[Kept, Attribute])
    initial: dict[Kept, SSAValue] = field(default_factory=dict[Kept, SSAValue])
    steps: list[Step] = field(default_factory=list[Step])

    def __post_init__(self) -> None:
        self.homes = [self.scope.made[value] for value in self.scope.carried]
        self.flows = self._flows()
        self.crossing: list[list[SSAValue]] = [[] for _ in self.chips]
        for value in self.flows:
            self.crossing[self.scope.made[value]].append(value)

    def run(self) -> None:
        """Replace the loop."""
        count = self.loop.iterations
        emit = Emitter(self.edit, self.loop, self.main, STEP)
        by_stage: list[list[Operation]] = [[] for _ in self.chips]
        for op, stage in self.scope.stages.items():
            by_stage[stage].append(op)
        order = {op: i for i, op in enumerate(self.scope.block.ops)}
        for stage, ops in enumerate(by_stage):
            # A stage without operations may still hand values on from iteration to iteration.
            if ops or stage in self.homes:
                self._stage(stage, sorted(ops, key=order.__getitem__))
        for made, values in enumerate(self.crossing):
            for chip in sorted({chip for value in values for chip in self.flows[value]}):
                self._stash(made, chip)
        for kept in (k for step in self.steps for k in step.reads if isinstance(k, Kept)):
            if kept.kind == "count" and kept not in self.initial:
                self.initial[kept] = emit(nn.ConstantOp(Blob(np.zeros((), np.int32))))
        self._write(emit, count)

    # What flows between stages

    def _flows(self) -> dict[SSAValue, dict[int, set[int]]]:
        """The chips that read each value which crosses a border of stages. Each chip comes with the
        stages on it that read the value."""
        found: dict[SSAValue, dict[int, set[int]]] = {}
        for op, stage in self.scope.stages.items():
            for value in read_by(op):
                if self.scope.made.get(value, stage) != stage:
                    found.setdefault(value, {}).setdefault(self.chips[stage], set()).add(stage)
        return found

    def _slots(self, value: SSAValue, chip: int) -> int:
        """The slots of the stash of a value on a chip."""
        made = self.scope.made[value]
        return max(self.pipeline.slots(made, each) for each in self.flows[value][chip])

    def _latest(self, value: SSAValue, chip: int) -> Kept:
        kept = Kept("latest", value, chip)
        self.types[kept] = value.type
        return kept

    def _stashed(self, value: SSAValue, chip: int) -> Kept:
        kept, slots = Kept("stash", value, chip), self._slots(value, chip)
        shape, element = nn.shape_of(value), nn.element_of(value)
        self.types[kept] = value.type if slots == 1 else nn.tensor((slots, *shape), element)
        return kept

    # Functions

    def _stage(self, stage: int, ops: Sequence[Operation]) -> None:
        """Make the function of a stage."""
        chip, number = self.chips[stage], self.loop.iteration_number
        own: set[SSAValue] = {value for op in ops for value in op.results}
        outline = Outline(self.edit, self.main, ops)
        reads: list[Read] = []
        writes: list[tuple[Kept, ...]] = []
        arguments: dict[SSAValue, SSAValue] = {}
        looked_up: list[tuple[SSAValue, SSAValue, int]] = []
        returned = [
            v for v, home in zip(self.scope.yielded, self.homes, strict=True) if home == stage
        ]
        counted = number in (*outline.outside, *returned)
        for value in outline.outside:
            if value is number:
                continue
            made = self.scope.made.get(value)
            if made is None:
                given: Read = value
            elif made == stage:
                given = self._carried(self.scope.places[value])
            elif self.pipeline.slots(made, stage):
                given = self._stashed(value, chip)
            else:
                given = self._latest(value, chip)
            reads.append(given)
            type_ = self.types[given] if isinstance(given, Kept) else given.type
            argument = arguments[value] = outline.argument(type_, value.name_hint)
            if type_ != value.type:
                looked_up.append((value, argument, nn.shape_of(argument)[0]))
            else:
                outline.bind(value, argument)
        needed: set[int] = {each for *_, each in looked_up} | ({0} if counted else set())
        for slots in sorted(needed):
            count = Kept("count", None, chip, stage, slots)
            turn = self._count(outline, count, reads)
            writes.append((count,))
            outline.returned.append(_next(outline.at_end, turn, slots))
            if slots == 0 and number is not None:
                outline.bind(number, turn)
                arguments[number] = turn
            for value, table, own_slots in looked_up:
                if own_slots == slots:
                    row = row_of(outline.at_start, table, turn)
                    arguments[value] = row
                    outline.bind(value, row)
        for i, value in enumerate(self.scope.yielded):
            if self.homes[i] == stage:
                outline.returned.append(self._returned(outline, value, own, arguments, reads))
                writes.append((self._carried(i),))
        for value in self.crossing[stage]:
            outline.returned.append(self._returned(outline, value, own, arguments, reads))
            writes.append(tuple(self._latest(value, chip) for chip in self.flows[value]))
        name = self.names.unused(f"stage{stage}")
        outline.finish(name, Placement(chip, self.replicas, self.apart))
        self.steps.append(Step(stage, name, tuple(reads), tuple(writes)))

    def _returned(
        self,
        outline: Outline,
        value: SSAValue,
        own: set[SSAValue],
        arguments: dict[SSAValue, SSAValue],
        reads: list[Read],
    ) -> SSAValue:
        """A value as the function of its stage returns it."""
        if value in own:
            return value
        if value not in arguments:
            place = self.scope.places.get(value)
            reads.append(value if place is None else self._carried(place))
            arguments[value] = outline.argument(value.type, value.name_hint)
        return arguments[value]

    def _carried(self, index: int) -> Kept:
        value = self.scope.carried[index]
        kept = Kept("carried", value, self.chips[self.homes[index]])
        self.types[kept] = value.type
        self.initial[kept] = self.loop.initial[index]
        return kept

    def _stash(self, made: int, chip: int) -> None:
        """Make the function that puts what a stage has made for a chip into stashes, right before
        the stage makes it anew."""
        values = [value for value in self.crossing[made] if chip in self.flows[value]]
        offset = made + self.pipeline.interval
        single = [value for value in values if self._slots(value, chip) == 1]
        several = [value for value in values if self._slots(value, chip) > 1]
        if single:
            kept = tuple((self._stashed(value, chip),) for value in single)
            latest = tuple(self._latest(value, chip) for value in single)
            self.steps.append(Step(offset, "", latest, kept))
        if not several:
            return
        outline = Outline(self.edit, self.main, ())
        latest = [self._latest(value, chip) for value in several]
        stashes = [self._stashed(value, chip) for value in several]
        reads: list[Read] = [*latest, *stashes]
        values = [outline.argument(self.types[each]) for each in latest]
        tables = [outline.argument(self.types[each]) for each in stashes]
        emit, turns = outline.at_end, dict[Kept, SSAValue]()
        for value, table in zip(values, tables, strict=True):
            slots = nn.shape_of(table)[0]
            count = Kept("count", None, chip, offset + len(self.chips), slots)
            if count not in turns:
                turns[count] = self._count(outline, count, reads)
            outline.returned.append(with_row(emit, table, value, turns[count]))
        outline.returned += [_next(emit, turn, count.slots) for count, turn in turns.items()]
        name = self.names.unused(f"stash{made}")
        outline.finish(name, Placement(chip, self.replicas, self.apart))
        writes = tuple((each,) for each in (*stashes, *turns))
        self.steps.append(Step(offset, name, tuple(reads), writes))

    def _count(self, outline: Outline, count: Kept, reads: list[Read]) -> SSAValue:
        """Let a function read a count."""
        self.types[count] = control.ITERATION_NUMBER
        reads.append(count)
        hint = "slot" if count.slots else "micro_batch"
        return outline.argument(control.ITERATION_NUMBER, hint)

    # Cycles

    def _write(self, emit: Emitter, count: int) -> None:
        """Write fill, steady loop and flush, and replace the loop's results."""
        pipeline = self.pipeline
        rows = pipeline.fill + count
        fill = [cycle for row in range(pipeline.fill) for cycle in self._row(row, count)]
        steady = list(self._row(pipeline.fill, count))
        flush = [cycle for row in range(count, rows) for cycle in self._row(row, count)]
        last = [self._carried(i) for i in range(len(self.scope.carried))]
        after = _exposed(flush, last)
        written = {kept for cycle in steady for kept in _written(cycle)}
        before = _exposed(steady, ())
        carried = [k for k in self.types if k in written and (k in before or k in after)]
        now = self._begin(emit, fill, carried)
        for cycle in fill:
            self._cycle(emit, cycle, now)
        begin = [now[k] for k in carried]
        body = Block(arg_types=[self.types[k] for k in carried])
        yielding = control.YieldOp()
        body.add_op(yielding)
        inside = now | dict(zip(carried, body.args, strict=True))
        for cycle in steady:
            self._cycle(Emitter(self.edit, yielding, self.main, STEP), cycle, inside)
        yielding.operands = [inside[k] for k in carried]
        repeat = control.RepeatOp(pipeline.main(count), begin, Region(body))
        emit.insert(repeat)
        now.update(zip(carried, repeat.outputs, strict=True))
        for cycle in flush:
            self._cycle(emit, cycle, now)
        self.edit.replace(self.loop, [now[k] for k in last])

    def _begin(
        self, emit: Emitter, fill: Sequence[Cycle], carried: Sequence[Kept]
    ) -> dict[Kept, SSAValue]:
        """What is kept before the first cycle: where it does not matter, zeros, made on the chip
        where they lie."""
        now = dict(self.initial)
        empty = [k for k in self.types if k in _exposed(fill, carried) and k not in now]
        for chip in dict.fromkeys(k.chip for k in empty):
            own = [k for k in empty if k.chip == chip]
            outline = Outline(self.edit, self.main, ())
            outline.returned = [_zeros(outline.at_end, self.types[k]) for k in own]
            name = self.names.unused(f"empty{chip}")
            outline.finish(name, Placement(chip, self.replicas, self.apart))
            call = emit.insert(CallOp(name, [], [self.types[k] for k in own]))
            now.update(zip(own, call.results, strict=True))
        return now

    def _row(self, row: int, count: int) -> Iterable[Cycle]:
        """The cycles of a row, each with the steps that work in it: stages before stashes."""
        working = [s for s in self.steps if self.pipeline.works(s.offset, row, count)]
        for cycle in self.pipeline.cycles([step.offset for step in working]):
            yield [working[i] for i in cycle]

    def _cycle(self, emit: Emitter, cycle: Cycle, now: dict[Kept, SSAValue]) -> None:
        """Write the calls of a cycle. What one of them makes is read from the next cycle on."""
        made: dict[Kept, SSAValue] = {}
        for step in cycle:
            given = [now[each] if isinstance(each, Kept) else each for each in step.reads]
            results: Sequence[SSAValue] = given
            if step.function:
                types = [self.types[each[0]] for each in step.writes]
                results = emit.insert(CallOp(step.function, given, types)).results
            for kept, value in zip(step.writes, results, strict=True):
                made.update(dict.fromkeys(kept, value))
        now.update(made)


def _written(cycle: Cycle) -> Iterator[Kept]:
    """What a cycle writes."""
    yield from (kept for step in cycle for each in step.writes for kept in each)


def _exposed(cycles: Sequence[Cycle], after: Iterable[Kept]) -> set[Kept]:
    """What is read by cycles, or after them, before a cycle writes it."""
    found = set(after)
    for cycle in reversed(cycles):
        found -= {*_written(cycle)}
        found |= {each for step in cycle for each in step.reads if isinstance(each, Kept)}
    return found


def _zeros(emit: Emitter, type_: Attribute) -> SSAValue:
    """Zeros of a type."""
    shape, element = nn.shape_of(type_), nn.element_of(type_)
    zero = emit(nn.ConstantOp(Blob(np.zeros((), numpy_dtype(element)))))
    return emit.expanded(zero, shape)


def _next(emit: Emitter, turn: SSAValue, slots: int) -> SSAValue:
    """The number of the next micro-batch, or the slot behind a slot.

    A tile looks up the slot: for a remainder, it would need 2,000 cycles.
    """
    if slots:
        after = np.roll(np.arange(slots, dtype=np.int32), -1)
        return row_of(emit, emit(nn.ConstantOp(Blob(after))), turn)
    one = emit(nn.ConstantOp(Blob(np.array(1, np.int32))))
    return emit(nn.AddOp(turn, one))
