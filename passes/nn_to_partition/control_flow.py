"""Functions, loops and branches: the same operations, on values with layouts.

Layouts at the borders of regions are part of the types there. A value that crosses a border in
another layout gets a relayout with the role "carried".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.ir import Attribute, SSAValue

from ...dialects import control
from ...dialects.partition import partition_type
from ...ir.provenance import place
from ...ir.support.errors import InputError
from .conversion import ToPartition


def convert_function(op: func.FuncOp, new: ToPartition) -> None:
    """The inputs of a function lie near their first readers, and its results stay where they are
    computed."""
    name = op.sym_name.data
    inputs: list[Attribute] = [*map(new.types.near_reader, op.body.block.args)]
    outputs: list[Attribute] = []

    def finish(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        outputs.extend(value.type for value in values)
        return values

    body = new.region(op.body, inputs, finish)
    function = func.FuncOp(name, (inputs, outputs), body, op.sym_visibility)
    new.functions[name] = function.function_type
    function.attributes.update(op.attributes)
    new.add(function)


def convert_call(op: func.CallOp, new: ToPartition) -> None:
    """A call hands its arguments over in the layouts of the function.

    Raises InputError for a function that calls itself.
    """
    name = op.callee.string_value()
    # Functions are converted before those that call them.
    declared = new.functions.get(name)
    if declared is None:
        raise InputError(f"{op.name} at {place(op)}: @{name} calls itself")
    operands = new.in_types(new.operands(op), list(declared.inputs))
    call = func.CallOp(op.callee, operands, list(declared.outputs))
    new.add(call)
    new.become(op, call.results)
    for old in op.results:
        new.values[old] = new.brought(new.values[old], old)


def convert_repeat(op: control.RepeatOp, new: ToPartition) -> None:
    """A loop carries each value in one layout, to which an iteration brings what it yields.

        %1 = control.repeat 10 (%0) {^bb0(%x): ... control.yield %2}

    becomes

        %1 = control.repeat 10 (%0) {^bb0(%x): ... %3 = partition.relayout(%2) control.yield %3}
    """
    initial = _carried(op, new)
    types = [value.type for value in initial]
    number = op.iteration_number
    taken = types if number is None else [*types, new.types.iteration_number(number)]
    body = new.region(op.body, taken, lambda values: new.in_types(values, types), repeats=True)
    loop = control.RepeatOp(op.iterations, initial, body, runs=op.runs is not None)
    new.add(loop)
    new.become(op, loop.results)


def convert_while(op: control.WhileOp, new: ToPartition) -> None:
    """A loop with a test: both regions take the values in the layouts that the loop carries."""
    initial = _carried(op, new)
    types = [value.type for value in initial]
    test = new.region(op.test, types, lambda values: values, repeats=True)
    body = new.region(op.body, types, lambda values: new.in_types(values, types), repeats=True)
    loop = control.WhileOp(initial, test, body)
    new.add(loop)
    new.become(op, loop.results)


def _carried(op: control.RepeatOp | control.WhileOp, new: ToPartition) -> list[SSAValue]:
    """The initial values of a loop, in the layouts in which the loop carries them."""
    last = op.body.block.last_op
    assert last is not None
    carried: list[SSAValue] = []
    # The number of the iteration is an argument too, but not carried.
    for given, argument, yielded in zip(
        op.initial, op.body.block.args, last.operands, strict=False
    ):
        value = new.values[given]
        type_ = new.types.carried(partition_type(value), argument, yielded, new.functions)
        carried.append(new.in_layout(value, type_.layout.data, "carried"))
    return carried


def convert_if(op: control.IfOp, new: ToPartition) -> None:
    """A branch: its results lie as the first region leaves them, and the second one follows."""
    types: list[Attribute] = []

    def first(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        types.extend(value.type for value in values)
        return values

    then = new.region(op.then, [], first)
    otherwise = new.region(op.otherwise, [], lambda values: new.in_types(values, types))
    branch = control.IfOp(new.values[op.predicate], types, then, otherwise)
    new.add(branch)
    new.become(op, branch.results)
