"""Runs a program of any lower level on whole tensors, without layouts, codelets and addresses.

Each operation computes its definition: its structure or its moves. So a program with the expected
results here is right, and any wrong result of the machine has another cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from ....backends.codelets.conversion import converted
from ....backends.evaluate.control import Walker
from ....backends.evaluate.host import Run
from ....backends.evaluate.users_levels import as_own
from ....backends.reference import evaluate_moves, structure_value, tensor_kind
from ....dialects import partition, tile
from ....dialects.control import RepeatOp
from ....dialects.host import host_names
from ....dialects.levels import NN, PARTITION
from ....dialects.partition import partition_type
from ....dialects.steps import (
    Copy,
    Input,
    Load,
    Output,
    Read,
    Remote,
    Store,
    Superstep,
    Sync,
    Vertices,
)
from ....dialects.structured import Structure
from ....dialects.variable import Variable
from ....ir.geometry.layout import Layout
from ....ir.geometry.space import Space
from ....ir.provenance import place
from ....ir.support.errors import InputError
from ....ir.well_known import ENTRY
from ...driver.arrays import Array
from ..generators.program import Program


@dataclass(frozen=True)
class Tensor:
    """A tensor during a run, and its layout in the program."""

    values: Array
    type: TensorType
    layout: Layout


@dataclass(frozen=True)
class ExecutedOp:
    """One step of a run: an operation, its operands, and its results."""

    op: Vertices | Copy | partition.ComputeOp | partition.RelayoutOp
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]

    @property
    def result(self) -> Tensor:
        """The only result, or the first of several."""
        return self.results[0]


Watch = Callable[[ExecutedOp | Tensor], None]
"""Called after each step, and with each tensor that comes from the host, a state or a constant."""


def run_on_whole_tensors(program: Program, watch: Watch) -> Run:
    """Run a program of partition, tile or exchange.

    Raises InputError for a program of nn, and for operations of other levels.
    """
    level = program.level
    if level.like is not None:
        level, module = as_own(level, program.module, program.target)
        program = program.meaning(module)
    if level == NN:
        raise InputError("a program of nn has no layouts or codelets")
    runner = _OfValues if level == PARTITION else _OfVariables
    return runner(program, watch).run()


def _moved(moves: Sequence[Space] | None, operands: Sequence[Tensor], like: Tensor) -> Array:
    """The values of a movement's result.

    Args:
        like: the type and layout of the result.
    """
    shape = tuple(like.type.get_shape())
    if moves is None:
        return operands[0].values.reshape(shape)
    dtype = like.values.dtype
    viewed = moves[0].results[0].shape
    made = evaluate_moves(moves, [each.values for each in operands], viewed, dtype)
    return made.reshape(shape)


def _computed(structure: Structure, operands: Sequence[Tensor], like: Tensor, result: int) -> Array:
    """The values of a result of a structured operation.

    Args:
        like: the type and layout of the result.
    """
    values = [each.values for each in operands]
    dtype, shape = like.values.dtype, like.values.shape
    return converted(structure_value(structure, values, dtype, shape, result), dtype)


def _zeros(type_: TensorType, layout: Layout) -> Tensor:
    return Tensor(np.zeros(*tensor_kind(type_)), type_, layout)


class _OfValues:
    """Runs a program of partition."""

    def __init__(self, program: Program, watch: Watch) -> None:
        self.program = program
        self.watch = watch
        self.states: dict[str, Tensor] = {}
        for op in program.module.ops:
            if isinstance(op, partition.StateOp):
                self.states[op.sym_name.data] = self._of(op.type, op.initial.array)
        self.before = dict(self.states)
        self.walker: Walker[Tensor] = Walker(
            program.module,
            self.execute,
            lambda each: bool(each.values.reshape(())),
            number=self.number,
        )

    def _of(self, type_: partition.PartitionTensor, values: Array) -> Tensor:
        shaped = values.reshape(type_.tensor.get_shape())
        found = Tensor(shaped, type_.tensor, type_.layout.data)
        self.watch(found)
        return found

    def run(self) -> Run:
        main = self.walker.functions[ENTRY]
        args = main.body.block.args
        names = host_names(main, "arg_names", len(args))
        given = [
            self._of(partition_type(a), self.program.inputs[n])
            for n, a in zip(names, args, strict=True)
        ]
        results = self.walker.call(ENTRY, given)
        outputs = host_names(main, "result_names", len(results))
        return Run(
            {name: each.values for name, each in zip(outputs, results, strict=True)},
            {name: each.values for name, each in self.states.items()},
        )

    def number(self, op: RepeatOp, iteration: int) -> Sequence[Tensor]:
        number = op.iteration_number
        assert number is not None
        if op.runs is not None:
            self.before = dict(self.states)
        return [self._of(partition_type(number), np.array(iteration, np.int32))]

    def execute(self, op: Operation, operands: list[Tensor]) -> Sequence[Tensor]:
        if isinstance(op, partition.LoadOp):
            held, type_ = self.before[op.state.string_value()], partition_type(op.results[0])
            same = held.layout == type_.layout.data
            return [held if same else Tensor(held.values, held.type, type_.layout.data)]
        if isinstance(op, partition.StoreOp):
            self.states[op.state.string_value()] = operands[0]
            return []
        type_ = partition_type(op.results[0])
        if isinstance(op, partition.ConstantOp):
            return [self._of(type_, op.value.array)]
        if isinstance(op, partition.ReshapeOp):
            shaped = operands[0].values.reshape(type_.tensor.get_shape())
            return [Tensor(shaped, type_.tensor, type_.layout.data)]
        types = [partition_type(value) for value in op.results]
        likes = [_zeros(each.tensor, each.layout.data) for each in types]
        if isinstance(op, partition.ComputeOp):
            structure = op.structure()
            made = [_computed(structure, operands, like, i) for i, like in enumerate(likes)]
        elif isinstance(op, partition.RelayoutOp):
            moves = None if op.moves is None else [each.data for each in op.moves]
            made = [_moved(moves, operands, likes[0])]
        else:
            raise InputError(f"{op.name} at {place(op)}: not an operation of partition")
        results = tuple(
            Tensor(values, like.type, like.layout) for values, like in zip(made, likes, strict=True)
        )
        self.watch(ExecutedOp(op, tuple(operands), results))
        return results


@dataclass
class _OfVariables:
    """Runs a program of tile or exchange. Each variable holds a whole tensor of its own."""

    program: Program
    watch: Watch
    held: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    remote: dict[str, Array] = field(default_factory=dict[str, "Array"])
    outputs: dict[str, Array] = field(default_factory=dict[str, "Array"])

    def run(self) -> Run:
        variables: Mapping[str, Variable] = {
            op.symbol: op for op in self.program.module.ops if isinstance(op, Variable)
        }
        for name, op in variables.items():
            self.held[name] = _zeros(op.tensor, op.placed)
            if op.initial is not None:
                self._begin(name, op.initial.array)
        for op in self.program.module.ops:
            if isinstance(op, Remote):
                self.remote[op.symbol] = op.first_value
        walker: Walker[bool] = Walker(self.program.module, self.execute, bool, number=self.number)
        walker.call(ENTRY)
        states = [name for name, op in variables.items() if op.state is not None]
        return Run(self.outputs, {name: self.held[name].values for name in states} | self.remote)

    def _begin(self, name: str, values: Array) -> None:
        self._write(name, values)
        self.watch(self.held[name])

    def _write(self, name: str, values: Array) -> None:
        old = self.held[name]
        self.held[name] = Tensor(values.reshape(old.values.shape), old.type, old.layout)

    def number(self, op: RepeatOp, iteration: int) -> Sequence[bool]:
        name = op.iteration_variable
        assert name is not None
        self._begin(name, np.array(iteration, np.int32))
        return []

    def execute(self, op: Operation, operands: list[bool]) -> Sequence[bool]:
        if isinstance(op, tile.ComputeSetOp | Superstep):
            for each in op.body.block.ops:
                self.execute(each, [])
        elif isinstance(op, Vertices | Copy):
            self._step(op)
        elif isinstance(op, Input):
            self._begin(op.writes.string_value(), self.program.inputs[op.host_name.data])
        elif isinstance(op, Output):
            values = self.held[op.reads.string_value()].values
            self.outputs[op.host_name.data] = values.reshape(op.tensor.get_shape())
        elif isinstance(op, Load):
            self._begin(op.destination, self.remote[op.remote.string_value()])
        elif isinstance(op, Store):
            self.remote[op.remote.string_value()] = self.held[op.source].values
        elif isinstance(op, Read):
            return [bool(self.held[op.variable.string_value()].values.reshape(()))]
        elif not isinstance(op, Sync):
            raise InputError(f"{op.name} at {place(op)}: not an operation of tile")
        return []

    def _step(self, op: Vertices | Copy) -> None:
        read = tuple(self.held[name] for name in op.sources)
        names = op.destinations
        likes = [self.held[name] for name in names]
        if isinstance(op, Vertices):
            structure = op.structure()
            made = [_computed(structure, read, like, i) for i, like in enumerate(likes)]
        else:
            made = [_moved(op.spaces, read, likes[0])]
        for name, values in zip(names, made, strict=True):
            self._write(name, values)
        self.watch(ExecutedOp(op, read, tuple(self.held[name] for name in names)))
