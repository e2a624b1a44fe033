"""Where the largest element under each window lies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import TensorType, UnitAttr, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def

from ...ir.number_kinds import is_whole, whole_limits
from ...ir.upstream import VerifyException
from ..dtypes import numpy_dtype
from .base import element_of, shape_of, tensor
from .composite import Parts, WindowOp
from .elementwise import AddOp, GreaterOp, SelectOp
from .movement import PadOp, SliceOp
from .state import ConstantOp


@irdl_op_definition
class MaxPoolIndicesOp(WindowOp):
    """The flat index in the whole image of the largest element under each window.

    Of equal elements it is the first in the window, in row-major order; NaN is never the largest.
    If nothing is larger than -infinity, it is the first element of the image in the window.
    column_major: the first spatial axis moves fastest; batch and channels are counted as usual.

    Example: %1 = nn.max_pool_indices %0 window [2, 2] stride [2, 2] dilation [1, 1] pad [0, 0] to
    [0, 0] : (tensor<1x8x6x6xf32>) -> tensor<1x8x3x3xi64>
    """

    name = "nn.max_pool_indices"
    column_major = opt_prop_def(UnitAttr)
    assembly_format = (
        "$image `window` $window `stride` $stride `dilation` $dilation"
        " `pad` $pad_low `to` $pad_high (`column_major` $column_major^)?"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        image: SSAValue,
        window: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        pad_low: Sequence[int] | None = None,
        pad_high: Sequence[int] | None = None,
        column_major: bool = False,
    ):
        super().__init__(
            image,
            window,
            stride=stride,
            dilation=dilation,
            pad_low=pad_low,
            pad_high=pad_high,
            column_major=column_major,
        )

    def infer(self) -> TensorType[Attribute]:
        """[N, C, positions of the window...] of i64."""
        if numpy_dtype(element_of(self.image)).kind == "b":
            raise VerifyException("maxima of i1; need numbers")
        return tensor(self.window_shape(), i64)

    def parts(self, made: Parts) -> SSAValue:
        """Axis by axis, the last one first: the largest of each row, then of the rows' largest.

        The first of equal rows, and in it the first of equal elements, is the first in row-major
        order. Indices are sums of one vector per axis, so no constant is larger than an axis.
        """
        image = shape_of(self.image)
        # 32 bits, the integers of a tile, unless the image has too many elements.
        kind = i32 if prod(image) < 1 << 31 else i64
        vectors = _Vectors(made, len(image), numpy_dtype(kind))
        weights = self._weights()
        value, index, first = self.image, None, None
        for axis in reversed(range(2, len(image))):
            own = vectors(f"own_{axis}", axis, np.arange(image[axis]) * weights[axis])
            start = vectors(f"start_{axis}", axis, self._first_inside(axis) * weights[axis])
            index = own if index is None else made(f"index_{axis}", AddOp(index, own))
            first = start if first is None else made(f"first_{axis}", AddOp(first, start))
            value, index = self._largest(made, axis, value, index, first)
        assert index is not None
        for axis in (1, 0):
            if image[axis] > 1:
                own = vectors(f"own_{axis}", axis, np.arange(image[axis]) * weights[axis])
                index = made(f"index_{axis}", AddOp(index, own))
        return made.cast("widen", index, i64)

    def _weights(self) -> list[int]:
        """By how much one step along each axis of the image increases the index."""
        image = shape_of(self.image)
        weights = [prod(image[i + 1 :]) for i in range(len(image))]
        if self.column_major is not None:
            weights[2:] = [prod(image[2:i]) for i in range(2, len(image))]
        return weights

    def _first_inside(self, axis: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """The first element of the image, along an axis, that each window position reads."""
        size, reached = shape_of(self.image)[axis], self.reached(axis - 2)
        inside = (reached >= 0) & (reached < size)
        first = np.take_along_axis(reached, inside.argmax(1)[:, None], 1)[:, 0]
        return first.clip(0, max(size - 1, 0))

    def _largest(
        self, made: Parts, axis: int, value: SSAValue, index: SSAValue, first: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """The largest values along an axis under the window, and their indices.

        index: of each value, with size 1 on the axes that it does not depend on. first: the index
        to use if no value is larger than the padding.
        """
        window, stride, dilation, low, _ = (values[axis - 2] for values in self.parameters())
        size, positions = shape_of(value)[axis], shape_of(self.result)[axis]
        high = max(0, (positions - 1) * stride + dilation * (window - 1) + 1 - low - size)
        dtype = numpy_dtype(element_of(self.image))
        lowest = whole_limits(dtype).min if is_whole(dtype) else float("-inf")

        def padded(step: str, operand: SSAValue, fill: float) -> SSAValue:
            if low == high == 0:
                return operand
            lows, highs = ([n * (i == axis) for i in range(axes)] for n in (low, high))
            return made(step, PadOp(operand, lows, highs, value=fill))

        def every(step: str, operand: SSAValue, start: int) -> SSAValue:
            sizes = [positions if i == axis else n for i, n in enumerate(shape_of(operand))]
            starts = [start * (i == axis) for i in range(axes)]
            steps = [stride if i == axis else 1 for i in range(axes)]
            return made(step, SliceOp(operand, starts, steps, sizes))

        axes = len(shape_of(value))
        values = padded(f"pad_{axis}", value, lowest)
        indices = padded(f"pad_index_{axis}", index, 0)
        best, chosen = made(f"lowest_{axis}", ConstantOp(np.array(lowest, dtype))), first
        for k in range(window):
            step = f"{axis}_{k}"
            seen = every(f"value_{step}", values, k * dilation)
            larger = made(f"larger_{step}", GreaterOp(seen, best))
            best = made(f"best_{step}", SelectOp(larger, seen, best))
            theirs = every(f"index_{step}", indices, k * dilation)
            chosen = made(f"chosen_{step}", SelectOp(larger, theirs, chosen))
        return best, chosen


class _Vectors:
    """Makes constants that vary along one axis only."""

    def __init__(self, made: Parts, rank: int, dtype: np.dtype[np.generic]):
        self.made = made
        self.rank = rank
        self.dtype = dtype

    def __call__(
        self, step: str, axis: int, values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    ) -> SSAValue:
        """A constant of these values along the axis, of size 1 along the others."""
        shape = [len(values) if i == axis else 1 for i in range(self.rank)]
        return self.made(step, ConstantOp(values.reshape(shape).astype(self.dtype)))
