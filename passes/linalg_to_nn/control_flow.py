"""Functions, branches and loops of MLIR."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region

from ...dialects import control, nn
from ...ir.refusals import Uncovered
from ...ir.well_known import ENTRY
from .conversion import ToNn, type_in_nn


def function(op: func.FuncOp, new: ToNn) -> None:
    """Convert a function. Numbers among its arguments and results become tensors without axes.

    before: func.func @main(%x: tensor<4xf32>, %n: f32) -> f32 { ... }
    after:  func.func @main(%x: tensor<4xf32>, %n: tensor<f32>) -> tensor<f32> { ... }
    """
    if not op.body.blocks:
        raise Uncovered(f"@{op.sym_name.data} has no body")
    types = [type_in_nn(each) for each in op.function_type.inputs]
    results = [type_in_nn(each) for each in op.function_type.outputs]
    if len(op.body.blocks) > 1:
        raise Uncovered(f"@{op.sym_name.data} has branches between blocks; need scf.if or scf.for")
    body = Block(arg_types=types)
    with new.into(body):
        _argue(op.body.block, body, new)
        last = new.convert_body(op.body.block)
        if new.lost.isdisjoint(last.operands):
            new.add(func.ReturnOp(*map(new.value, last.operands)))
    made = func.FuncOp(op.sym_name.data, (types, results), Region(body), op.sym_visibility)
    made.attributes.update(op.attributes)
    new.add(made)


def call(op: func.CallOp, new: ToNn) -> None:
    """Convert a call."""
    types = [type_in_nn(each.type) for each in op.results]
    given = [new.value(each) for each in op.operands]
    _give(op, new.add(func.CallOp(op.callee.string_value(), given, types)), new)


def branch(op: scf.IfOp, new: ToNn) -> None:
    """Convert scf.if.

    before: %1 = scf.if %c -> (tensor<4xf32>) { ... scf.yield %a } else { ... scf.yield %b }
    after:  %1 = control.if %c : tensor<i1> -> (tensor<4xf32>) { ... } else { ... }
    """
    types = [type_in_nn(each.type) for each in op.results]
    regions = [_region(each, (), new) for each in (op.true_region, op.false_region)]
    _give(op, new.add(control.IfOp(new.value(op.cond), types, *regions)), new)


def loop(op: scf.ForOp, new: ToNn) -> None:
    """Convert scf.for: a loop with a known number of iterations, or with a condition.

    before: %1 = scf.for %i = %zero to %ten step %one iter_args(%x = %0) -> (tensor<4xf32>) { ... }
    after:  %1 = control.repeat 10 (%0) : (tensor<4xf32>) -> (tensor<4xf32>) { ... }
    """
    if all(each in new.whole for each in (op.lb, op.ub, op.step)):
        _repeat(op, new)
    else:
        _while_below(op, new)


def _repeat(op: scf.ForOp, new: ToNn) -> None:
    first, end, step = (new.whole[each] for each in (op.lb, op.ub, op.step))
    if step < 1:
        raise Uncovered(f"a step of {step}; need 1 or more")
    old = op.body.block
    number, *carried = old.args
    initial = [new.value(each) for each in op.iter_args]
    body = Block(arg_types=[each.type for each in initial])
    with new.into(body):
        for before, after in zip(carried, body.args, strict=True):
            new.values[before] = after
        if number.first_use is not None:
            turn = body.insert_arg(nn.tensor((), i32), len(body.args))
            counted = new.emit(nn.CastOp(turn, type_in_nn(number.type).element_type))
            wide = new.emit(nn.ScaleOp(counted, float(step))) if step != 1 else counted
            moved = new.emit(nn.ShiftOp(wide, float(first))) if first else wide
            new.values[number] = moved
        _yield(new.convert_body(old), new)
    turns = max(-(-(end - first) // step), 0)
    _give(op, new.add(control.RepeatOp(turns, initial, Region(body))), new)


def _while_below(op: scf.ForOp, new: ToNn) -> None:
    number, *carried = op.body.block.args
    initial = [new.value(each) for each in (op.lb, *op.iter_args)]
    end, step = new.value(op.ub), new.value(op.step)
    types = [each.type for each in initial]
    test, body = Block(arg_types=types), Block(arg_types=types)
    with new.into(test):
        new.add(control.ConditionOp(new.emit(nn.LessOp(test.args[0], end))))
    with new.into(body):
        for before, after in zip((number, *carried), body.args, strict=True):
            new.values[before] = after
        last = new.convert_body(op.body.block)
        following = new.emit(nn.AddOp(body.args[0], step))
        if new.lost.isdisjoint(last.operands):
            new.add(control.YieldOp(following, *map(new.value, last.operands)))
    made = new.add(control.WhileOp(initial, Region(test), Region(body)))
    for old, result in zip(op.results, made.results[1:], strict=True):
        new.values[old] = result


def while_(op: scf.WhileOp, new: ToNn) -> None:
    """Convert scf.while whose condition passes on what its first region takes.

    before: %1 = scf.while (%x = %0) : ... { ... scf.condition(%c) %x } do { ... scf.yield %2 }
    after:  %1 = control.while (%0) : ... { ... control.condition %c } do { ... control.yield %2 }
    """
    initial = [new.value(each) for each in op.arguments]
    types = [each.type for each in initial]
    old = op.before_region.block
    last = old.last_op
    if not isinstance(last, scf.ConditionOp) or list(last.args) != list(old.args):
        raise Uncovered("a condition that passes on other values than its region takes")
    test = Block(arg_types=types)
    with new.into(test):
        _argue(old, test, new)
        _ = new.convert_body(old)
        if last.condition not in new.lost:
            new.add(control.ConditionOp(new.value(last.condition)))
    body = _region(op.after_region, types, new)
    _give(op, new.add(control.WhileOp(initial, Region(test), body)), new)


def _region(region: Region, types: Sequence[Attribute], new: ToNn) -> Region:
    """The new region of an old one, which ends in a yield; an absent one only yields nothing."""
    body = Block(arg_types=types)
    with new.into(body):
        if region.blocks:
            _argue(region.block, body, new)
            _yield(new.convert_body(region.block), new)
        else:
            new.add(control.YieldOp())
    return Region(body)


def _argue(old: Block, made: Block, new: ToNn) -> None:
    for before, after in zip(old.args, made.args, strict=True):
        new.values[before] = after
        after.name_hint = before.name_hint
        after.location = before.location


def _yield(last: Operation, new: ToNn) -> None:
    if new.lost.isdisjoint(last.operands):
        new.add(control.YieldOp(*map(new.value, last.operands)))


def _give(old: Operation, made: Operation, new: ToNn) -> None:
    for before, after in zip(old.results, made.results, strict=True):
        new.values[before] = after


def only_function_is_the_entry(block: Block) -> None:
    """Call the only function of a program @main, which is where runs begin."""
    found = [each for each in block.ops if isinstance(each, func.FuncOp)]
    if len(found) == 1:
        found[0].properties["sym_name"] = StringAttr(ENTRY)
