"""The planner's graph of a program: its operators, their operands, how often and when they run.

The graph is read once from the module; layouts are tried on it many times. Everything that has a
layout has a slot:

- the result of an operator;
- the home of a state or constant, which the first operator that computes with it places;
- an input of the program or of a function, which is placed near the tiles where its first operator
  wants it; so is a value from remote memory, or from another part of the machine;
- a value whose layout is not decided, which is in linear order.

A reshaped value, a value that a loop carries and the result of a branch share the slot of their
source.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ...backends.clocks.section import MOST_TIMES
from ...backends.target import Target
from ...dialects import control, nn
from ...dialects.abele import Plan, PlanAttr
from ...dialects.dtypes import numpy_dtype
from ...dialects.home import Home, home_of, is_remote
from ...dialects.placement import Placement
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.geometry.layout import Layout, linear_layout, replicated_layout
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..plans.fused import operator_name
from ..plans.parts import Part, Parts, reader_or_writer
from .keeping import Pins
from .limits import Limits
from .problem import Problem, movement_problem


@dataclass(frozen=True, eq=False)
class Operator:
    """An operation that needs a plan.

    Attributes:
        operands: the slot of each operand; None for an operand that the plan places.
        results: the slot of each result.
        homes: by operand, the slots of the states and constants that the plan places.
        shared: the operands in homes that other operators read too.
        inputs: by operand, the slots of the program's inputs that the plan places.
        times: the number of times that a run executes it.
        given: the plan that the module already has for it.
        moment: the time at which it runs in its function.
        pins: the required homes of the states and constants in `homes`, if they have any.
        part: the part of the machine on which it lies. Its plans and pins are those of a machine
            that has only this part.
    """

    op: Operation
    problem: Problem
    operands: tuple[int | None, ...]
    results: tuple[int, ...]
    homes: dict[int, int]
    shared: frozenset[int]
    inputs: dict[int, int]
    times: int
    given: Plan | None
    moment: int
    part: Part
    pins: Pins = ()

    @property
    def result(self) -> int:
        """The slot of the only result, or of the first of several."""
        return self.results[0]


@dataclass(frozen=True, eq=False)
class Relayout:
    """A value that is copied into the layout of another slot.

    This happens to values that a loop carries, that are stored, and that calls take and return.

    Attributes:
        shape, dtype: of the value.
    """

    source: int
    destination: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    times: int


Node = Operator | Relayout


@dataclass(frozen=True)
class Lifetime:
    """The moments of a function from the first to the last at which a slot holds a value.

    Attributes:
        into: the slot of the state that the value may overwrite if the layouts are equal; None if
            there is no such state.
    """

    slot: int
    itemsize: int
    start: int
    end: int
    into: int | None = None


@dataclass
class Function:
    """The memory use of a function over its moments.

    Attributes:
        calls: (moment, called function) pairs.
    """

    moments: int = 0
    lifetimes: list[Lifetime] = field(default_factory=list[Lifetime])
    operators: list[Operator] = field(default_factory=list[Operator])
    calls: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


@dataclass(frozen=True, eq=False)
class PlanningGraph:
    """The parts of a program that its plans depend on.

    Attributes:
        nodes: in program order.
        fixed: the layouts that no plan decides, by slot.
        itemsizes: bytes of an element, by slot.
        empty: plans of operations without elements.
        stored: layouts and dtypes of states and constants that no operator places.
        least_bytes: a lower bound of the bytes that all tiles together need under any plan: each
            element of the states and constants that are read, once, and the operands and result of
            one operator.
        pinned: the states and constants that have a home, by slot.
        parts: by slot, the part of the machine on which it lies. Its layout is that of a machine
            that has only this part.
    """

    nodes: tuple[Node, ...]
    functions: dict[str, Function]
    fixed: dict[int, Layout]
    itemsizes: tuple[int, ...]
    empty: dict[Operation, Plan]
    stored: tuple[tuple[Layout, np.dtype[Any]], ...]
    least_bytes: int
    pinned: dict[int, Operation] = field(default_factory=dict[int, Operation])
    parts: tuple[Part, ...] = ()

    def seen(self, slot: int, layout: Layout, part: Part) -> Layout:
        """The layout of a slot, for a machine that has only a part of this one.

        A value that lies elsewhere is taken to be brought to the part in linear order.
        """
        own = self.parts[slot]
        if own == part:
            return layout
        try:
            return part.own(own.moved(layout))
        except ValueError:
            target = part.target
            size = self.itemsizes[slot]
            return linear_layout(layout.shape, size, target.tiles, chips=target.chips)

    def on_machine(self, slot: int, layout: Layout) -> Layout:
        """The layout of a slot, on the whole machine."""
        return self.parts[slot].moved(layout)

    @property
    def operators(self) -> Iterator[Operator]:
        """The nodes that have a plan."""
        return (node for node in self.nodes if isinstance(node, Operator))

    def uses(self) -> dict[int, list[int]]:
        """The indices of the nodes that read or write each slot, in order."""
        found: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes):
            slots = (node.source, node.destination) if isinstance(node, Relayout) else node.operands
            for slot in dict.fromkeys(slots):
                if slot is not None:
                    found.setdefault(slot, []).append(i)
        return found


def read_graph(
    module: ModuleOp,
    target: Target,
    limits: Limits,
    *,
    alone: control.RepeatOp | None = None,
    given: Mapping[Operation, Plan] | None = None,
    only: Group | None = None,
) -> PlanningGraph:
    """Read the graph of a module at nn.

    Args:
        alone: a loop of runs; one of its iterations is read as if it were the whole program.
        given: plans of operations in addition to those in the module. Like those of operators,
            they are for the part of the machine on which their functions lie.
        only: the functions to read, as a program of a machine that has only their part.
    """
    parts = Parts(module, target, Part.of(target))
    if only is None:
        return _Reader(module, target, limits, alone, given or {}, parts).read()
    machine = only.part.target
    return _Reader(module, machine, limits, alone, given or {}, parts, only).read()


@dataclass(frozen=True)
class Group:
    """The functions that lie on one part of a machine, and are planned together.

    Attributes:
        part: the part for which they are planned.
        owner: the part on which they lie, and the states that are theirs.
    """

    names: frozenset[str]
    part: Part
    owner: Part

    def on_one_chip(self, machine: Target) -> Group:
        """The same functions, planned for the first of their chips."""
        first = Placement(int(self.owner.chips[0]))
        return replace(self, part=Part.of(machine, first))


def loop_of_runs(module: ModuleOp) -> control.RepeatOp | None:
    """The loop in the entry function whose iterations count as runs; None if there is none."""
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp) and function.sym_name.data == ENTRY:
            for op in function.body.block.ops:
                if isinstance(op, control.RepeatOp) and op.runs is not None:
                    return op
    return None


@dataclass
class _Reader:
    """One walk over the program, in order.

    Attributes:
        slots: the slot of each value that has one.
        kept: for each value that holds the elements of a state or constant, the key of that state
            or constant.
        holding: these values, by key.
        homes: the slot of each key once an operator has placed it.
        inputs: for each value that holds the elements of an input, that input.
        reached: the slots of inputs that an operator has read.
        target: the machine, or the one that has only the group's part.
        alone, given, only: as for read_graph.
        places: where the functions of the module lie on the machine.
        signatures: the slots of the parameters and results of each function that has been read.
        slot_parts: the part of each slot.
        part: the part of the function that is being read.
        asked: by key, the operation whose attributes require a home.
        remote: the names of the states in remote memory.
    """

    module: ModuleOp
    target: Target
    limits: Limits
    alone: control.RepeatOp | None
    given: Mapping[Operation, Plan]
    places: Parts
    only: Group | None = None
    signatures: dict[str, tuple[list[int], list[int]]] = field(
        default_factory=dict[str, tuple[list[int], list[int]]]
    )
    slot_parts: list[Part] = field(default_factory=list[Part])
    slots: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    kept: dict[SSAValue, object] = field(default_factory=dict[SSAValue, object])
    holding: dict[object, list[SSAValue]] = field(default_factory=dict[object, list[SSAValue]])
    homes: dict[object, int] = field(default_factory=dict[object, int])
    inputs: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    reached: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    aliases: set[SSAValue] = field(default_factory=set[SSAValue])
    nodes: list[Node] = field(default_factory=list[Node])
    fixed: dict[int, Layout] = field(default_factory=dict[int, Layout])
    itemsizes: list[int] = field(default_factory=list[int])
    empty: dict[Operation, Plan] = field(default_factory=dict[Operation, Plan])
    found: dict[str, Function] = field(default_factory=dict[str, Function])
    linear: dict[tuple[Part, tuple[int, ...], int], int] = field(
        default_factory=dict[tuple[Part, tuple[int, ...], int], int]
    )
    users: dict[object, int] = field(default_factory=dict[object, int])
    order: dict[Operation, int] = field(default_factory=dict[Operation, int])
    into: dict[SSAValue, object] = field(default_factory=dict[SSAValue, object])
    here: Function = field(default_factory=Function)
    times: int = 1
    asked: dict[object, Operation] = field(default_factory=dict[object, Operation])
    remote: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.part = self._whole

    def read(self) -> PlanningGraph:
        """Read the whole module."""
        functions = self.places.functions
        self.users = _users(functions)
        self.asked = {
            op.sym_name.data: op
            for op in self.module.body.block.ops
            if isinstance(op, nn.StateOp) and home_of(op) is not None
        }
        self.remote = frozenset(
            op.sym_name.data
            for op in self.module.body.block.ops
            if isinstance(op, nn.StateOp) and is_remote(op)
        )
        self.order = {op: i for i, op in enumerate(self.module.walk())}
        times = _executions(functions)
        for name, op in functions.items():
            if self.only is not None and name not in self.only.names:
                continue
            self.here = self.found[name] = Function()
            self.times = times[name]
            self.part = self._part(name)
            if name == ENTRY and self.alone is not None:
                self._one_run(op.body.block, self.alone.body.block)
                continue
            self.inputs |= {value: value for value in op.body.block.args}
            self._block(op.body.block)
            last = op.body.block.last_op
            assert last is not None
            self.signatures[name] = (
                [self._slot(value) for value in op.body.block.args],
                [self._slot(value) for value in last.operands],
            )
        return PlanningGraph(
            tuple(self.nodes),
            self.found,
            self.fixed,
            tuple(self.itemsizes),
            self.empty,
            tuple(self._stored()),
            self._least_bytes(),
            {slot: self.asked[key] for key, slot in self.homes.items() if key in self.asked},
            tuple(self.slot_parts),
        )

    # Parts of the machine

    @cached_property
    def _whole(self) -> Part:
        """The whole machine for which the graph is read."""
        return Part.of(self.target)

    def _part(self, function: str) -> Part:
        """The part on which a function lies, on the machine for which the graph is read."""
        return self._whole if self.only is not None else self.places.of(function)

    def _owner(self, key: object) -> Part | None:
        """The part on which a state or constant lies; None if the graph does not have this part."""
        if isinstance(key, str):
            owner = self.places.owners[key]
        else:
            owner = self.places.around(cast(SSAValue, key))
        if self.only is None:
            return owner
        return self._whole if owner == self.only.owner else None

    def _is_here(self, part: Part | None) -> bool:
        """Whether the function that is being read can be given layouts of a part."""
        return part is not None and (self.part.is_whole or part == self.part)

    def _brought(self, value: SSAValue, source: int | None) -> None:
        """Take a value as one that is brought from another part, near its first reader.

        Args:
            source: its slot there; None if the graph does not have the part.
        """
        self.inputs[value] = value
        if source is not None:
            self.slots[value] = source

    def _home(self, key: object) -> Home | None:
        """The required home of a state or constant on its part, or None."""
        op = self.asked.get(key)
        home = None if op is None else home_of(op)
        if home is None:
            return None
        owner = self._on_machine(self._owner(key) or self._whole)
        try:
            return replace(home, layout=owner.own(home.layout))
        except ValueError:
            # A wish. Nothing can be placed there, so nothing is gained by it.
            return None

    def _on_machine(self, part: Part) -> Part:
        """A part of the machine for which the graph is read, on the whole machine."""
        return part if self.only is None else self.only.part

    def _stored(self) -> Iterator[tuple[Layout, np.dtype[Any]]]:
        """The layouts of the states and constants that no operator places, and their dtypes."""
        left = {key: value for value, key in reversed(self.kept.items()) if key not in self.homes}
        for key, value in left.items():
            owner = self._owner(key)
            if owner is not None:
                home = self._home(key)
                required = home is not None and home.reload is None
                layout = home.layout if home and required else self._linear_layout(value, owner)
                yield owner.moved(layout), dtype_of(value)

    def _least_bytes(self) -> int:
        kept = {key: value for value, key in self.kept.items() if self.users.get(key)}
        operators = (node.op for node in self.nodes if isinstance(node, Operator))
        most = max((self._needed(op) for op in operators if isinstance(op, Structured)), default=0)
        return sum(map(_bytes, kept.values())) + most

    def _needed(self, op: Structured) -> int:
        """A lower bound of the bytes that an operator reads and writes, on all tiles together.

        Of its operands, only the elements that it touches count. Of its result, only half
        counts: in steps, half may exist before the last step, which still reads all operands. The
        result does not count if it may overwrite an operand. No value counts that may overwrite
        its state, which counts already.
        """
        assert isinstance(op, Operation)
        structure = op.structure()
        space = structure.space
        touched = {
            value: prod(
                min(axis.size, prod(space.sizes[d] for d, _ in axis.terms)) for axis in access.axes
            )
            for value, access in zip(op.operands, space.operands, strict=True)
            if isinstance(value.owner, Structured | Block) and value not in self.into
        }
        read = sum(n * dtype_of(value).itemsize for value, n in touched.items())
        width = dtype_of(op.results[0]).itemsize
        written = sum(map(_bytes, op.results))
        in_place = op.results[0] in self.into or any(
            structure.reads_in_place(i) and dtype_of(value).itemsize == width
            for i, value in enumerate(op.operands)
        )
        return read + (0 if in_place else written // 2)

    # Slots

    def _new(self, value: SSAValue, part: Part | None = None) -> int:
        self.itemsizes.append(dtype_of(value).itemsize)
        self.slot_parts.append(part or self.part)
        return len(self.itemsizes) - 1

    @staticmethod
    def _linear_layout(value: SSAValue, part: Part) -> Layout:
        shape, itemsize = nn.shape_of(value), dtype_of(value).itemsize
        return linear_layout(shape, itemsize, part.target.tiles, chips=part.target.chips)

    def _linear(self, value: SSAValue, part: Part | None = None) -> int:
        part = part or self.part
        key = part, nn.shape_of(value), dtype_of(value).itemsize
        if key not in self.linear:
            self.linear[key] = self._new(value, part)
            self.fixed[self.linear[key]] = self._linear_layout(value, part)
        return self.linear[key]

    def _slot(self, value: SSAValue) -> int:
        """The slot of a value. A value that is not placed yet is taken to be in linear order."""
        if value in self.kept:
            key = self.kept[value]
            home = self.homes.get(key)
            return self._linear(value, self._owner(key)) if home is None else home
        if value in self.inputs:
            return self.reached.get(self.inputs[value], self._linear(self.inputs[value]))
        if value not in self.slots:
            self.slots[value] = self._linear(value)
        return self.slots[value]

    def _unplaced(self, value: SSAValue) -> bool:
        """Whether a value holds a state or constant of this part that no operator has placed."""
        if value not in self.kept or self.kept[value] in self.homes:
            return False
        return self._owner(self.kept[value]) == self.part

    def _relayout(self, value: SSAValue, destination: int) -> None:
        source = self._slot(value)
        if source != destination and 0 not in nn.shape_of(value):
            self.nodes.append(
                Relayout(source, destination, nn.shape_of(value), dtype_of(value), self.times)
            )

    # Blocks

    def _moment(self) -> int:
        self.here.moments += 1
        return self.here.moments - 1

    def _one_run(self, main: Block, body: Block) -> None:
        """Read the body of a loop of runs as a program that does one run and takes the loop's
        inputs.
        """
        for op in main.ops:
            if isinstance(op, nn.ConstantOp) and any(
                use.operation.parent is not main for use in op.result.uses
            ):
                self._operation(op)
        around: set[Operation] = set()
        rows: list[SSAValue] = []
        for op in reversed(body.ops):
            uses = [use.operation for use in op.results[0].uses] if op.results else []
            if _takes_batch(op):
                row = op.results[0]
                if len(uses) == 1 and isinstance(uses[0], Reinterpretation):
                    around.add(uses[0])
                    row = uses[0].results[0]
                rows.insert(0, row)
            only_shapes = isinstance(op, Reinterpretation) and around.issuperset(uses)
            if _takes_batch(op) or _keeps_result(op) or only_shapes:
                around.add(op)
        self.inputs |= {value: value for value in rows}
        self._block(body, rows, around)

    def _block(
        self,
        block: Block,
        arguments: Sequence[SSAValue] | None = None,
        left_out: Container[Operation] = (),
    ) -> None:
        """Read the operations of a block.

        Each operation has a moment, or the moments of its nested operations, and one more after it,
        at which its results exist too.

        Args:
            arguments: the values for the block's arguments; the arguments themselves by default.
        """
        start: dict[SSAValue, int] = dict.fromkeys(
            block.args if arguments is None else arguments, self._moment()
        )
        position: dict[Operation, int] = {}
        for op in block.ops:
            if op in left_out:
                continue
            self._operation(op)
            position[op] = self._moment()
            start |= dict.fromkeys(op.results, position[op])
        for value, at in start.items():
            if isinstance(value.type, TensorType) and not (
                value in self.aliases or value in self.kept
            ):
                end = max(at, _last_use(value, position))
                slot, itemsize = self._slot(value), dtype_of(value).itemsize
                into = self.homes.get(self.into.get(value))
                self.here.lifetimes.append(Lifetime(slot, itemsize, at, end, into))

    def _operation(self, op: Operation) -> None:
        if isinstance(op, Structured | Movement):
            self._operator(op)
            return
        if isinstance(op, Reinterpretation):
            self._same(op.operands[0], op.results[0])
            self.aliases.add(op.results[0])
            return
        match op:
            case nn.LoadOp() if op.state.string_value() in self.remote:
                # It comes like an input of the program, to wherever its first reader wants it.
                self.inputs[op.result] = op.result
            case nn.LoadOp():
                self._load(op)
            case nn.StoreOp() if op.state.string_value() in self.remote:
                pass
            case nn.ConstantOp():
                self._keep(op.result, op.result)
                if home_of(op) is not None:
                    self.asked[op.result] = op
            case nn.StoreOp():
                name = op.state.string_value()
                home, owner = self.homes.get(name), self._owner(name)
                if owner is not None:
                    slot = self._linear(op.stored, owner) if home is None else home
                    self._relayout(op.stored, slot)
            case control.RepeatOp():
                # Nearly all the work of a program with a loop of runs is in this loop, so it is
                # planned like a single run.
                self._loop(op, (op.body,), 1 if op.runs is not None else max(op.iterations, 1))
            case control.WhileOp():
                self._loop(op, (op.test, op.body), 1)
            case control.IfOp():
                self._branches(op)
            case func.CallOp():
                self._call(op)
            case _:
                pass

    def _load(self, op: nn.LoadOp) -> None:
        name = op.state.string_value()
        owner = self._owner(name)
        if self._is_here(owner):
            self._keep(op.result, name)
            return
        home = self.homes.get(name)
        if home is None and owner is not None:
            home = self._linear(op.result, owner)
        self._brought(op.result, home)

    def _call(self, op: func.CallOp) -> None:
        name = op.callee.string_value()
        taken, given = self.signatures.get(name, ((), ()))
        for value, slot in zip(op.arguments, taken, strict=False):
            self._hand_over(value, slot)
        self.here.calls.append((self._moment(), name))
        if name not in self.signatures:
            for value in op.results:
                self._brought(value, None)
            return
        for value, slot in zip(op.results, given, strict=True):
            if self._is_here(self.slot_parts[slot]):
                self.slots[value] = slot
            else:
                self._brought(value, slot)

    def _hand_over(self, value: SSAValue, slot: int) -> None:
        """Bring a value to where a function takes it. An input that nobody has read lies there."""
        source = self.inputs.get(value)
        if source is not None and source not in self.reached and source not in self.slots:
            if self._is_here(self.slot_parts[slot]):
                self.reached[source] = slot
                return
        self._relayout(value, slot)

    def _keep(self, value: SSAValue, key: object) -> None:
        """Record that a value holds the elements of a state or constant."""
        self.kept[value] = key
        self.holding.setdefault(key, []).append(value)

    def _same(self, old: SSAValue, new: SSAValue) -> None:
        """Give a new value the slot, state or input of an old one."""
        if old in self.kept:
            self._keep(new, self.kept[old])
        elif old in self.inputs:
            self.inputs[new] = self.inputs[old]
        else:
            self.slots[new] = self._slot(old)

    def _loop(
        self, op: control.RepeatOp | control.WhileOp, regions: Sequence[Region], iterations: int
    ) -> None:
        body = regions[-1].block
        last = body.last_op
        assert last is not None
        slots = [
            self._carried(value, argument, yielded)
            for value, argument, yielded in zip(op.initial, body.args, last.operands, strict=False)
        ]
        number = op.iteration_number if isinstance(op, control.RepeatOp) else None
        if number is not None:
            target = self.part.target
            self.slots[number] = self._new(number)
            self.fixed[self.slots[number]] = replicated_layout(target.tiles, target.chips)
        outer, self.times = self.times, min(self.times * iterations, MOST_TIMES)
        for region in regions:
            self.slots.update(zip(region.block.args, slots, strict=number is None))
            self._block(region.block)
        for value, slot in zip(last.operands, slots, strict=True):
            self._relayout(value, slot)
        self.times = outer
        self.slots.update(zip(op.outputs, slots, strict=True))

    def _carried(self, initial: SSAValue, argument: SSAValue, yielded: SSAValue) -> int:
        """The slot of a value that a loop carries: that of the function which takes or makes it, if
        there is one, else that of the initial value."""
        found = reader_or_writer(argument, yielded)
        if found is not None and found.function in self.signatures:
            slot = self.signatures[found.function][0 if found.takes else 1][found.number]
            if self._is_here(self.slot_parts[slot]):
                self._hand_over(initial, slot)
                return slot
        return self._slot(initial)

    def _branches(self, op: control.IfOp) -> None:
        self._block(op.then.block)
        first = op.then.block.last_op
        assert first is not None
        slots = [self._slot(value) for value in first.operands]
        self._block(op.otherwise.block)
        second = op.otherwise.block.last_op
        assert second is not None
        for value, slot in zip(second.operands, slots, strict=True):
            self._relayout(value, slot)
        self.slots.update(zip(op.outputs, slots, strict=True))

    # Operators

    def _operator(self, op: Operation) -> None:
        problem = self._problem(op)
        plan = self._given(op)
        moment = self._moment()
        if 0 in problem.structure.space.sizes or 0 in nn.shape_of(op.results[0]):
            self.empty[op] = plan or Plan((1,) * len(problem.structure.space.dims))
            return
        homes: dict[int, int] = {}
        inputs: dict[int, int] = {}
        operands: list[int | None] = []
        for i, value in enumerate(op.operands):
            stays, free = problem.resident[i], problem.is_free(i)
            operands.append(None if stays or free else self._slot(value))
            if stays and self._unplaced(value):
                homes[i] = self.homes[self.kept[value]] = self._new(value)
            elif free and self.inputs[value] not in self.reached:
                inputs[i] = self.reached[self.inputs[value]] = self._new(value)
            elif isinstance(op, Structured) and value in self.inputs:
                self.reached.setdefault(self.inputs[value], self._slot(value))
        shared = frozenset(i for i in homes if self.users[self.kept[op.operands[i]]] > 1)
        results = tuple(self._new(value) for value in op.results)
        self.slots.update(zip(op.results, results, strict=True))
        node = Operator(
            op=op,
            problem=problem,
            operands=tuple(operands),
            results=results,
            homes=homes,
            shared=shared,
            inputs=inputs,
            times=self.times,
            given=plan,
            moment=moment,
            part=self.part,
            pins=tuple(
                (i, home)
                for i in homes
                if (home := self._home(self.kept[op.operands[i]])) is not None
            ),
        )
        self.nodes.append(node)
        self.here.operators.append(node)
        for i, slot in inputs.items():
            row = self.inputs[op.operands[i]]
            if row in self.slots:
                self.nodes.append(
                    Relayout(*(self.slots[row], slot, nn.shape_of(row), dtype_of(row), self.times))
                )
        if _takes_batch(op):
            self.inputs[op.results[0]] = op.results[0]

    def _given(self, op: Operation) -> Plan | None:
        """The plan that an operation has already, for its part of the machine."""
        given = op.attributes.get("plan")
        if not isinstance(given, PlanAttr):
            return self.given.get(op)
        try:
            return self._on_machine(self.part).own(given.data)
        except ValueError as error:
            raise InputError(f"{operator_name(op)} at {place(op)}: plan: {error}") from None

    def _problem(self, op: Operation) -> Problem:
        dtypes = tuple(dtype_of(value) for value in op.operands)
        terms = self.limits.terms_of(op, self.part.target)
        if isinstance(op, Movement):
            return movement_problem(op.moves(), dtype_of(op.results[0]), terms=terms)
        assert isinstance(op, Structured)
        resident = tuple(self._unplaced(value) for value in op.operands)
        structure = op.structure()
        own = structure.own_operands
        # An input that the chain reads too, perhaps reshaped, needs a slot of its own first.
        chained = {self.inputs[value] for value in op.operands[own:] if value in self.inputs}
        free = tuple(
            i < own
            and value in self.inputs
            and self.inputs[value] not in self.reached
            and self.inputs[value] not in chained
            for i, value in enumerate(op.operands)
        )
        result, *further = map(dtype_of, op.results)
        return Problem(
            *(structure, dtypes, result, resident),
            terms=terms,
            free=free if any(free) else (),
            further_dtypes=tuple(further),
            again=_again(op),
            replaced=self._replaced(op),
        )

    def _replaced(self, op: Structured) -> tuple[int, ...]:
        """The operands that hold the old value of the state to which the operation's result is
        stored.

        () if an operation reads that value later.
        """
        assert isinstance(op, Operation)
        state = _stored_to(op.results[0])
        if state is None or state.parent is not op.parent:
            return ()
        name = state.state.string_value()
        structure, itemsize = op.structure(), dtype_of(op.results[0]).itemsize
        old = [i for i, value in enumerate(op.operands) if self.kept.get(value) == name]
        late = any(
            self.order[use.operation] > self.order[op]
            for value in self.holding.get(name, ())
            for use in value.uses
            if not isinstance(use.operation, Reinterpretation)
        )
        if late or not old or not all(structure.reads_in_place(i) for i in old):
            return ()
        if any(dtype_of(op.operands[i]).itemsize != itemsize for i in old):
            return ()
        self.into[op.results[0]] = name
        return tuple(old)


def _takes_batch(op: Operation) -> bool:
    """Whether an operation takes an iteration's part of an input, in a loop of runs.

    That part is placed like an input of a single run, so that both have the same plans.
    """
    loop = op.parent_op()
    if not isinstance(op, nn.GatherOp) or not isinstance(loop, control.RepeatOp):
        return False
    table = op.operands[0]
    return loop.runs is not None and isinstance(table, BlockArgument) and table.block is loop.parent


def _keeps_result(op: Operation) -> bool:
    """Whether an operation writes an iteration's result into a table of the results of all
    iterations.
    """
    return (
        isinstance(op, nn.UpdateOp)
        and isinstance(op.operands[2], BlockArgument)
        and isinstance(op.parent_op(), control.RepeatOp)
    )


def dtype_of(value: SSAValue) -> np.dtype[Any]:
    """The dtype of a tensor's elements."""
    return numpy_dtype(nn.element_of(value))


