"""A step of training that takes its batch in parts, one after the other.

The given program computes one part, a micro-batch. First, each input becomes large enough for the
whole batch, and the program reads the part with a given number. Once the gradients are built, all
operations that depend on this number become the body of a loop, which carries the sums of the
gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ...dialects import control, nn
from ...ir.blob import Blob
from ...ir.edit import Edit
from ...ir.support.errors import InputError
from .emit import Emitter
from .iteration_rows import narrowed, nothing_at, row_of, widened, with_row, zeros
from .program import chosen, end_of, inputs_of
from .way import read_by

STEP = "micro-batch"
"""The last part of the location of operations that read and collect the parts of a batch."""

NONE = "none"
"""Written instead of an axis for an input that is the same for all parts of a batch."""


def read_axes(given: Iterable[str], names: Iterable[str]) -> dict[str, int | None]:
    """The axis of samples of each named input, from texts such as "x:1"; None if it has no such
    axis.

    Raises InputError.
    """
    found: dict[str, int | None] = {}
    for each in given:
        name, _, text = each.rpartition(":")
        if not (text.isdecimal() or text == NONE):
            raise InputError(f"batch_axes {each!r}; need INPUT:AXIS or INPUT:{NONE}")
        chosen("input", name, list(names))
        found[name] = None if text == NONE else int(text)
    return found


@dataclass
class MicroBatches:
    """The parts of a batch.

    Attributes:
        count: the number of parts.
        size: the samples per part.
        iteration: the number of the current part: an operation that stands for it until the loop
            exists.
    """

    main: FuncOp
    edit: Edit
    count: int
    size: int
    iteration: nn.ConstantOp = field(init=False)

    def __post_init__(self) -> None:
        self.iteration = nn.ConstantOp(Blob(np.zeros((), np.int32)))
        first = self.main.body.block.first_op
        assert first is not None
        Emitter(self.edit, first, self.main, STEP).insert(self.iteration)

    def cut(self, axes: Mapping[str, int | None]) -> None:
        """Make each input large enough for a whole batch, and let the program read a part of it.

        Raises InputError for an input whose axis has another number of samples.

        Args:
            axes: the axis of the samples, for inputs where it is not the first.
        """
        size = self.size
        for name, argument in inputs_of(self.main).items():
            shape, axis = nn.shape_of(argument), axes.get(name, 0)
            if axis is None or (not shape and name not in axes):
                continue
            if axis >= len(shape) or shape[axis] != size:
                raise InputError(
                    f"micro_batches: input {name!r} of shape {list(shape)} has not {size} samples "
                    f"along axis {axis}, as the output has; need batch_axes {name}:AXIS, or "
                    f"{name}:{NONE} if it is the same for all samples"
                )
            self.cut_input(argument, axis)

    def cut_input(self, argument: SSAValue, axis: int = 0) -> tuple[SSAValue, SSAValue]:
        """Make an argument as large as a whole batch. Returns it, and the part that its users now
        read.
        """
        block = self.main.body.block
        assert isinstance(argument, BlockArgument)
        shape, element = nn.shape_of(argument), nn.element_of(argument)
        whole = (*shape[:axis], shape[axis] * self.count, *shape[axis + 1 :])
        emit = Emitter(self.edit, self._after_iteration(), self.main, STEP)
        large = block.insert_arg(nn.tensor(whole, element), argument.index)
        large.location, large.name_hint = argument.location, argument.name_hint
        apart = emit.reshaped(large, (*shape[:axis], self.count, *shape[axis:]))
        part = row_of(emit, apart, self.iteration.result, axis)
        argument.replace_all_uses_with(part)
        block.erase_arg(argument)
        self.main.update_function_type()
        return large, part

    def _after_iteration(self) -> Operation:
        found = self.iteration.next_op
        assert found is not None
        return found

    def run(
        self,
        summed: Sequence[tuple[SSAValue, SSAValue | None]],
        joined: Sequence[SSAValue],
        last: Sequence[SSAValue],
    ) -> tuple[list[SSAValue], list[SSAValue], list[SSAValue]]:
        """Move the operations that depend on the part's number into a loop over the parts of the
        batch.

        Returns the sums of `summed` over all parts, the values of `joined` of all parts joined
        along their first axis, and the values of `last` in the last part. Sums are computed in a
        wide type, in the layout of the second value of each pair, if there is one. A state that the
        program stores is carried from one part to the next.
        """
        main = self.main.body.block
        stores = [op for op in main.ops if isinstance(op, nn.StoreOp)]
        loads = self._loads_of(stores)
        inside = self._depending([self.iteration, *(op for ops in loads for op in ops)])
        body = Block()
        for op in inside:
            op.detach()
            body.add_op(op)
            self.edit.modified(op)
        yielding = control.YieldOp()
        body.add_op(yielding)
        outer = Emitter(self.edit, end_of(self.main), self.main, STEP)
        inner = Emitter(self.edit, yielding, self.main, STEP)
        initial: list[SSAValue] = []
        yielded: list[SSAValue] = []

        def carry(value: SSAValue) -> SSAValue:
            """The body's argument whose initial value is `value`."""
            initial.append(value)
            return body.insert_arg(value.type, len(body.args))

        now: dict[SSAValue, SSAValue] = {}
        for store, ops in zip(stores, loads, strict=True):
            argument = carry(ops[0].result)
            for load in ops:
                load.result.replace_all_uses_with(argument)
                now[load.result] = argument
            yielded.append(store.stored)
        for value, beside in summed:
            own = widened(inner, value)
            total = carry(nothing_at(outer, value if beside is None else beside))
            yielded.append(inner(nn.AddOp(total, own)))
        for value in joined:
            table = carry(zeros(outer, value, (self.count,)))
            yielded.append(with_row(inner, table, now.get(value, value), self.iteration.result))
        for value in last:
            carry(zeros(outer, value))
            yielded.append(now.get(value, value))
        self.iteration.result.replace_all_uses_with(
            body.insert_arg(control.ITERATION_NUMBER, len(body.args))
        )
        self.edit.erase(self.iteration)
        yielding.operands = yielded
        loop = control.RepeatOp(self.count, initial, Region(body))
        loop.attributes[control.MICRO_BATCHES] = UnitAttr()
        outer.insert(loop)
        sums = [value for value, _ in summed]
        return self._results(outer, list(loop.outputs), stores, sums, joined)

    def _results(
        self,
        emit: Emitter,
        found: list[SSAValue],
        stores: Sequence[nn.StoreOp],
        summed: Sequence[SSAValue],
        joined: Sequence[SSAValue],
    ) -> tuple[list[SSAValue], list[SSAValue], list[SSAValue]]:
        """The results of the loop: store the states, and cast sums and tables to their own
        types."""
        for store, value in zip(stores, found, strict=False):
            emit.insert(nn.StoreOp(value, store.state.string_value()))
            store.detach()
            self.edit.erase(store)
        del found[: len(stores)]
        sums = [narrowed(emit, total, value) for total, value in zip(found, summed, strict=False)]
        del found[: len(summed)]
        tables: list[SSAValue] = []
        for table in found[: len(joined)]:
            count, first, *others = nn.shape_of(table)
            tables.append(emit.reshaped(table, (count * first, *others)))
        return sums, tables, found[len(joined) :]

    def _loads_of(self, stores: Sequence[nn.StoreOp]) -> list[list[nn.LoadOp]]:
        """For each store, the operations that load its state, one or more."""
        block = self.main.body.block
        found: list[list[nn.LoadOp]] = []
        for store in stores:
            name = store.state.string_value()
            loads = [
                op
                for op in block.ops
                if isinstance(op, nn.LoadOp) and op.state.string_value() == name
            ]
            if not loads:
                type_ = nn.tensor(nn.shape_of(store.stored), nn.element_of(store.stored))
                emit = Emitter(self.edit, self._after_iteration(), store, STEP)
                loads = [nn.LoadOp(name, type_)]
                emit.insert(loads[0])
            found.append(loads)
        return found

    def _depending(self, roots: Sequence[Operation]) -> list[Operation]:
        """The operations that depend on `roots`, without stores."""
        known = {value for op in roots for value in op.results}
        found: list[Operation] = []
        for op in self.main.body.block.ops:
            if isinstance(op, ReturnOp | nn.StoreOp) or op in roots:
                continue
            if any(value in known for value in read_by(op)):
                found.append(op)
                known.update(op.results)
        return found
