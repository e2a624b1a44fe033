"""A movement of elements to any places: a table says which element goes where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def

from ...ir.blob import Blob
from ...ir.geometry.space import AccessMap, AxisMap, Space
from ...ir.geometry.table import Table
from ...ir.support.arrays import Array
from ...ir.upstream import (
    AttributeVariable,
    CustomDirective,
    Parser,
    ParsingState,
    Printer,
    PrintingState,
    VerifyException,
    irdl_custom_directive,
)
from ..blob_attr import BlobAttr
from ..structured import Movement
from ..table_text import parse_table
from .base import (
    INTEGER,
    NUMBER,
    Number,
    PureTensorOp,
    Shape,
    element_of,
    integer,
    normal_axis,
    number,
    shape_of,
    tensor,
)
from .movement import dims_of_axes, onto_axes
from .wanted import Wanted


@irdl_custom_directive
class Places(CustomDirective):
    """Prints a table as its numbers, or as the digest of a long one."""

    places: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read [2, 0, -1] or a digest."""
        self.places.set(state, BlobAttr(parse_table(parser).blob))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the numbers, or the digest."""
        attribute = self.places.get(op)
        assert isinstance(attribute, BlobAttr)
        state.print_whitespace(printer)
        printer.print_string(str(Table(attribute.data)))

    def is_anchorable(self) -> bool:
        """Whether the table may be left out in text."""
        return False

    def is_present(self, op: IRDLOperation) -> bool:
        """Whether the table is printed: always."""
        return True


@irdl_op_definition
class TakeOp(PureTensorOp, Movement):
    """The rows of a tensor that a constant list names, one after another.

    It is a gather whose indices are known, so it only moves elements.

    Example: %1 = nn.take %0 axis 0 places [2, 0, -1] value 0.0 : (tensor<4x8xf32>)
    -> tensor<3x8xf32>

    Attributes:
        operand: of rank 1 or more.
        axis: of the operand, counted from 0.
        places: for each row of the result, the index of the operand's row, int32 [rows]. -1 stands
            for a row of the given value.
        value: the elements of rows that have no row of the operand.
    """

    name = "nn.take"
    operand = operand_def(TensorType)
    axis = prop_def(INTEGER)
    places = prop_def(BlobAttr)
    custom_directives = (Number, Places)
    value = prop_def(NUMBER)
    assembly_format = (
        "$operand `axis` $axis `places` custom<Places>($places) `value` custom<Number>($value)"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self, operand: SSAValue, places: Array | Sequence[int], axis: int = 0, value: float = 0.0
    ):
        super().__init__(
            [operand],
            {
                "axis": integer(normal_axis(axis, len(shape_of(operand)))),
                "places": BlobAttr(Blob(np.array(places, np.int32))),
                "value": number(value),
            },
        )

    @property
    def result_numbers(self) -> tuple[str, ...]:
        """The elements of rows without a row of the operand."""
        return ("value",)

    def infer(self) -> TensorType[Attribute]:
        """The operand's sizes; along the axis, the number of places."""
        shape, axis, places = shape_of(self.operand), self.axis.value.data, self.places.array
        if not 0 <= axis < len(shape):
            raise VerifyException(f"axis {axis} of rank {len(shape)}")
        if places.dtype != np.int32 or places.ndim != 1:
            raise VerifyException(
                f"places of {places.dtype.name}{list(places.shape)}; need one axis of int32"
            )
        wrong = places[(places < -1) | (places >= shape[axis])]
        if wrong.size:
            raise VerifyException(f"place of row {wrong[0]}; need -1 to {shape[axis] - 1}")
        sizes = [places.size if i == axis else n for i, n in enumerate(shape)]
        return tensor(sizes, element_of(self.operand))

    @classmethod
    def sample(cls, wanted: Wanted) -> TakeOp:
        """A random list of rows."""
        random, first = wanted.random, wanted.first
        if first is None or not first.get_shape():
            shape = [random.choice(wanted.sizes or (1, 2, 3, 5)) for _ in range(2)]
            first = tensor(shape, random.choice(wanted.elements or (f32,)))
        shape = first.get_shape()
        axis = random.randrange(len(shape))
        rows = range(-1, shape[axis])
        count = random.choice(wanted.sizes or (1, 2, 3, 5))
        places = random.choices(rows, k=count)
        if count <= shape[axis] and random.random() < 0.5:
            places = random.sample(rows[1:], count)
        return cls(Block(arg_types=[first]).args[0], places, axis)

    def moves(self) -> tuple[Space, ...]:
        """One dimension per result axis; the operand's map has a table."""
        shape, table = shape_of(self.operand), Table(self.places.data)
        return (taken_rows(shape, self.axis.value.data, table, self.value.value.data),)


def taken_rows(shape: Shape, axis: int, table: Table, fill: float = 0.0) -> Space:
    """The movement of the rows that a table names.

    Args:
        shape: of the tensor that has the rows.
        axis: along which they follow each other.
        fill: the elements of rows that the tensor does not have.
    """
    result = (*shape[:axis], len(table), *shape[axis + 1 :])
    onto = onto_axes(result)
    size, terms = shape[axis], onto.axes[axis].terms
    axes = (*onto.axes[:axis], AxisMap(size, terms, size, outside=table), *onto.axes[axis + 1 :])
    return Space(dims_of_axes(result), (AccessMap(axes, fill),), (onto,))
