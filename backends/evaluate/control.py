"""One walk through functions, calls and control flow, whatever the level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.control import ConditionOp, IfOp, RepeatOp, WhileOp, YieldOp
from ...ir.errors import InputError
from ...ir.provenance import place
from ...ir.upstream import ModuleOp
from ..faults import IterationLimit

Value = TypeVar("Value")

ITERATION_LIMIT = 1_000_000
"""Turns of one while loop after which it is considered endless."""


_Do = Callable[[Any, list[Value]], Sequence[Value]]
"""An operation and the values of its operands to the values of its results."""

_Step = tuple[
    Operation, _Do[Value] | None, tuple[SSAValue, ...], tuple[SSAValue, ...], list[SSAValue]
]
"""An operation, the function that executes it (None for one that ends its block), its operands, its
results, and the values that nothing needs after it."""


class Walker(Generic[Value]):
    """Runs the functions of a module; a level provides the meaning of its own operations.

    execute: an operation and the values of its operands to the values of its results. truth: a
    predicate's value to a bool. At program levels only predicates are values. A value is dropped
    after its last use.
    """

    def __init__(
        self,
        module: ModuleOp,
        execute: Callable[[Operation, list[Value]], Sequence[Value]],
        truth: Callable[[Value], bool],
        iteration_limit: int = ITERATION_LIMIT,
    ) -> None:
        self.functions = {f.sym_name.data: f for f in module.ops if isinstance(f, FuncOp)}
        self.iteration_limit = iteration_limit
        self._execute = execute
        self._truth = truth
        self._values: dict[SSAValue, Value] = {}
        self._steps: dict[Block, tuple[list[SSAValue], list[_Step[Value]]]] = {}
        self._control: dict[type[Operation], _Do[Value]] = {
            CallOp: self._call,
            RepeatOp: self._repeat,
            IfOp: self._if,
            WhileOp: self._while,
        }

    def call(self, name: str, arguments: Sequence[Value] = ()) -> list[Value]:
        """The results of a function. Raises InputError if there is none of that name."""
        function = self.functions.get(name)
        if function is None:
            raise InputError(
                f"no function @{name}; there are {', '.join(self.functions) or 'none'}"
            )
        # A function that calls itself finds its own values untouched when it goes on.
        saved, self._values = self._values, {}
        try:
            return self._run(function.body, arguments)
        finally:
            self._values = saved

    def _run(self, region: Region, arguments: Sequence[Value]) -> list[Value]:
        """Run a region's block; returns the operands of its terminator."""
        block = region.block
        if block not in self._steps:
            self._steps[block] = self._prepared(block)
        needless, steps = self._steps[block]
        values = self._values
        for argument, value in zip(block.args, arguments, strict=True):
            values[argument] = value
        for dead in needless:
            del values[dead]
        handed: list[Value] = []
        for op, do, operands, results, deaths in steps:
            given = [values[operand] for operand in operands]
            if do is None:
                handed = given
            else:
                found = do(op, given)
                for result, value in zip(results, found, strict=True):
                    values[result] = value
            del given
            for dead in deaths:
                del values[dead]
        return handed

    def _prepared(self, block: Block) -> tuple[list[SSAValue], list[_Step[Value]]]:
        """The arguments of a block that nothing needs, and a step for each operation."""
        deaths = _deaths(block)
        steps: list[_Step[Value]] = []
        for op in block.ops:
            do = None
            if not isinstance(op, ReturnOp | YieldOp | ConditionOp):
                do = self._control.get(type(op), self._execute)
            steps.append((op, do, tuple(op.operands), tuple(op.results), deaths.get(op, [])))
        return deaths[None], steps

    def _call(self, op: CallOp, operands: list[Value]) -> Sequence[Value]:
        return self.call(op.callee.string_value(), operands)

    def _repeat(self, op: RepeatOp, carried: list[Value]) -> Sequence[Value]:
        for _ in range(op.turns):
            carried = self._run(op.body, carried)
        return carried

    def _if(self, op: IfOp, operands: list[Value]) -> Sequence[Value]:
        return self._run(op.then if self._truth(operands[0]) else op.otherwise, ())

    def _while(self, op: WhileOp, carried: list[Value]) -> Sequence[Value]:
        for _ in range(self.iteration_limit):
            (predicate,) = self._run(op.test, carried)
            if not self._truth(predicate):
                return carried
            carried = self._run(op.body, carried)
        raise IterationLimit(
            f"control.while at {place(op)}: still going after {self.iteration_limit} turns"
        )


def _deaths(block: Block) -> dict[Operation | None, list[SSAValue]]:
    """The values that nothing needs after each operation of a block; under None, those that nothing
    needs at all."""
    last: dict[SSAValue, Operation | None] = dict.fromkeys(block.args)
    for op in block.ops:
        last.update(dict.fromkeys(op.results, op))
        for inner in op.walk():
            for operand in inner.operands:
                if operand in last:
                    last[operand] = op
    deaths: dict[Operation | None, list[SSAValue]] = {None: []}
    for value, op in last.items():
        deaths.setdefault(op, []).append(value)
    return deaths
