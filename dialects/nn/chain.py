"""Functions that follow an operation: a bias, an activation, a residual, in the operation itself.

    %1 = nn.conv %x, %w stride [1] ... then [add, relu] (%bias) : ...

computes relu(conv(%x, %w) + %bias), rounded once at the end. Any structured operation on floats
may have such a chain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, final

from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, opt_prop_def, var_operand_def

from ...ir.geometry.space import AccessMap, AxisMap
from ...ir.unmet import Unmet
from ...ir.upstream import (
    AttributeVariable,
    CustomDirective,
    Parser,
    ParsingState,
    Printer,
    PrintingState,
    VariadicOperandVariable,
    VerifyException,
    irdl_custom_directive,
)
from ...ir.xdsl.cached_by_form import cached_by_form
from ..abele import ChainAttr, parse_stages, stages_text, verify_chain
from ..structured import Stage, Structure, Structured, extras_of
from .base import Number, PureTensorOp, Shape, broadcast, element_of, shape_of

CHAIN = " custom<Chain>($then, $extras) attr-dict `:` functional-type(operands, results)"
"""The end of the assembly format of every operation that may have a chain."""


@irdl_custom_directive
class Chain(CustomDirective):
    """A chain and its operands, as in `then [add, relu] (%b)`; empty if there is no chain."""

    then: AttributeVariable
    extras: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse `then [add, relu] (%b)`, `then [relu]`, or nothing."""
        self.extras.set_empty(state)
        if parser.parse_optional_keyword("then") is None:
            return
        self.then.set(state, ChainAttr(parse_stages(parser, parser.Delimiter.SQUARE)))
        operands = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        self.extras.set(state, operands or ())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the chain, if there is one."""
        chain = self.then.get(op)
        if not isinstance(chain, ChainAttr):
            return
        state.print_whitespace(printer)
        printer.print_string(f"then [{stages_text(chain.data)}]")
        operands = self.extras.get(op)
        if operands:
            printer.print_string(" (")
            printer.print_list(operands, printer.print_ssa_value)
            printer.print_string(")")


class ChainableOp(PureTensorOp, Structured, ABC):
    """A structured operation that functions may follow.

    then: the functions, in order; the result's elements must be floats. extras: their operands
    beside the value so far, in order, of the result's element type, which broadcast into the
    result.
    """

    then = opt_prop_def(ChainAttr)
    extras = var_operand_def(TensorType)
    COMPANIONS: ClassVar[Mapping[str, str]] = {"extras": "then"}
    """Operands that exist only if an attribute does, for the operand counts of rewrite rules."""
    custom_directives = (Number, Chain)

    def __init__(
        self,
        operands: Sequence[SSAValue | Sequence[SSAValue]],
        properties: Mapping[str, Attribute | None] | None = None,
    ):
        super().__init__([*operands, []], properties)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The functions that follow; () without a chain."""
        return () if self.then is None else self.then.data

    @property
    def core_operands(self) -> Sequence[SSAValue]:
        """The operands without the chain's."""
        return self.operands[: len(self.operands) - len(self.extras)]

    @abstractmethod
    def core_structure(self) -> Structure:
        """The space and body without the chain, from types, properties and attributes alone."""

    @final
    @cached_by_form
    def structure(self) -> Structure:
        """The operation's own space and body, with the chain and its operands."""
        core, stages = self.core_structure(), self.stages
        if not stages:
            return core
        (result,) = core.space.results
        shape = shape_of(self.result)
        extras = (_extra_map(shape_of(value), shape, result) for value in self.extras)
        space = replace(core.space, operands=(*core.space.operands, *extras))
        return Structure(space, replace(core.body, then=stages))

    def verify_(self) -> None:
        """As all tensor operations, and the chain suits the result."""
        super().verify_()
        stages = self.stages
        verify_chain(stages, element_of(self.result))
        if len(self.extras) != extras_of(stages):
            raise Unmet(
                f"chain [{stages_text(stages)}] with {len(self.extras)} operands of its own; "
                f"need {extras_of(stages)}",
                f"chain of {extras_of(stages)} operands",
            )
        for i, value in enumerate(self.extras):
            _check_extra(i, value, self.result)


def _check_extra(i: int, value: SSAValue, result: SSAValue) -> None:
    if element_of(value) != element_of(result):
        raise Unmet(
            f"chain operand {i} has elements {element_of(value)}; need {element_of(result)}",
            f"chain operand {i}",
        )
    shape, target = shape_of(value), shape_of(result)
    if broadcast([shape, target]) != target:
        raise Unmet(
            f"chain operand {i} of shape {list(shape)} enlarges the result of {list(target)}; "
            "need sizes as the result has, or 1",
            f"chain operand {i}",
        )


def _extra_map(shape: Shape, result_shape: Shape, result: AccessMap) -> AccessMap:
    """The map of a chain's operand: the result's axes without those that it broadcasts over.

    The result's map may view one axis of the tensor as several, such as (group, channel).
    """
    axes: list[AxisMap] = []
    skip = len(result_shape) - len(shape)
    for i, viewed in enumerate(_axes_of(result_shape, result)):
        if i >= skip:
            axes += viewed if shape[i - skip] != 1 else (AxisMap(1),)
    return AccessMap(tuple(axes))


def _axes_of(shape: Shape, access: AccessMap) -> list[tuple[AxisMap, ...]]:
    """The axes of a map that make up each axis of a tensor."""
    groups: list[tuple[AxisMap, ...]] = []
    first = 0
    for n in shape:
        last, size = first, 1
        while last == first or size != n:
            size *= access.axes[last].size
            last += 1
        groups.append(access.axes[first:last])
        first = last
    return groups


def can_chain(op: Operation) -> bool:
    """Whether functions may follow in the operation itself."""
    return isinstance(op, ChainableOp) and isinstance(element_of(op.result), AnyFloat)


def chained(op: Operation, stages: Sequence[Stage], extras: Sequence[SSAValue]) -> Operation:
    """A new operation, in no block, that does what op does and then some stages.

    extras: the operands of the stages besides the value so far, in order. Properties, attributes
    and the location are op's. A plan is dropped, because it was made for another operation.
    Raises VerifyException if op cannot have the chain.
    """
    if not isinstance(op, ChainableOp):
        raise VerifyException(f"{op.name}: no functions can follow; need a structured operation")
    every = (*op.stages, *stages)
    chain: dict[str, Attribute] = {"then": ChainAttr(every)} if every else {}
    made = type(op).create(
        operands=[*op.operands, *extras],
        result_types=[op.result.type],
        properties={**op.properties, **chain},
        attributes={name: value for name, value in op.attributes.items() if name != "plan"},
    )
    made.location = op.location
    try:
        made.verify()
    except VerifyException:
        made.drop_all_references()
        raise
    return made
