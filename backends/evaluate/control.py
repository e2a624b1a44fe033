"""One interpreter of functions, calls and control flow, shared by all levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.control import ConditionOp, IfOp, RepeatOp, WhileOp, YieldOp
from ...ir.support.errors import InputError
from ...ir.support.limits import ITERATIONS, Limit
from ...ir.upstream import ModuleOp
from ..iterations import Iterations

Value = TypeVar("Value")

_Do = Callable[[Any, list[Value]], Sequence[Value]]
"""Maps an operation and the values of its operands to the values of its results."""

_Step = tuple[
    _Do[Value] | None, Operation, tuple[SSAValue, ...], tuple[SSAValue, ...], list[SSAValue]
]
"""The function that executes an operation (None for a terminator), the operation, its operands, its
results, and the values that are dead after it.
"""


@dataclass(frozen=True, eq=False)
class _Prepared(Generic[Value]):
    """A block that is ready to run.

    Attributes:
        needless: the arguments that are never read.
    """

    arguments: tuple[SSAValue, ...]
    needless: list[SSAValue]
    steps: list[_Step[Value]]


class Walker(Generic[Value]):
    """Runs the functions of a module; a level provides the meaning of its own operations.

    Attributes:
        execute: maps an operation and the values of its operands to the values of its results.
        truth: maps a predicate's value to a bool.
        number: maps a loop that numbers its iterations, and the number of the iteration that
            begins, to the arguments that the body takes for it; at program levels, it writes a
            variable, and the body takes nothing. At program levels only predicates are values. A
            value is dropped after its last use.
        iteration_limit: the most iterations; None for the configured limit.
    """

    def __init__(
        self,
        module: ModuleOp,
        execute: Callable[[Operation, list[Value]], Sequence[Value]],
        truth: Callable[[Value], bool],
        iteration_limit: int | None = None,
        number: Callable[[RepeatOp, int], Sequence[Value]] = lambda _op, _iteration: (),
        limit: Limit = ITERATIONS,
    ) -> None:
        self.functions = {f.sym_name.data: f for f in module.ops if isinstance(f, FuncOp)}
        self.iterations = Iterations(self.functions, iteration_limit, limit)
        self._execute = execute
        self._truth = truth
        self._number = number
        self._values: dict[SSAValue, Value] = {}
        self._blocks: dict[Block, _Prepared[Value]] = {}
        self._control: dict[type[Operation], _Do[Value]] = {
            CallOp: self._call,
            RepeatOp: self._repeat,
            IfOp: self._if,
            WhileOp: self._while,
        }

    def call(self, name: str, arguments: Sequence[Value] = ()) -> list[Value]:
        """Call a function with the full budget of iterations; returns its results.

        Raises InputError if there is no such function, and IterationLimit as Iterations.
        """
        function = self._function(name)
        self.iterations.begin()
        return self._body(function, arguments)

    def _function(self, name: str) -> FuncOp:
        if name not in self.functions:
            names = ", ".join(self.functions) or "none"
            raise InputError(f"no function @{name}; there are {names}")
        return self.functions[name]

    def _body(self, function: FuncOp, arguments: Sequence[Value]) -> list[Value]:
        # A function that calls itself must find its own values unchanged when it continues.
        saved, self._values = self._values, {}
        try:
            return self._run(self._prepared(function.body.block), arguments)
        finally:
            self._values = saved

    def _run(self, block: _Prepared[Value], arguments: Sequence[Value]) -> list[Value]:
        """Run a block; returns the operands of its terminator."""
        values = self._values
        for argument, value in zip(block.arguments, arguments, strict=True):
            values[argument] = value
        for dead in block.needless:
            del values[dead]
        handed: list[Value] = []
        for do, op, operands, results, deaths in block.steps:
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

    def _prepared(self, block: Block) -> _Prepared[Value]:
        """A step for each operation of a block."""
        known = self._blocks.get(block)
        if known is not None:
            return known
        deaths = _deaths(block)
        steps: list[_Step[Value]] = []
        for op in block.ops:
            do = None
            if not isinstance(op, ReturnOp | YieldOp | ConditionOp):
                do = self._control.get(type(op), self._execute)
            steps.append((do, op, tuple(op.operands), tuple(op.results), deaths.get(op, [])))
        found = _Prepared(tuple(block.args), deaths[None], steps)
        self._blocks[block] = found
        return found

    def _call(self, op: CallOp, operands: list[Value]) -> Sequence[Value]:
        callee = self._function(op.callee.string_value())
        self.iterations.call(op, callee)
        found = self._body(callee, operands)
        self.iterations.back()
        return found

    def _repeat(self, op: RepeatOp, carried: list[Value]) -> Sequence[Value]:
        body = self._prepared(op.body.block)
        iterations = range(self.iterations.repeat(op))
        if op.iteration_number is None and op.turn is None:
            for _ in iterations:
                carried = self._run(body, carried)
        else:
            for iteration in iterations:
                carried = self._run(body, [*carried, *self._number(op, iteration)])
        return carried

    def _if(self, op: IfOp, operands: list[Value]) -> Sequence[Value]:
        chosen = op.then if self._truth(operands[0]) else op.otherwise
        return self._run(self._prepared(chosen.block), ())

    def _while(self, op: WhileOp, carried: list[Value]) -> Sequence[Value]:
        test, body = self._prepared(op.test.block), self._prepared(op.body.block)
        while True:
            (predicate,) = self._run(test, carried)
            if not self._truth(predicate):
                return carried
            self.iterations.take(op)
            carried = self._run(body, carried)


def _deaths(block: Block) -> dict[Operation | None, list[SSAValue]]:
    """The values that are dead after each operation of a block; under None, values that are never
    read.
    """
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