def _again(op: Structured) -> tuple[int, ...]:
    """The operands of an operation that repeat an earlier operand, read through the same map."""
    assert isinstance(op, Operation)
    seen = [*zip(op.operands, op.structure().space.operands, strict=False)]
    return tuple(i for i, each in enumerate(seen) if each in seen[:i])


def _stored_to(value: SSAValue) -> nn.StoreOp | None:
    """The operation that stores a value, or a reshape of it, to a state; None if there is none."""
    for use in value.uses:
        if isinstance(use.operation, nn.StoreOp):
            return use.operation
        if isinstance(use.operation, Reinterpretation):
            found = _stored_to(use.operation.results[0])
            if found is not None:
                return found
    return None


def _bytes(value: SSAValue) -> int:
    return prod(nn.shape_of(value)) * dtype_of(value).itemsize


def _users(functions: dict[str, func.FuncOp]) -> dict[object, int]:
    """The number of operations that read or write each state (by name) and constant (by value)."""
    found: dict[object, int] = {}
    for function in functions.values():
        for op in function.walk():
            match op:
                case nn.LoadOp():
                    key, count = op.state.string_value(), _uses(op.result)
                case nn.ConstantOp():
                    key, count = op.result, _uses(op.result)
                case nn.StoreOp():
                    key, count = op.state.string_value(), 1
                case _:
                    continue
            found[key] = found.get(key, 0) + count
    return found


