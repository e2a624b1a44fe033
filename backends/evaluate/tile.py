"""Runs a module of the tile level, with one stacked array per variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.ir import Operation

from ...dialects import tile
from ...dialects.control import RepeatOp
from ...dialects.steps import (
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
from ...ir.provenance import place
from ...ir.support.by_class import entry_for
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..codelets.calls import Call, Scratch, run_calls
from ..faults import naming_index_faults
from .bind import calls_of_copy, calls_of_vertices
from .blocks import Blocks, read_blocks, tensor_of, write_blocks
from .control import Walker
from .host import Array, Run, host_tensor
from .partition import stacked_blocks

Reading = Callable[[str], Array]
"""Returns the current value of a variable as a tensor."""

Observer = Callable[[Operation, Reading], None]
"""Called after an operation that moves, computes or exchanges data with the host."""


def run_tile(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    state: Mapping[str, Array] | None = None,
    observe: Observer | None = None,
) -> Run:
    """Run @main on inputs by name, from the given state or the variables' initial values.

    Raises InputError for a missing or ill-typed input or state, VerifyException for an operation
    that does not suit its variables.

    Args:
        observe: called after each operation, with a function that reads variables.
    """
    return _Evaluator(module, inputs, state or {}, observe).run()


class _Evaluator:
    def __init__(
        self,
        module: ModuleOp,
        inputs: Mapping[str, Array],
        state: Mapping[str, Array],
        observe: Observer | None,
    ) -> None:
        self.observe = observe
        self.inputs = inputs
        self.outputs: dict[str, Array] = {}
        self.scratch = Scratch()
        self.bound: dict[Operation, list[Call]] = {}
        self.variables = {op.symbol: op for op in module.ops if isinstance(op, tile.VariableOp)}
        self.remote: dict[str, Array] = {}
        for op in module.ops:
            if isinstance(op, Remote):
                name = op.symbol
                self.remote[name] = (
                    host_tensor(state, name, op.tensor, "state")
                    if name in state
                    else op.first_value
                )
        self.blocks: dict[str, Blocks] = {}
        for name, variable in self.variables.items():
            self.blocks[name] = blocks = stacked_blocks(variable.placed, variable.tensor)
            if name in state and variable.state is not None:
                write_blocks(host_tensor(state, name, variable.tensor, "state"), blocks)
            elif variable.initial is not None:
                write_blocks(variable.initial.array, blocks)
        known = {n for n, v in self.variables.items() if v.state} | self.remote.keys()
        unknown = [n for n in state if n not in known]
        if unknown:
            raise InputError(f'no state "{min(unknown)}"')
        self.walker: Walker[bool] = Walker(module, self.execute, bool, number=self.number)

    def run(self) -> Run:
        self.walker.call(ENTRY)
        state = {n: self.read(n) for n, v in self.variables.items() if v.state is not None}
        return Run(self.outputs, state | self.remote)

    def read(self, name: str) -> Array:
        return tensor_of(read_blocks(self.blocks[name]), self.variables[name].tensor.get_shape())

    def execute(self, op: Operation, operands: list[bool]) -> Sequence[bool]:
        what = entry_for(_EXECUTE, type(op))
        if what is None:
            raise InputError(f"{op.name} at {place(op)}: not an operation of the tile level")
        results = what(self, op)
        if self.observe is not None:
            self.observe(op, self.read)
        return results

    def number(self, op: RepeatOp, iteration: int) -> Sequence[bool]:
        name = op.iteration_variable
        assert name is not None
        write_blocks(np.array(iteration, np.int32), self.blocks[name])
        if self.observe is not None:
            self.observe(op, self.read)
        return []

    def in_order(self, op: tile.ComputeSetOp | Superstep) -> Sequence[bool]:
        for each in op.body.block.ops:
            self.execute(each, [])
        return []

    def sync(self, op: Sync) -> Sequence[bool]:
        return []

    def vertices(self, op: Vertices) -> Sequence[bool]:
        calls = self.bound.get(op)
        if calls is None:
            # Each variable has an array of its own, whose first row is its first cell.
            calls = self.bound[op] = calls_of_vertices(
                op, self.variables, self.blocks, self.scratch, stacked=True
            )
        with naming_index_faults(op):
            run_calls(calls)
        return []

    def copy(self, op: Copy) -> Sequence[bool]:
        calls = self.bound.get(op)
        if calls is None:
            calls = self.bound[op] = calls_of_copy(op, self.variables, self.blocks, self.scratch)
        run_calls(calls)
        return []

    def input(self, op: Input) -> Sequence[bool]:
        values = host_tensor(self.inputs, op.host_name.data, op.tensor)
        write_blocks(values, self.blocks[op.writes.string_value()])
        return []

    def output(self, op: Output) -> Sequence[bool]:
        values = read_blocks(self.blocks[op.reads.string_value()])
        self.outputs[op.host_name.data] = tensor_of(values, op.tensor.get_shape())
        return []

    def load(self, op: Load) -> Sequence[bool]:
        write_blocks(self.remote[op.remote.string_value()], self.blocks[op.destination])
        return []

    def store(self, op: Store) -> Sequence[bool]:
        values = read_blocks(self.blocks[op.source])
        self.remote[op.remote.string_value()] = tensor_of(values, op.tensor.get_shape())
        return []

    def predicate(self, op: Read) -> Sequence[bool]:
        return [bool(np.reshape(self.read(op.variable.string_value()), ()))]


_EXECUTE: dict[type[Operation], Callable[..., Sequence[bool]]] = {
    tile.ComputeSetOp: _Evaluator.in_order,
    Superstep: _Evaluator.in_order,
    Sync: _Evaluator.sync,
    Vertices: _Evaluator.vertices,
    Copy: _Evaluator.copy,
    Input: _Evaluator.input,
    Output: _Evaluator.output,
    Load: _Evaluator.load,
    Store: _Evaluator.store,
    Read: _Evaluator.predicate,
}
