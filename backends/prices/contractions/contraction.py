"""The sizes and dtypes of a contraction on one tile, which all its prices are computed from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ....ir.support.arrays import Integers
from ..whole_numbers import together


@dataclass(frozen=True, eq=False)
class Contraction:
    """A sum of products of two tensors, in many sizes at once: every array is (candidates,).

    In each group, every output element of every output channel sums over the input channels and
    the kernel elements:

        output[g, o, f] = sum over i, k of weight[g, o, i, k] * input[g, i, f moved by k]

    Attributes:
        field: output elements of a channel, batch included.
        in_channels, out_channels: of one group.
        kernel_elements: 1 for a matrix product.
        conv_groups: independent contractions.
        dtype_name, partials_name: of the operands and of the sums, as NumPy and ml_dtypes name
            them.
        field_rows: runs that the field is stored in.
        stride: of the window along a row, 0 if a window is dilated.
    """

    field: Integers
    in_channels: Integers
    out_channels: Integers
    kernel_elements: Integers
    conv_groups: Integers
    dtype_name: str
    partials_name: str
    field_rows: Integers
    stride: int = 1

    @classmethod
    def of(
        cls,
        field: ArrayLike,
        in_channels: ArrayLike,
        out_channels: ArrayLike,
        kernel_elements: ArrayLike,
        conv_groups: ArrayLike,
        dtype_name: str,
        partials_name: str,
        field_rows: ArrayLike = 1,
        stride: int = 1,
    ) -> Contraction:
        """A contraction of integers or arrays, broadcast together and rounded down to integers."""
        field, in_, out, kernel, groups, rows = together(
            field, in_channels, out_channels, kernel_elements, conv_groups, field_rows
        )
        return cls(field, in_, out, kernel, groups, dtype_name, partials_name, rows, stride)

    def swapped(self) -> Contraction:
        """The contraction whose operands have changed places, for a kernel of one element."""
        return replace(
            self,
            field=self.out_channels,
            out_channels=self.field,
            field_rows=np.ones_like(self.field_rows),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of every array."""
        return self.field.shape
