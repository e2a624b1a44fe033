"""Inserts operations of nn one after the other, at one place of the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import nn
from ....dialects.dtypes import element_type, numpy_dtype
from ....ir.blob import Blob
from ....ir.upstream import Builder, LocationAttr


class Emit:
    """Inserts operations of nn, and returns their results."""

    def __init__(self, builder: Builder, place: LocationAttr) -> None:
        self.builder, self.place = builder, place

    def __call__(self, op: Operation) -> SSAValue:
        """Insert an operation, and return its first result."""
        return self.insert(op).results[0]

    def insert(self, op: Operation) -> Operation:
        """Insert an operation."""
        op.location = self.place
        return self.builder.insert(op)

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> SSAValue:
        """A constant."""
        return self(nn.ConstantOp(Blob(np.array(value, dtype))))

    def alike(self, value: ArrayLike, like: SSAValue) -> SSAValue:
        """A constant with the element type of another value."""
        return self.constant(value, numpy_dtype(nn.element_of(like)))

    def counted(self, count: int, dtype: DTypeLike, first: int = 0) -> SSAValue:
        """The whole numbers from the first one on."""
        return self(nn.IotaOp(nn.tensor((count,), element_type(np.dtype(dtype))), [1], first))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """A value with elements of a type; the value itself if it has them."""
        return value if nn.element_of(value) == element else self(nn.CastOp(value, element))

    def shaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value in another shape; the value itself if it has that shape."""
        same = nn.shape_of(value) == tuple(shape)
        return value if same else self(nn.ReshapeOp(value, shape))
