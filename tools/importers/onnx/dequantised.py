"""Matrices of floats that come from integers of few bits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from xdsl.ir import SSAValue

from ....dialects import nn
from ....ir.support.arrays import Array
from ....ir.support.number_kinds import bit_width
from ..building import Known

BYTE = 8
"""Bits per byte. The first element in a byte has its lowest bits."""


@dataclass(frozen=True)
class Dequantised:
    """A matrix of floats, as the integers of few bits that it comes from.

    Attributes:
        integers: known at import, of 2, 4 or 8 bits.
        scale: floats.
        zero: zero points that are known at import, shaped like the scale; None for 0.
        axis: along which a block has `size` elements in a row; or along which there is a scale for
            each index, if `size` is 0.
        is_transposed: whether rows and columns have changed places since then.
        packed: the packed integers, by the axis of the integers that products sum over, once a
            product reads them.
    """

    integers: Known
    scale: SSAValue
    zero: Array | None
    axis: int
    size: int
    is_transposed: bool = False
    packed: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue], compare=False)

    @property
    def bits(self) -> int:
        """The width of an integer."""
        return bit_width(self.integers.dtype)

    def transposed(self) -> Dequantised:
        """The matrix with rows and columns in each other's place."""
        return replace(self, is_transposed=not self.is_transposed)

    def block(self, terms: int) -> int | None:
        """The elements of a block along the given axis of the integers; None if blocks lie along
        the other axis, or do not end between bytes."""
        length = self.integers.shape[terms]
        if self.size:
            is_fit = self.axis == terms and not self.size * self.bits % BYTE
            return self.size if is_fit else None
        if self.scale_count > 1 and self.axis == terms:
            return None
        count = BYTE // self.bits
        return -(-length // count) * count

    @property
    def scale_count(self) -> int:
        """The number of scales."""
        return prod(nn.shape_of(self.scale))
