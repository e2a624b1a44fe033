"""The homes of a planned program: the layouts in which its inputs, states and constants are stored.

The plans of operators decide in which layouts they read their operands. A tensor that no operator
computes is stored in the layout that its readers want, as far as they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...backends.target import Target
from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.home import home_of, is_remote
from ...dialects.structured import Reinterpretation, Structured
from ...ir.geometry.layout import Layout, linear_layout, placement, replicated_layout
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from .derive import home_of_free, operand_layouts
from .fused import operator_name
from .planned import plan_of
from .steps import takes_steps


@dataclass(frozen=True, eq=False)
class Homes:
    """The homes in a module of nn whose operations have plans."""

    module: ModuleOp
    target: Target

    @cached_property
    def states(self) -> dict[str, Layout]:
        """The home of each state, by its name.

        If an operation stores to a state, its home can be the source of a copy.
        """
        loads: dict[str, list[SSAValue]] = {}
        stored: set[str] = set()
        for op in self.module.walk():
            if isinstance(op, nn.LoadOp):
                loads.setdefault(op.state.string_value(), []).append(op.result)
            elif isinstance(op, nn.StoreOp):
                stored.add(op.state.string_value())
        states = [op for op in self.module.body.block.ops if isinstance(op, nn.StateOp)]
        return {
            (name := op.sym_name.data): self._home(
                op.value.array.shape,
                op.value.array.dtype.itemsize,
                [] if name in self.remote else loads.get(name, []),
                must_be_source=name in stored,
                asked=_asked(op),
            )
            for op in states
        }

    @cached_property
    def remote(self) -> frozenset[str]:
        """The states whose home is remote memory."""
        states = (op for op in self.module.body.block.ops if isinstance(op, nn.StateOp))
        return frozenset(op.sym_name.data for op in states if is_remote(op))

    def constant(self, op: nn.ConstantOp) -> Layout:
        """The home of a constant."""
        tensor = op.result.type
        return self._home(tensor.get_shape(), _itemsize(tensor), [op.result], asked=_asked(op))

    def argument(self, value: SSAValue, tensor: TensorType[Attribute]) -> Layout:
        """The home of an input of the program, or of what comes from remote memory: near the tiles
        on which its first reader wants it."""
        wish = next((w for w in self._wishes(value, spread=True) if w is not None), None)
        if wish is None:
            return self.linear(tensor)
        return home_of_free(wish, _itemsize(tensor), self.target.tiles, self.target.chips)

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

    @property
    def iteration_number(self) -> Layout:
        """The home of an iteration number: every tile, because each tile runs the control
        program."""
        return replicated_layout(self.target.tiles, self.target.chips)

    def linear(self, tensor: TensorType[Attribute]) -> Layout:
        """The home of a function's operands and results: linear order, the same for every
        caller."""
        return self._linear(tensor.get_shape(), _itemsize(tensor))

    def _linear(self, shape: tuple[int, ...], itemsize: int) -> Layout:
        return linear_layout(shape, itemsize, self.target.tiles, chips=self.target.chips)

    def _home(
        self,
        shape: tuple[int, ...],
        itemsize: int,
        values: Sequence[SSAValue],
        must_be_source: bool = False,
        asked: Layout | None = None,
    ) -> Layout:
        """The home of a state or constant.

        It is the requested layout `asked`. Without one, it is the layout that all users want, else
        the first wanted layout that can be the source of a copy, else linear order.

        Args:
            values: the constant, or the values loaded from the state.
            must_be_source: whether the home has to be able to be the source of a copy.
        """
        wishes = [wish for value in values for wish in self._wishes(value)]
        known = [w for w in wishes if w is not None]
        if asked is not None:
            # A reader that wants the same placement in another form needs no copy.
            return next((w for w in known if placement(w) == placement(asked)), asked)
        if known and not must_be_source and len(known) == len(wishes) and len(set(known)) == 1:
            return known[0]
        for wish in known:
            if wish.is_partition:
                return wish
        return self._linear(shape, itemsize)

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
                wishes.append(None)
        return wishes

    @cached_property
    def _positions(self) -> dict[Operation, int]:
        return {op: i for i, op in enumerate(self.module.walk())}


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
