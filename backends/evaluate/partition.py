"""Runs a module of the partition level: a value is the stacked blocks of its cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from ...dialects import partition
from ...dialects.control import RepeatOp
from ...dialects.dtypes import numpy_dtype
from ...dialects.host import host_names
from ...dialects.partition import PartitionTensor, partition_type
from ...dialects.variable import ALIGNMENT, bytes_per_tile
from ...ir.geometry.layout import Layout
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..codelets.numerics import Placed, run_vertices
from ..faults import naming_index_faults
from .blocks import Blocks, copy_blocks, read_blocks, tensor_of, write_blocks
from .control import Walker
from .host import Array, Run, host_tensor
from .users_levels import EVALUATORS, computed


@dataclass(frozen=True)
class Stacked:
    """A tensor as the blocks of its cells: row c of the memory is cell c, on whichever tile it
    lives.

    Its memory is not written again once it is complete.
    """

    tensor: TensorType
    blocks: Blocks

    @property
    def values(self) -> Array:
        """The tensor itself."""
        return tensor_of(read_blocks(self.blocks), self.tensor.get_shape())


Observer = Callable[[Operation, Sequence[Stacked], Sequence[Stacked]], None]
"""Called after an operation of the level with its operands and results."""


def stacked(type: PartitionTensor) -> Stacked:
    """Memory for a value of a type."""
    layout = type.layout.data
    return Stacked(type.tensor, stacked_blocks(layout, type.tensor))


def stacked_blocks(layout: Layout, tensor: TensorType) -> Blocks:
    """Memory for the blocks of a layout. Its bytes are 0xFF until they are written."""
    dtype = numpy_dtype(tensor.element_type)
    row = bytes_per_tile(layout, dtype.itemsize)
    memory = np.full((layout.cells, max(row, ALIGNMENT)), 0xFF, np.uint8)
    return Blocks(Placed(memory, 0, dtype), layout.stacked)


def run_partition(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    state: Mapping[str, Array] | None = None,
    observe: Observer | None = None,
) -> Run:
    """Run @main on inputs by name, from the given state or the module's.

    Raises InputError for a missing or ill-typed input or state.

    Args:
        observe: called after each operation of the level.
    """
    return _Evaluator(module, state or {}, observe).run(inputs)


class _Evaluator:
    def __init__(
        self, module: ModuleOp, given: Mapping[str, Array], observe: Observer | None
    ) -> None:
        self.observe = observe
        self.states: dict[str, Stacked] = {}
        for op in module.ops:
            if isinstance(op, partition.StateOp):
                name, type = op.sym_name.data, op.type
                initial = op.initial.array.reshape(type.tensor.get_shape())
                values = (
                    host_tensor(given, name, type.tensor, "state") if name in given else initial
                )
                self.states[name] = _filled(type, values)
        unknown = set(given) - set(self.states)
        if unknown:
            raise InputError(f'no state "{min(unknown)}"; there are {", ".join(self.states)}')
        self.before = dict(self.states)
        self.walker: Walker[Stacked] = Walker(module, self.execute, _truth, number=self.number)

    def run(self, inputs: Mapping[str, Array]) -> Run:
        main = self.walker.functions.get(ENTRY)
        if main is None:
            raise InputError("no function @main")
        types = [partition_type(a) for a in main.body.block.args]
        names = host_names(main, "arg_names", len(types))
        arguments = [
            _filled(t, host_tensor(inputs, n, t.tensor)) for n, t in zip(names, types, strict=True)
        ]
        results = self.walker.call(ENTRY, arguments)
        outputs = host_names(main, "result_names", len(results))
        return Run(
            {name: r.values for name, r in zip(outputs, results, strict=True)},
            {name: value.values for name, value in self.states.items()},
        )

    def execute(self, op: Operation, operands: list[Stacked]) -> Sequence[Stacked]:
        what = _EXECUTE.get(type(op))
        if what is None and op.name in EVALUATORS:
            what = _Evaluator.computed
        if what is None:
            raise InputError(f"{op.name} at {place(op)}: not an operation of the partition level")
        results = what(self, op, operands)
        if self.observe is not None:
            self.observe(op, operands, results)
        return results

    def number(self, op: RepeatOp, iteration: int) -> Sequence[Stacked]:
        number = op.iteration_number
        assert number is not None
        if op.runs is not None:
            self.before = dict(self.states)
        return [_filled(partition_type(number), np.array(iteration, np.int32))]

    def load(self, op: partition.LoadOp, operands: list[Stacked]) -> Sequence[Stacked]:
        held, type = self.before[op.state.string_value()], partition_type(op.result)
        if held.blocks.layout == type.layout.data.stacked:
            return [held]
        # Remote memory holds elements, and a load may lay them out in any way.
        return [_filled(type, held.values)]

    def store(self, op: partition.StoreOp, operands: list[Stacked]) -> Sequence[Stacked]:
        self.states[op.state.string_value()] = operands[0]
        return []

    def constant(self, op: partition.ConstantOp, operands: list[Stacked]) -> Sequence[Stacked]:
        return [_filled(partition_type(op.result), op.value.array)]

    def compute(self, op: partition.ComputeOp, operands: list[Stacked]) -> Sequence[Stacked]:
        results = [stacked(partition_type(value)) for value in op.made]
        with naming_index_faults(op):
            run_vertices(
                op.structure(),
                op.plan.data.stacked,
                [o.blocks.placed for o in operands],
                *(result.blocks.placed for result in results),
            )
        return results

    def relayout(self, op: partition.RelayoutOp, operands: list[Stacked]) -> Sequence[Stacked]:
        result = stacked(partition_type(op.result))
        moves = None if op.moves is None else [m.data for m in op.moves]
        copy_blocks([o.blocks for o in operands], moves, result.blocks)
        return [result]

    def computed(self, op: Operation, operands: list[Stacked]) -> Sequence[Stacked]:
        types = [partition_type(value) for value in op.results]
        kinds = [
            (tuple(each.tensor.get_shape()), numpy_dtype(each.tensor.element_type))
            for each in types
        ]
        values = computed(op, [each.values for each in operands], kinds)
        return [_filled(type, each) for type, each in zip(types, values, strict=True)]

    def reshape(self, op: partition.ReshapeOp, operands: list[Stacked]) -> Sequence[Stacked]:
        return [replace(operands[0], tensor=partition_type(op.result).tensor)]


_EXECUTE: dict[type[Operation], Callable[..., Sequence[Stacked]]] = {
    partition.LoadOp: _Evaluator.load,
    partition.StoreOp: _Evaluator.store,
    partition.ConstantOp: _Evaluator.constant,
    partition.ComputeOp: _Evaluator.compute,
    partition.RelayoutOp: _Evaluator.relayout,
    partition.ReshapeOp: _Evaluator.reshape,
}


def _filled(type: PartitionTensor, values: Array) -> Stacked:
    result = stacked(type)
    write_blocks(values, result.blocks)
    return result


def _truth(value: Stacked) -> bool:
    return bool(value.values.reshape(()))
