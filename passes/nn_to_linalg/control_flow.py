"""Branches and loops of nn as operations of scf."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, i1, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import control
from .conversion import ToLinalg


def repeat(op: control.RepeatOp, new: ToLinalg) -> None:
    """Convert a loop with a known number of iterations.

    before: %1 = control.repeat 10(%0) : (tensor<4xf32>) -> tensor<4xf32> { ... }
    after:  %1 = scf.for %i = %zero to %ten step %one iter_args(%x = %0) -> (tensor<4xf32>) { ... }
    """
    states = new.changed_by(op)
    first, end, step = (_index(n, new) for n in (0, op.iterations, 1))
    initial = [*(new.values[each] for each in op.initial), *new.loaded(states)]
    body = Block(arg_types=[IndexType(), *(each.type for each in initial)])
    with new.nested(body):
        for before, after in zip(op.body.block.args, body.args[1:], strict=False):
            new.values[before] = after
        number = op.iteration_number
        if number is not None:
            counted = new.emit(arith.IndexCastOp(body.args[0], i32))
            type_ = TensorType(i32, [])
            new.values[number] = new.emit(
                tensor.FromElementsOp.build(operands=[[counted]], result_types=[type_])
            )
        with new.iteration(states, body.args[1 + len(op.initial) :]):
            last = new.convert_body(op.body.block)
            _yield(last, new, new.left(states))
    made = new.add(scf.ForOp(first, end, step, initial, body))
    _give(op, made, new)
    new.states.left.update(zip(states, made.results[len(op.results) :], strict=True))


def branch(op: control.IfOp, new: ToLinalg) -> None:
    """Convert a branch.

    before: %1 = control.if %c : tensor<i1> -> (tensor<4xf32>) { ... } else { ... }
    after:  %p = tensor.extract %c[] : tensor<i1>
            %1 = scf.if %p -> (tensor<4xf32>) { ... } else { ... }
    """
    regions: list[Region] = []
    for old in (op.then, op.otherwise):
        body = Block()
        with new.nested(body):
            _yield(new.convert_body(old.block), new)
        regions.append(Region(body))
    types = [new.type_of(each.type) for each in op.outputs]
    made = scf.IfOp(_truth(new.values[op.predicate], new), types, regions[0], regions[1])
    _give(op, new.add(made), new)


def while_(op: control.WhileOp, new: ToLinalg) -> None:
    """Convert a loop with a condition.

    before: %1 = control.while(%0) ... { ... control.condition %c } do { ... }
    after:  %1 = scf.while (%x = %0) ... { ... scf.condition(%p) %x } do { ... }
    """
    initial = [new.values[each] for each in op.initial]
    types = [each.type for each in initial]
    test, body = Block(arg_types=types), Block(arg_types=types)
    with new.nested(test):
        _argue(op.test.block, test, new)
        last = new.convert_body(op.test.block)
        if new.lost.isdisjoint(last.operands):
            truth = _truth(new.values[last.operands[0]], new)
            new.add(scf.ConditionOp(truth, *test.args))
    with new.nested(body):
        _argue(op.body.block, body, new)
        _yield(new.convert_body(op.body.block), new)
    made = scf.WhileOp(initial, types, Region(test), Region(body))
    _give(op, new.add(made), new)


def _index(value: int, new: ToLinalg) -> SSAValue:
    return new.emit(arith.ConstantOp(IntegerAttr(value, IndexType())))


def _truth(value: SSAValue, new: ToLinalg) -> SSAValue:
    alone = new.reshaped(value, ())
    return new.emit(tensor.ExtractOp(alone, (), i1))


def _argue(old: Block, made: Block, new: ToLinalg) -> None:
    for before, after in zip(old.args, made.args, strict=True):
        new.values[before] = after


def _yield(last: Operation, new: ToLinalg, more: Sequence[SSAValue] = ()) -> None:
    if new.lost.isdisjoint(last.operands):
        new.add(scf.YieldOp(*_values(last.operands, new), *more))


def _values(old: Sequence[SSAValue], new: ToLinalg) -> list[SSAValue]:
    return [new.values[each] for each in old]


def _give(old: Operation, made: Operation, new: ToLinalg) -> None:
    for before, after in zip(old.results, made.results, strict=False):
        new.values[before] = after
