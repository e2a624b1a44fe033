"""A program that does several steps of training, one after the other, in one run."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import control, nn
from ...ir.edit import Edit
from .emit import Emitter
from .iteration_rows import row_of, with_row, zeros
from .program import end_of, inputs_of, outputs_of, rename_results

STEP = "step"
"""The last part of the location of operations that read a step's batch and collect its results."""


def repeat_steps(main: FuncOp, edit: Edit, count: int) -> None:
    """Turn a function that does one step into one that does several in a run.

    All its operations become the body of a loop, including the loads and stores of its states, so
    each step sees the states that the step before has left. Each input and each result gets a first
    axis of steps. Constants stay in front of the loop.
    """
    block, names = main.body.block, list(inputs_of(main))
    body = Block(arg_types=(control.ITERATION_NUMBER,))
    iteration = body.args[0]
    for op in [*block.ops]:
        if op is not end_of(main) and not isinstance(op, nn.ConstantOp):
            op.detach()
            body.add_op(op)
            edit.modified(op)
    yielding = control.YieldOp()
    body.add_op(yielding)
    first = body.first_op
    assert first is not None
    begin = Emitter(edit, first, main, STEP)
    for argument in tuple(block.args):
        shape, element = nn.shape_of(argument), nn.element_of(argument)
        every = block.insert_arg(nn.tensor((count, *shape), element), argument.index)
        every.location, every.name_hint = argument.location, argument.name_hint
        argument.replace_all_uses_with(row_of(begin, every, iteration))
        block.erase_arg(argument)
    main.properties.pop("arg_names", None)
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, names))
    outer = Emitter(edit, end_of(main), main, STEP)
    # An input that is also a result is now the row of a step.
    results = outputs_of(main)
    tables: list[SSAValue] = []
    yielded: list[SSAValue] = []
    for value in results.values():
        tables.append(zeros(outer, value, (count,)))
        table = body.insert_arg(tables[-1].type, iteration.index)
        # Insert the row of a result right after the result, so that the step ends as a single step
        # does.
        maker = value.owner
        behind = maker.next_op if isinstance(maker, Operation) and maker.parent is body else None
        emit = Emitter(edit, yielding if behind is None else behind, main, STEP)
        yielded.append(with_row(emit, table, value, iteration))
    yielding.operands = yielded
    loop = control.RepeatOp(count, tables, Region(body), runs=True)
    outer.insert(loop)
    rename_results(main, dict(zip(results, loop.outputs, strict=True)), edit)
