"""The operation whose elements are their own indices."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i1, i32
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def

from ...ir.geometry.space import AccessMap, AxisMap, Dim, Space, coordinate
from ...ir.upstream import VerifyException
from ..coordinates import holds_exactly
from ..dtypes import STORED, numpy_dtype
from ..structured import Body, Structure, Structured
from .base import (
    INTEGER,
    INTEGERS,
    PureTensorOp,
    Shape,
    element_of,
    integer,
    integers,
    shape_of,
    tensor,
    values_of,
)
from .wanted import Wanted


@irdl_op_definition
class IotaOp(PureTensorOp, Structured):
    """A tensor of whole numbers that grow evenly along each axis.

    Element [i, j, ...] is start + steps[0] * i + steps[1] * j + .... Functions of elements that
    read the result compute these numbers where they need them: no table of them is made.

    Example: %0 = nn.iota start 0 steps [0, 1] : tensor<4x5xi32>

    Attributes:
        start: the first element.
        steps: how much an element is larger than the one before it, for each axis. result: of any
            shape; its elements hold all numbers exactly.
    """

    name = "nn.iota"
    start = prop_def(INTEGER)
    steps = prop_def(INTEGERS)
    assembly_format = "`start` $start `steps` $steps attr-dict `:` type($result)"

    def __init__(self, type: TensorType[Attribute], steps: Sequence[int], start: int = 0):
        properties = {"start": integer(start), "steps": integers(steps)}
        IRDLOperation.__init__(self, properties=properties, result_types=[type])
        self.verify_()

    def infer(self) -> TensorType[Attribute]:
        """The given result type. Raises VerifyException if it cannot hold the numbers."""
        shape, element, steps = (
            shape_of(self.result),
            element_of(self.result),
            values_of(self.steps),
        )
        if len(steps) != len(shape):
            raise VerifyException(
                f"result type {self.result.type} with steps {list(steps)}; need one for each axis"
            )
        if element == i1 or element in STORED:
            raise VerifyException(f"result type {self.result.type}; need numbers to compute with")
        low, high = self.limits
        if 0 not in shape and not holds_exactly(numpy_dtype(element), low, high):
            raise VerifyException(
                f"result type {self.result.type} of numbers from {low} to {high}; need elements "
                "that hold all of them"
            )
        return tensor(shape, element)

    @property
    def terms(self) -> tuple[tuple[int, int], ...]:
        """The axes along which numbers change, each with its step."""
        shape = shape_of(self.result)
        steps = enumerate(values_of(self.steps))
        return tuple((i, step) for i, step in steps if step and shape[i] != 1)

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest number."""
        sizes = tuple(max(n, 1) for n in shape_of(self.result))
        return AxisMap(1, self.terms, self.start.value.data).numerators(sizes)

    def structure(self) -> Structure:
        """One dimension per axis; the body is a coordinate."""
        shape = shape_of(self.result)
        dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))
        result = tuple(AxisMap(n, ((i, 1),) if n != 1 else ()) for i, n in enumerate(shape))
        number = coordinate(0, self.terms, self.start.value.data, shape)
        space = Space(dims, (), (AccessMap(result),), (), (number,))
        return Structure(space, Body("identity"))

    @classmethod
    def sample(cls, wanted: Wanted) -> IotaOp:
        """A random operation, of the element type of `first`, because it has no operand."""
        random, first = wanted.random, wanted.first
        rank = random.choice((0, 1, 1, 2, 2, 3))
        shape: Shape = tuple(random.choice(wanted.sizes or (1, 2, 3, 5)) for _ in range(rank))
        element = first.element_type if first else random.choice(wanted.elements or (i32,))
        steps = [random.choice((0, 1, 1, -1, 3)) for _ in shape]
        return cls(tensor(shape, element), steps, random.choice((0, 0, 1, -2, 7)))
