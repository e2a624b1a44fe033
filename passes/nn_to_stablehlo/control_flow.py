"""Branches and loops of nn as operations of stablehlo."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import control, stablehlo
from ..exporting.terms import Term
from .conversion import ToStablehlo
from .numbers import Numbers


def repeat(op: control.RepeatOp, new: ToStablehlo) -> None:
    """Convert a loop with a known number of iterations: a loop that counts them.

    before: %1 = control.repeat 10(%0) : (tensor<4xf32>) -> tensor<4xf32> { ... }
    after:  %n, %1 = "stablehlo.while"(%zero, %0) ({ ... %n < 10 ... }, { ... }) : ...
    """
    states = new.changed_by(op)
    carried = [*(new.values[v] for v in op.initial), *new.loaded(states)]
    initial = [new.known(np.array(0, np.int32)), *carried]
    types = [each.type for each in initial]
    test, body = Block(arg_types=types), Block(arg_types=types)
    with new.nested(test):
        to = Numbers((), new)
        ends = to.compare("less", Term(test.args[0], i32), to.number(op.iterations, i32))
        new.add(_return(ends.value))
    with new.nested(body):
        for before, after in zip(op.body.block.args, body.args[1:], strict=False):
            new.values[before] = after
        if op.iteration_number is not None:
            new.values[op.iteration_number] = body.args[0]
        with new.iteration(states, body.args[1 + len(op.initial) :]):
            last = new.convert_body(op.body.block)
            left = new.left(states)
        to = Numbers((), new)
        turn = to.primitive("add", Term(body.args[0], i32), to.number(1, i32))
        if new.lost.isdisjoint(last.operands):
            new.add(_return(turn.value, *(new.values[v] for v in last.operands), *left))
    made = new.add(_loop(initial, test, body))
    for before, after in zip(op.results, made.results[1:], strict=False):
        new.values[before] = after
    new.states.left.update(zip(states, made.results[1 + len(op.results) :], strict=True))


def branch(op: control.IfOp, new: ToStablehlo) -> None:
    """Convert a branch.

    before: %1 = control.if %c : tensor<i1> -> (tensor<4xf32>) { ... } else { ... }
    after:  %1 = "stablehlo.if"(%c) ({ ... }, { ... }) : (tensor<i1>) -> tensor<4xf32>
    """
    regions: list[Region] = []
    for old in (op.then, op.otherwise):
        body = Block()
        with new.nested(body):
            last = new.convert_body(old.block)
            if new.lost.isdisjoint(last.operands):
                new.add(_return(*(new.values[v] for v in last.operands)))
        regions.append(Region(body))
    truth = new.reshaped(new.values[op.predicate], ())
    types = [each.type for each in op.outputs]
    made = new.add(stablehlo.IfOp.build(operands=[truth], result_types=[types], regions=regions))
    for before, after in zip(op.results, made.results, strict=True):
        new.values[before] = after


def while_(op: control.WhileOp, new: ToStablehlo) -> None:
    """Convert a loop with a condition.

    before: %1 = control.while(%0) ... { ... control.condition %c } do { ... }
    after:  %1 = "stablehlo.while"(%0) ({ ... }, { ... }) : (tensor<4xf32>) -> tensor<4xf32>
    """
    initial = [new.values[v] for v in op.initial]
    types = [each.type for each in initial]
    test, body = Block(arg_types=types), Block(arg_types=types)
    for old, made in ((op.test.block, test), (op.body.block, body)):
        with new.nested(made):
            for before, after in zip(old.args, made.args, strict=True):
                new.values[before] = after
            last = new.convert_body(old)
            if new.lost.isdisjoint(last.operands):
                values = [new.values[v] for v in last.operands]
                if made is test:
                    values = [new.reshaped(values[0], ())]
                new.add(_return(*values))
    made_loop = new.add(_loop(initial, test, body))
    for before, after in zip(op.results, made_loop.results, strict=True):
        new.values[before] = after


def _loop(initial: list[SSAValue], test: Block, body: Block) -> Operation:
    types = [each.type for each in initial]
    return stablehlo.WhileOp.build(
        operands=[initial], result_types=[types], regions=[Region(test), Region(body)]
    )


def _return(*values: SSAValue) -> Operation:
    return stablehlo.ReturnOp.build(operands=[list(values)])
