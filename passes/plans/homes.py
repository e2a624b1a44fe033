"""The homes of a planned program: the layouts in which its inputs, states and constants are stored.

The plans of operators decide in which layouts they read their operands. A tensor that no operator
computes is stored in the layout that its readers want, as far as they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, Operation, SSAValue

from ...backends.target import Target
from ...dialects import control, nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.home import home_of, is_remote
from ...dialects.structured import Reinterpretation, Structured
from ...ir.geometry.layout import Layout, linear_layout, placement, replicated_layout
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from .derive import home_of_free, operand_layouts
from .fused import operator_name
from .parts import Carrier, Part, Parts, reader_or_writer
from .planned import parts_of, plan_of
from .steps import takes_steps


@dataclass(frozen=True, eq=False)
class Homes:
    """The homes in a module of nn whose operations have plans."""

    module: ModuleOp
    target: Target
    _arguments: dict[SSAValue, Layout] = field(default_factory=dict[SSAValue, Layout])

    @cached_property
    def states(self) -> dict[str, Layout]:
        """The home of each state, by its name.

        If an operation stores to a state, its home can be the source of a copy.
        """
        owners, parts = self.parts.owners, self.parts
        loads: dict[str, list[SSAValue]] = {}
        copied: set[str] = set()
        for op in self.module.walk():
            if isinstance(op, nn.LoadOp):
                name, part = op.state.string_value(), parts.around(op)
                if part.is_whole or part == owners[name]:
                    loads.setdefault(name, []).append(op.result)
                else:
                    copied.add(name)
            elif isinstance(op, nn.StoreOp):
                copied.add(op.state.string_value())
        states = [op for op in self.module.body.block.ops if isinstance(op, nn.StateOp)]
        return {
            (name := op.sym_name.data): self._home(
                op.value.array.shape,
                op.value.array.dtype.itemsize,
                [] if name in self.remote else loads.get(name, []),
                owners[name],
                must_be_source=name in copied,
                asked=_asked(op),
            )
            for op in states
        }

    @cached_property
    def remote(self) -> frozenset[str]:
        """The states whose home is remote memory."""
        states = (op for op in self.module.body.block.ops if isinstance(op, nn.StateOp))
        return frozenset(op.sym_name.data for op in states if is_remote(op))

    @cached_property
    def parts(self) -> Parts:
        """The parts of the machine on which the functions lie."""
        return parts_of(self.module, self.target)

    def constant(self, op: nn.ConstantOp) -> Layout:
        """The home of a constant."""
        tensor = op.result.type
        return self._home(
            tensor.get_shape(),
            _itemsize(tensor),
            [op.result],
            self.parts.around(op),
            asked=_asked(op),
        )

    def argument(self, value: SSAValue, tensor: TensorType[Attribute]) -> Layout:
        """The home of an input of the program or of a function, or of what comes from remote
        memory: near the tiles on which its first reader wants it."""
        # Functions that call functions ask many times, and one that calls itself asks for its own.
        if value not in self._arguments:
            part, itemsize = self.parts.around(value), _itemsize(tensor)
            self._arguments[value] = _linear(tensor.get_shape(), itemsize, part)
            wishes = self._wishes(value, spread=True)
            wish = next((w for w in wishes if w is not None and part.has(w)), None)
            if wish is not None:
                near = home_of_free(part.own(wish), itemsize, part.target.tiles, part.target.chips)
                self._arguments[value] = part.moved(near)
        return self._arguments[value]

    def updated(self, carried: SSAValue, yielded: SSAValue) -> Layout | None:
        """The home of a carried value that each iteration updates at indices, else None.

        It is the layout in which the update reads the value.
        """
        found: Layout | None = None
        while yielded != carried:
            op = yielded.owner
            if isinstance(op, Reinterpretation) and isinstance(op, Operation):
                yielded = op.operands[0]
            elif isinstance(op, nn.UpdateOp) and not takes_steps(plan_of(op)):
                found = _wish(op, op.structure().own_operands - 1)
                yielded = op.table
            else:
                return None
        return found

    def iteration_number(self, number: SSAValue) -> Layout:
        """The home of an iteration number: every tile of the function, because each tile runs the
        control program."""
        part = self.parts.around(number)
        return part.moved(replicated_layout(part.target.tiles, part.target.chips))

    def _home(
        self,
        shape: tuple[int, ...],
        itemsize: int,
        values: Sequence[SSAValue],
        part: Part,
        must_be_source: bool = False,
        asked: Layout | None = None,
    ) -> Layout:
        """The home of a state or constant.

        It is the requested layout `asked`. Without one, it is the layout that all users want, else
        the first wanted layout that can be the source of a copy, else linear order.

        Args:
            values: the constant, or the values loaded from the state.
            part: the chips on which it lies.
            must_be_source: whether the home has to be able to be the source of a copy.
        """
        wishes = [wish for value in values for wish in self._wishes(value)]
        known = [w for w in wishes if w is not None and part.has(w)]
        if asked is not None:
            # A reader that wants the same placement in another form needs no copy.
            return next((w for w in known if placement(w) == placement(asked)), asked)
        if known and not must_be_source and len(known) == len(wishes) and len(set(known)) == 1:
            return known[0]
        for wish in known:
            if wish.is_partition:
                return wish
        return _linear(shape, itemsize, part)

    def _wishes(self, value: SSAValue, *, spread: bool = False) -> list[Layout | None]:
        """The layout that each use of a value wants, in program order.

        None stands for any layout that can be the source of a copy.

        Args:
            spread: whether the value will be copied from a layout near the wanted one. Then a
                wanted layout counts even if it cannot be the source of a copy.
        """
        wishes: list[Layout | None] = []
        for use in sorted(value.uses, key=lambda u: (self._positions[u.operation], u.index)):
            op = use.operation
            if isinstance(op, Reinterpretation):
                wishes += self._wishes(op.results[0], spread=spread)
            elif isinstance(op, Structured):
                wish = _wish(op, use.index)
                # Each step copies its part from the layout of the whole tensor.
                moves_on = takes_steps(plan_of(op)) and not wish.is_partition
                wishes.append(None if moves_on and not spread else wish)
            else:
                taken = _taken_by(op, use.index)
                function = taken and self.parts.functions.get(taken.function)
                if taken is None or function is None:
                    wishes.append(None)
                else:
                    parameter = function.body.block.args[taken.number]
                    wishes.append(self.argument(parameter, _tensor(parameter)))
        return wishes

    @cached_property
    def _positions(self) -> dict[Operation, int]:
        return {op: i for i, op in enumerate(self.module.walk())}


def _taken_by(op: Operation, operand: int) -> Carrier | None:
    """The call that takes an operand of an operation, at once or in a loop that carries it."""
    if isinstance(op, CallOp):
        return Carrier(op.callee.string_value(), operand, takes=True)
    if isinstance(op, control.RepeatOp | control.WhileOp):
        last = op.regions[-1].block.last_op
        assert last is not None
        argument = op.regions[-1].block.args[operand]
        found = reader_or_writer(argument, last.operands[operand])
        return found if found is not None and found.takes else None
    return None


def _tensor(value: SSAValue) -> TensorType[Attribute]:
    return cast("TensorType[Attribute]", value.type)


def _linear(shape: tuple[int, ...], itemsize: int, part: Part) -> Layout:
    """Linear order on the chips of a part."""
    target = part.target
    return part.moved(linear_layout(shape, itemsize, target.tiles, chips=target.chips))


def _asked(op: Operation) -> Layout | None:
    """The home that a state or constant requests in its attributes, or None."""
    home = home_of(op)
    return None if home is None else home.layout


def _itemsize(tensor: TensorType[Attribute]) -> int:
    return numpy_dtype(tensor.element_type).itemsize


def _wish(op: Operation, operand: int) -> Layout:
    """The layout in which an operation's plan reads an operand."""
    assert isinstance(op, Structured)
    try:
        return operand_layouts(op.structure(), plan_of(op))[operand]
    except ValueError as error:
        raise InputError(f"{operator_name(op)} at {place(op)}: {error}") from None
