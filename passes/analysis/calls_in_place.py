"""The values that cross a call without a copy.

A function works on variables of its own. Callers copy arguments there, and copy results out, but
for these:

- a value that every call of a function passes as the same argument lives in that parameter;
- so does a value that a loop carries only to pass it to the one call of a function in its body;
- a result that is read before the next call of its function is read where the function leaves it;
- a result may overwrite a parameter that the function reads no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects import control, partition
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ...ir.xdsl.around import function_around, nearest
from .calls import calls_of
from .carried_in_place import overwriting, reads_of

Parameter = tuple[str, int]
"""A parameter of a function: its name and the index."""


@dataclass(frozen=True)
class CallsInPlace:
    """The values that are not copied.

    Attributes:
        held: for each value that lives in a parameter, that parameter.
        left: the results of calls that are read where their function leaves them.
        updated: for each result of a function that lies in a parameter, by the name of the function
            and the index of the result, the index of the parameter.
        written: the values that functions may compute in a parameter.
    """

    held: Mapping[SSAValue, Parameter] = field(default_factory=dict[SSAValue, Parameter])
    left: frozenset[SSAValue] = frozenset()
    updated: Mapping[Parameter, int] = field(default_factory=dict[Parameter, int])
    written: Mapping[SSAValue, Parameter] = field(default_factory=dict[SSAValue, Parameter])


def calls_in_place(module: ModuleOp, entry: str) -> CallsInPlace:
    """The values of a module at partition that cross calls without a copy."""
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    calls = calls_of(module)
    found = _Search(
        {name: op for name, op in functions.items() if name != entry and name in calls}, calls
    )
    found.run()
    return CallsInPlace(found.held, frozenset(found.left), found.updated, found.written)


@dataclass
class _Search:
    functions: Mapping[str, FuncOp]
    calls: Mapping[str, list[CallOp]]
    held: dict[SSAValue, Parameter] = field(default_factory=dict[SSAValue, Parameter])
    left: set[SSAValue] = field(default_factory=set[SSAValue])
    updated: dict[Parameter, int] = field(default_factory=dict[Parameter, int])
    written: dict[SSAValue, Parameter] = field(default_factory=dict[SSAValue, Parameter])
    positions: dict[Block, dict[Operation, int]] = field(
        default_factory=dict[Block, dict[Operation, int]]
    )

    def run(self) -> None:
        for name, function in self.functions.items():
            # A function that other functions call too may run between any two operations of one.
            if len({function_around(call) for call in self.calls[name]}) == 1:
                self._updates(name, function)
                self._arguments(name, function)
                self._results(name)

    def _updates(self, name: str, function: FuncOp) -> None:
        """Find the results that overwrite a parameter."""
        block, last = function.body.block, function.body.block.last_op
        assert isinstance(last, ReturnOp)
        position, taken = self._position(block), set[int]()
        for result, value in enumerate(last.operands):
            for index in self._candidates(name, function, result):
                argument = block.args[index]
                if index in taken or argument.type != value.type or value in self.written:
                    continue
                found = overwriting(value, [*reads_of(argument)], position)
                if found:
                    taken.add(index)
                    self.updated[name, result] = index
                    self.written.update((each, (name, index)) for each in found)
                    break

    def _candidates(self, name: str, function: FuncOp, result: int) -> Iterator[int]:
        """The parameters that a loop gives a result to in the next call."""
        for call in self.calls[name]:
            for use in call.results[result].uses:
                loop = use.operation.parent_op()
                if isinstance(use.operation, control.YieldOp) and isinstance(
                    loop, control.RepeatOp
                ):
                    argument = loop.body.block.args[use.index]
                    yield from (each.index for each in argument.uses if each.operation is call)

    def _arguments(self, name: str, function: FuncOp) -> None:
        """Find the values that live in a parameter."""
        calls = self.calls[name]
        for index, parameter in enumerate(function.body.block.args):
            given = {call.arguments[index] for call in calls}
            overwritten = any(
                each == index for (own, _), each in self.updated.items() if own == name
            )
            if len(given) == 1 and not overwritten:
                (value,) = given
                if value.type == parameter.type and value not in self.held and _is_made(value):
                    self.held[value] = name, index
                continue
            for call in calls:
                value = call.arguments[index]
                if value.type == parameter.type and value not in self.held:
                    self._carried(name, index, call, value)

    def _carried(self, name: str, index: int, call: CallOp, value: SSAValue) -> None:
        """Let a value that a loop carries live in a parameter, if that is allowed."""
        loop = call.parent_op()
        if (
            not isinstance(value, BlockArgument)
            or not isinstance(loop, control.RepeatOp)
            or value.block is not call.parent
            or value.index >= len(loop.outputs)
            or len([*value.uses]) != 1
            or sum(loop.is_ancestor(each) for each in self.calls[name]) != 1
        ):
            return
        result, last = loop.outputs[value.index], loop.body.block.last_op
        assert last is not None
        yielded = last.operands[value.index]
        updates = [i for (own, i), each in self.updated.items() if (own, each) == (name, index)]
        if any(yielded is not call.results[i] for i in updates):
            return
        if self._last_use(result, name, loop):
            self.held[value] = self.held[result] = name, index

    def _results(self, name: str) -> None:
        """Find the results of calls that need no copy."""
        for call in self.calls[name]:
            self.left.update(r for r in call.results if self._last_use(r, name, call))

    def _last_use(self, value: SSAValue, name: str, maker: Operation) -> bool:
        """Whether all uses of a value come before the next call of a function, or are the operands
        of the operation that makes it.

        Args:
            maker: the operation whose result the value is.
        """
        block = maker.parent
        assert block is not None
        position = self._position(block)
        uses = [use.operation for use in reads_of(value)]
        if any(op.parent is not block for op in uses):
            return False
        last = max((position[op] for op in uses), default=position[maker])
        around = (nearest(call, position) for call in self.calls[name])
        return not any(op is not None and position[maker] < position[op] < last for op in around)

    def _position(self, block: Block) -> dict[Operation, int]:
        if block not in self.positions:
            self.positions[block] = {op: i for i, op in enumerate(block.ops)}
        return self.positions[block]


def _is_made(value: SSAValue) -> bool:
    """Whether a value can be computed, or brought, into a variable that is given."""
    owner = value.owner
    if isinstance(owner, Block):
        function = owner.parent_op()
        return isinstance(function, FuncOp) and function.sym_name.data == ENTRY
    return isinstance(owner, partition.ComputeOp | partition.RelayoutOp | CallOp)
