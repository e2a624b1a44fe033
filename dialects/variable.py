"""The common part of the variables of `tile` and `exchange`. Those of `exchange` also have an
address.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def

from ..ir.geometry.layout import Layout
from ..ir.upstream import VerifyException
from .abele import LayoutAttr
from .blob_attr import BlobAttr
from .dtypes import numpy_dtype

ALIGNMENT = 8
"""Bytes; every variable begins and ends at a multiple, for loads of 64 bits."""


def bytes_per_tile(layout: Layout, itemsize: int) -> int:
    """Bytes on each of a layout's tiles, alignment included.

    Args:
        itemsize: bytes of an element.
    """
    return -(-layout.block_elements * itemsize // ALIGNMENT) * ALIGNMENT


class Variable(IRDLOperation):
    """What lies on tiles under one name: a tensor, its layout, perhaps its first value.

    Attributes:
        sym_name: what operations call it.
        tensor: its shape and element type.
        layout: which block of it lies on which tile; it views the elements row-major, perhaps in
            another shape.
        initial: what it holds before the first run.
        state: it keeps its value from run to run; with initial alone it is a constant.
    """

    sym_name = prop_def(SymbolNameConstraint())
    tensor = prop_def(TensorType)
    layout = prop_def(LayoutAttr)
    initial = opt_prop_def(BlobAttr)
    state = opt_prop_def(UnitAttr)

    @property
    def symbol(self) -> str:
        """The variable's name."""
        return self.sym_name.data

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements."""
        return numpy_dtype(self.tensor.element_type)

    @property
    def placed(self) -> Layout:
        """Its layout."""
        return self.layout.data

    @property
    def tensor_bytes(self) -> int:
        """Bytes of the tensor itself: each element once, without alignment."""
        return prod(self.tensor.get_shape()) * self.dtype.itemsize

    @property
    def bytes_per_tile(self) -> int:
        """Bytes on each of its tiles, alignment included."""
        return bytes_per_tile(self.placed, self.dtype.itemsize)

    @property
    def is_resident(self) -> bool:
        """True if it holds its value before and after every run: state and constants."""
        return self.state is not None or self.initial is not None

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if prod(self.placed.shape) != prod(self.tensor.get_shape()):
            raise VerifyException(
                f"@{self.symbol}: layout of {list(self.placed.shape)} for a tensor of "
                f"{list(self.tensor.get_shape())}"
            )
        try:
            _ = self.dtype
        except ValueError as error:
            raise VerifyException(f"@{self.symbol}: {error}") from None
        if self.initial is not None and (
            self.initial.array.dtype != self.dtype
            or self.initial.array.size != prod(self.tensor.get_shape())
        ):
            raise VerifyException(
                f"@{self.symbol}: initial value of {self.initial.array.dtype} "
                f"{list(self.initial.array.shape)} for {self.tensor}"
            )


def symbols(references: ArrayAttr[SymbolRefAttr]) -> list[str]:
    """The names of symbol references."""
    return [r.string_value() for r in references]


def references(names: Sequence[str]) -> ArrayAttr[SymbolRefAttr]:
    """Symbol references to names."""
    return ArrayAttr(SymbolRefAttr(n) for n in names)
