"""Functions, loops and branches: values that cross their borders are in variables of their own.

A value that an iteration yields is computed directly into the variable that it replaces, if nothing
reads the old value later. All others are copied there. Values that only go from call to call stay
where the function takes or leaves them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.ir import Block, Region, SSAValue

from ...dialects import control, tile
from ...dialects.host import host_names
from ...dialects.partition import PartitionTensor, partition_type
from ...dialects.placement import keep_placement
from ...ir.well_known import ENTRY
from ..analysis.carried_in_place import Loop, carried_in_place
from .conversion import Signature, ToTile
from .io_tiles import give, take
from .states import copy_old_values

# Functions


def declare_function(op: func.FuncOp, new: ToTile) -> None:
    """Declare the variables that a function takes, and those that it leaves its results in."""
    new.source = op
    name = op.sym_name.data
    arguments = op.body.block.args
    hints = host_names(op, "arg_names", len(arguments))
    if name != ENTRY:
        hints = [f"{name}.{hint}" for hint in hints]
    parameters = [
        new.parameter_of(argument) or new.fresh(partition_type(argument), hint)
        for argument, hint in zip(arguments, hints, strict=True)
    ]
    new.where.update(zip(arguments, parameters, strict=True))
    results: list[str] = []
    if name != ENTRY:
        for i, type_ in enumerate(op.function_type.outputs):
            assert isinstance(type_, PartitionTensor)
            updated = new.calls.updated.get((name, i))
            results.append(
                new.fresh(type_, f"{name}.out{i}") if updated is None else parameters[updated]
            )
    new.functions[name] = Signature(parameters, results)


def convert_function(op: func.FuncOp, new: ToTile) -> None:
    """A function works on its variables; @main exchanges them with the host.

        func.func @main(%x: T) -> T { ... func.return %y : T }

    becomes

        func.func @main() { tile.input "arg0" -> @x : T ... tile.output @y -> "out0" : T }
    """
    with new.into(Block()) as block:
        new.source = op
        if op.sym_name.data == ENTRY:
            _run(op, new)
        else:
            last = new.convert_body(op.body.block)
            new.copy_all(new.variables_of(last.operands), new.functions[op.sym_name.data].results)
        new.add(func.ReturnOp())
    function = func.FuncOp(op.sym_name.data, ([], []), Region(block), op.sym_visibility)
    keep_placement(op, function)
    new.add(function)


def _run(op: func.FuncOp, new: ToTile) -> None:
    """Convert the body of @main, between the inputs and the outputs of a run."""
    parameters = new.functions[ENTRY].parameters
    names = host_names(op, "arg_names", len(parameters))
    aside = new.aside
    for host, variable in zip(names, parameters, strict=True):
        if aside is None:
            new.add(tile.InputOp(host, variable, new.types[variable].tensor))
        else:
            take(aside, host, variable, new)
    copy_old_values(None, new)
    last = new.convert_body(op.body.block)
    new.source = op
    names = host_names(op, "result_names", len(last.operands))
    for host, value in zip(names, last.operands, strict=True):
        tensor = partition_type(value).tensor
        if aside is None:
            new.add(tile.OutputOp(new.where[value], host, tensor))
        else:
            give(aside, new.where[value], host, tensor, new)


def convert_call(op: func.CallOp, new: ToTile) -> None:
    """A call becomes copies to the parameters, the call, and copies from the results.

    `CallsInPlace` says what need not be copied.
    """
    callee = op.callee.string_value()
    signature = new.functions[callee]
    new.copy_all(new.variables_of(op.arguments), signature.parameters)
    new.add(func.CallOp(callee, [], []))
    for result, variable in zip(op.results, signature.results, strict=True):
        if result in new.calls.left and result not in new.written:
            new.where[result] = variable
        else:
            new.copy(variable, new.result(result))


# Loops


def convert_repeat(op: control.RepeatOp, new: ToTile) -> None:
    """A loop works on the variables that it carries, which are its results too.

        %1 = control.repeat 10 (%0) {^bb0(%x): ... control.yield %2}

    becomes

        tile.copy [@a] -> @b    control.repeat 10 () { ... tile.copy [@c] -> @b control.yield }
    """
    variables = _carried(op, op.results, new)
    number, iteration = op.iteration_number, None
    new.where.update(zip(op.body.block.args, variables, strict=number is None))
    if number is not None:
        iteration = new.where[number] = new.fresh(partition_type(number))
    new.add(control.RepeatOp(op.iterations, [], _region(op.body, variables, new), iteration))


def convert_while(op: control.WhileOp, new: ToTile) -> None:
    """A loop with a test: both regions work on the variables that the loop carries."""
    variables = _carried(op, op.results, new)
    new.where.update(zip(op.test.block.args, variables, strict=True))
    new.where.update(zip(op.body.block.args, variables, strict=True))
    test = _test(op.test, new)
    new.add(control.WhileOp([], test, _region(op.body, variables, new)))


def _carried(op: Loop, results: Sequence[SSAValue], new: ToTile) -> list[str]:
    """Declare the variables that a loop carries, and copy the initial values there.

    An iteration computes in them what it yields, as far as it may.
    """
    variables = [new.parameter_of(value) or new.fresh(partition_type(value)) for value in results]
    new.copy_all(new.variables_of(op.initial), variables)
    new.where.update(zip(results, variables, strict=True))
    for value, i in carried_in_place(op).items():
        new.written.setdefault(value, variables[i])
    return variables


# Branches, and the regions of loops and branches


def convert_if(op: control.IfOp, new: ToTile) -> None:
    """A branch leaves its results in variables, and decides by a value that a tile holds.

        %1 = control.if %c {... control.yield %2} else {... control.yield %3}

    becomes

        %c = tile.read @c
        control.if %c {... tile.copy [@x] -> @z} else {... tile.copy [@y] -> @z}
    """
    variables = [new.fresh(partition_type(value)) for value in op.results]
    new.where.update(zip(op.results, variables, strict=True))
    predicate = tile.ReadOp(new.where[op.predicate])
    new.add(predicate)
    then, otherwise = _region(op.then, variables, new), _region(op.otherwise, variables, new)
    new.add(control.IfOp(predicate.result, [], then, otherwise))


def _region(region: Region, destinations: Sequence[str], new: ToTile) -> Region:
    """Convert a region; the values that it yields are copied to the destinations."""
    with new.into(Block()) as block:
        parent = region.block.parent_op()
        if isinstance(parent, control.RepeatOp) and parent.runs is not None:
            copy_old_values(parent, new)
        last = new.convert_body(region.block)
        new.copy_all(new.variables_of(last.operands), destinations)
        new.add(control.YieldOp())
    return Region(block)


def _test(region: Region, new: ToTile) -> Region:
    """Convert the test of a loop, which ends in a value that a tile holds."""
    with new.into(Block()) as block:
        last = new.convert_body(region.block)
        predicate = tile.ReadOp(new.where[last.operands[0]])
        new.add(predicate)
        new.add(control.ConditionOp(predicate.result))
    return Region(block)
