"""Functions and states of nn in dialects that have no states.

A state that the program changes is an argument and a result of @main: after the inputs and the
outputs, in the order of the program. A state that it only reads is a constant, or an argument too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import control, nn
from ...dialects.dtypes import element_type
from ...dialects.host import host_names
from ...ir.blob import repeated_element
from ...ir.conversion import Patterns
from ...ir.refusals import Uncovered, values_read
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ...ir.xdsl.walk import operations
from .loops import Export


@dataclass
class States:
    """The states of a program.

    Attributes:
        kept: those that are arguments, in their order, each with its type.
        stored: those that the program changes.
        loaded, left: the value of each at the beginning and at the end.
    """

    values: dict[str, NDArray[np.generic]]
    kept: dict[str, Attribute]
    stored: frozenset[str]
    loaded: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    left: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    @classmethod
    def of(cls, module: ModuleOp, *, all_are_arguments: bool) -> States:
        """The states of a module.

        Args:
            all_are_arguments: whether states that the program only reads are arguments too.
        """
        states = [op for op in module.body.block.ops if isinstance(op, nn.StateOp)]
        stored = frozenset(
            op.state.string_value() for op in operations(module) if isinstance(op, nn.StoreOp)
        )
        values = {op.sym_name.data: op.value.array for op in states}
        kept: dict[str, Attribute] = {
            op.sym_name.data: op.elements
            for op in states
            if all_are_arguments or op.sym_name.data in stored
        }
        return cls(values, kept, stored)

    @property
    def changed(self) -> list[str]:
        """The states that are results of @main, in their order."""
        return [name for name in self.kept if name in self.stored]


class ProgramExport(Export):
    """A whole program in another dialect, while it is made.

    Attributes:
        states: its states.
        entry: whether the function that is being converted is @main.
        top: the block of the function that is being converted.
        depth: how many branches and loops are around what is converted.
        depth_of_run: how many are around the run that it belongs to: 0, unless the iterations of a
            loop are runs.
    """

    entry: bool = False
    depth: int = 0
    depth_of_run: int = 0

    def __init__(self, patterns: Patterns[Any], to: str, states: States) -> None:
        super().__init__(patterns, to)
        self.states = states
        self._before: dict[SSAValue, SSAValue] = {}
        self.begin(self.block)

    def reshaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape. Of two reshapes, one after another, one is left."""
        first = self._before.get(value, value)
        if nn_shape(first) == tuple(shape):
            return first
        made = self.reshape(first, shape)
        self._before[made] = first
        return made

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape, which is a new one."""
        raise NotImplementedError

    def begin(self, block: Block) -> None:
        """Begin a function."""
        self.top = block

    @contextmanager
    def nested(self, block: Block) -> Generator[Block]:
        """Meanwhile, add operations to a block of a branch or a loop."""
        with self.into(block):
            self.depth += 1
            try:
                yield block
            finally:
                self.depth -= 1

    def changed_by(self, loop: control.RepeatOp) -> list[str]:
        """The states that a loop changes if its iterations are runs, else none."""
        if loop.runs is None:
            return []
        if not self.entry or self.depth != self.depth_of_run:
            raise Uncovered("its iterations are runs, and it is outside @main or in a branch")
        stores = (op for op in loop.walk() if isinstance(op, nn.StoreOp))
        return list(dict.fromkeys(op.state.string_value() for op in stores))

    @contextmanager
    def iteration(self, names: Sequence[str], values: Sequence[SSAValue]) -> Generator[None]:
        """Meanwhile, convert an iteration at whose beginning states have these values.

        The iteration is a nested block.
        """
        if not names:
            yield
            return
        before, self.states.loaded = self.states.loaded, {**self.states.loaded}
        depth, self.depth_of_run = self.depth_of_run, self.depth
        self.states.loaded.update(zip(names, values, strict=True))
        try:
            yield
        finally:
            self.states.loaded, self.depth_of_run = before, depth

    def loaded(self, names: Sequence[str]) -> list[SSAValue]:
        """The values that states begin with."""
        return [self.states.loaded[name] for name in names]

    def left(self, names: Sequence[str]) -> list[SSAValue]:
        """The values that states end with."""
        states = self.states
        return [states.left.get(name, states.loaded[name]) for name in names]

    def type_of(self, type_: Attribute) -> Attribute:
        """The type in the dialect for a tensor type of nn."""
        raise NotImplementedError

    def constant(self, array: NDArray[np.generic]) -> SSAValue:
        """A constant of an array."""
        one = repeated_element(array)
        # A NaN has bits that a number does not keep.
        if one is None or one != one:
            return self.known(array)
        wide = [n for n in array.shape if n != 1]
        made = self.filled(wide, one.item(), element_type(array.dtype))
        return self.reshaped(made, array.shape)

    def known(self, array: NDArray[np.generic]) -> SSAValue:
        """A constant with each element."""
        raise NotImplementedError

    def joined(self, parts: Sequence[SSAValue], axis: int, type_: Attribute) -> SSAValue:
        """Tensors next to each other along an axis."""
        raise NotImplementedError

    def finish(self) -> None:
        """Raise InputError if an operation was not converted. Erase what nothing reads."""
        super().finish()
        erase_unread(self.block)
        for each in self.block.ops:
            if isinstance(each, func.FuncOp):
                put_in_order(each.body.block)

    def returned(self, values: Sequence[SSAValue]) -> Operation:
        """The end of a function."""
        return func.ReturnOp(*values)


def converted_state(op: nn.StateOp, new: ProgramExport) -> None:
    """Convert a state: nothing is left of its declaration."""


def converted_load(op: nn.LoadOp, new: ProgramExport) -> None:
    """Convert a load: an argument of @main, or a constant."""
    name = op.state.string_value()
    if name not in new.states.kept:
        new.values[op.result] = new.constant(new.states.values[name])
        return
    if not new.entry:
        raise Uncovered("a state is loaded outside @main")
    new.values[op.result] = new.states.loaded[name]


def converted_store(op: nn.StoreOp, new: ProgramExport) -> None:
    """Convert a store at the end of @main or of a run: one of its results."""
    if not new.entry or new.depth != new.depth_of_run:
        raise Uncovered("a state is stored outside @main, or in a branch or a loop")
    new.states.left[op.state.string_value()] = new.values[op.stored]


def converted_constant(op: nn.ConstantOp, new: ProgramExport) -> None:
    """Convert a constant."""
    new.values[op.result] = new.constant(op.value.array)


def converted_concat(op: nn.ConcatOp, new: ProgramExport) -> None:
    """Convert tensors put next to each other."""
    parts = [new.values[each] for each in op.parts]
    new.values[op.result] = new.joined(parts, op.along, op.result.type)


def converted_function(op: func.FuncOp, new: ProgramExport) -> None:
    """Convert a function."""
    new.entry = op.sym_name.data == ENTRY
    states = new.states
    kept = states.kept if new.entry else {}
    changed = states.changed if new.entry else []
    types = [new.type_of(each) for each in (*op.function_type.inputs, *kept.values())]
    results = [
        new.type_of(each) for each in (*op.function_type.outputs, *(kept[name] for name in changed))
    ]
    body = Block(arg_types=types)
    old = op.body.block
    new.begin(body)
    with new.into(body):
        for before, after in zip(old.args, body.args, strict=False):
            new.values[before] = after
            after.name_hint = before.name_hint
        states.loaded.update(zip(kept, body.args[len(old.args) :], strict=True))
        last = new.convert_body(old)
        if new.lost.isdisjoint(last.operands):
            new.add(new.returned([*(new.values[v] for v in last.operands), *new.left(changed)]))
    made = func.FuncOp(op.sym_name.data, (types, results), Region(body), op.sym_visibility)
    if new.entry:
        for attribute, count, more in (
            ("arg_names", len(old.args), [*kept]),
            ("result_names", len(op.function_type.outputs), changed),
        ):
            names = [*host_names(op, attribute, count), *more]
            made.attributes[attribute] = ArrayAttr(map(StringAttr, names))
    new.add(made)


def converted_call(op: func.CallOp, new: ProgramExport) -> None:
    """Convert a call."""
    types = [new.type_of(each.type) for each in op.results]
    given = [new.values[each] for each in op.operands]
    made = new.add(func.CallOp(op.callee.string_value(), given, types))
    for before, after in zip(op.results, made.results, strict=True):
        new.values[before] = after


def nn_shape(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor."""
    return tuple(cast("TensorType[Attribute]", value.type).get_shape())


def put_in_order(block: Block) -> None:
    """Put the operations of a block in an order that follows from what reads what: each one after
    its operands, in the order in which the block's end needs them. Constants come first.

    So two programs that compute the same in the same way are the same text.
    """
    end = block.last_op
    assert end is not None
    order = dict[Operation, None]()
    waiting: list[tuple[Operation, bool]] = [(end, False)]
    while waiting:
        op, done = waiting.pop()
        if op in order:
            continue
        if done:
            order[op] = None
            continue
        waiting.append((op, True))
        for value in reversed(tuple(values_read(op))):
            made = value.owner
            while isinstance(made, Operation) and made.parent is not block:
                made = made.parent_op()
            if isinstance(made, Operation) and made is not op and made not in order:
                waiting.append((made, False))
    for op in sorted(order, key=lambda each: not each.name.endswith(".constant")):
        op.detach()
        block.add_op(op)
        for region in op.regions:
            for inner in region.blocks:
                put_in_order(inner)


def erase_unread(block: Block) -> None:
    """Erase operations whose results nothing reads, in a block and inside its operations."""
    for op in reversed(tuple(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                erase_unread(inner)
        if op.results and not any(each.first_use for each in op.results):
            block.erase_op(op)
