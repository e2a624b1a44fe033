"""The element types that operations compute with, and those that are only stored.

Types that are only stored (STORED) can be moved, looked up, selected, cast, and seen as other bits.
All other functions take all other types.
"""

from __future__ import annotations

from xdsl.dialects.builtin import Float8E4M3FNUZType, Float8E5M2FNUZType
from xdsl.ir import Attribute

from ..ir.element_types import ELEMENTS, dtype_named, element_type, numpy_dtype

__all__ = ["ELEMENTS", "QUARTERS", "STORED", "dtype_named", "element_type", "numpy_dtype"]

STORED: frozenset[Attribute] = frozenset(
    attribute
    for attribute in ELEMENTS
    if (dtype := numpy_dtype(attribute)).itemsize == 1 and dtype.kind not in "iub"
)
"""The element types that are only stored: floats of 8 bits or fewer, integers of fewer than 8."""


QUARTERS: tuple[Attribute, ...] = (Float8E4M3FNUZType(), Float8E5M2FNUZType())
"""The 8-bit floats that products may have as operands: the formats 1.4.3 and 1.5.2 of machines with
units for them. An element q of a tensor stands for q * 2^scale. The scale is no part of the type:
the operations that write and read the tensor know it."""