def _uses(value: SSAValue) -> int:
    count = 0
    for use in value.uses:
        op = use.operation
        count += _uses(op.results[0]) if isinstance(op, Reinterpretation) else 1
    return count


def _executions(functions: dict[str, func.FuncOp]) -> dict[str, int]:
    """The number of times that a run executes each function; 1 for a function that is not
    called."""
    calls: dict[str, list[tuple[str, int]]] = {name: [] for name in functions}
    for name, function in functions.items():
        for op in function.walk():
            if isinstance(op, func.CallOp) and op.callee.string_value() in functions:
                calls[op.callee.string_value()].append((name, _iterations(op)))
    known: dict[str, int] = {}

    def count(name: str) -> int:
        if name not in known:
            # This entry ends a recursion: a call of a function by itself counts as 0.
            known[name] = 0
            times = sum(count(caller) * n for caller, n in calls[name])
            known[name] = min(max(1, times), MOST_TIMES)
        return known[name]

    return {name: count(name) for name in functions}


def _iterations(op: Operation) -> int:
    """The number of times that an operation runs during one execution of its function."""
    around: list[int] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, control.RepeatOp) and parent.runs is None:
            around.append(max(parent.iterations, 1))
        parent = parent.parent_op()
    return min(prod(around), MOST_TIMES)


def _last_use(value: SSAValue, position: dict[Operation, int]) -> int:
    """The position of the last operation that uses a value, in regions and through reshapes too.

    -1 if no operation with a position uses it.
    """
    last = -1
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op not in position:
            op = op.parent_op()
        if op is None:
            continue
        last = max(last, position[op])
        if isinstance(use.operation, Reinterpretation):
            last = max(last, _last_use(use.operation.results[0], position))
    return last
