"""Operations that move elements, products of tensors, and those on matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ...dialects import stablehlo
from ...dialects.source_types import shape_of
from ...dialects.stablehlo import sized
from ...dialects.stablehlo.products import Convolving
from ...ir.support.arrays import Array
from ...ir.support.number_kinds import is_floating, is_whole
from .elements import converted, dtype_of, wide
from .matrices import MATRICES

Arrays = Sequence[Array]


def _iota(op: Any, _: Arrays) -> Array:
    shape, axis = shape_of(op.results[0]), int(op.iota_dimension.value.data)
    along = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return np.broadcast_to(converted(along, dtype_of(op)), shape)


def _broadcast_in_dim(op: Any, operands: Arrays) -> Array:
    value, shape = operands[0], shape_of(op.result)
    axes = stablehlo.integers_of(op.broadcast_dimensions, ())
    order = sorted(range(len(axes)), key=axes.__getitem__)
    sizes = [1] * len(shape)
    for axis, size in zip(axes, value.shape, strict=True):
        sizes[axis] = size
    return np.broadcast_to(np.transpose(value, order).reshape(sizes), shape)


def _broadcast(op: stablehlo.BroadcastOp, operands: Arrays) -> Array:
    return np.broadcast_to(operands[0], shape_of(op.result))


def _reshape(op: Any, operands: Arrays) -> Array:
    return operands[0].reshape(shape_of(op.result))


def _transpose(op: stablehlo.TransposeOp, operands: Arrays) -> Array:
    return np.transpose(operands[0], op.axes)


def _slice(op: stablehlo.SliceOp, operands: Arrays) -> Array:
    lists = (op.start_indices, op.limit_indices, op.strides)
    ends = zip(*(stablehlo.integers_of(each, ()) for each in lists), strict=True)
    return operands[0][tuple(slice(*each) for each in ends)]


def _concatenate(op: stablehlo.ConcatenateOp, operands: Arrays) -> Array:
    return np.concatenate(operands, op.dimension.value.data)


def _reverse(op: stablehlo.ReverseOp, operands: Arrays) -> Array:
    return np.flip(operands[0], stablehlo.integers_of(op.dimensions, ()))


def _pad(op: stablehlo.PadOp, operands: Arrays) -> Array:
    lists = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    low, high, between = (stablehlo.integers_of(each, ()) for each in lists)
    return spaced(operands[0], operands[1], list(zip(low, high, strict=True)), between)


def _dynamic_pad(_: Operation, operands: Arrays) -> Array:
    low, high, between = (list(map(int, each)) for each in operands[2:])
    return spaced(operands[0], operands[1], list(zip(low, high, strict=True)), between)


def _real_dynamic_slice(_: Operation, operands: Arrays) -> Array:
    ends = zip(*(map(int, each) for each in operands[1:]), strict=True)
    return operands[0][tuple(slice(*each) for each in ends)]


def _dimension_size(op: sized.GetDimensionSizeOp, operands: Arrays) -> Array:
    return np.asarray(operands[0].shape[op.dimension.value.data])


def spaced(
    value: Array, fill: Array, pads: Sequence[tuple[int, int]], between: Sequence[int]
) -> Array:
    """A tensor with elements around it and between its elements; fewer than 0 take some away."""
    sizes = [n + max(n - 1, 0) * b for n, b in zip(value.shape, between, strict=True)]
    made = np.full(sizes, fill, value.dtype)
    made[tuple(slice(None, None, b + 1) for b in between)] = value
    ends = [(max(low, 0), max(high, 0)) for low, high in pads]
    made = np.pad(made, ends, constant_values=fill) if pads else made
    cut = tuple(
        slice(max(-low, 0), n - max(-high, 0))
        for n, (low, high) in zip(made.shape, pads, strict=True)
    )
    return made[cut]


def _for_sums(values: Arrays, dtype: np.dtype[Any]) -> list[Array]:
    """Factors in a type that holds their sums: float64, or integers that wrap around as they do."""
    exact = np.float64 if is_floating(dtype) else np.int64
    if is_whole(dtype) and any(is_floating(each.dtype) for each in values):
        exact = np.float64
    if dtype.kind == "c":
        exact = np.complex128
    return [wide(each).astype(exact) for each in values]


def _dot_general(op: stablehlo.DotGeneralOp, operands: Arrays) -> Array:
    axes = op.dot_dimension_numbers.data
    lhs, rhs = _for_sums(operands, dtype_of(op))
    batch = axes.lhs_batching_dimensions, axes.rhs_batching_dimensions
    terms = axes.lhs_contracting_dimensions, axes.rhs_contracting_dimensions
    left, right = [-1] * lhs.ndim, [-1] * rhs.ndim
    for pairs in (batch, terms):
        for a, b in zip(*pairs, strict=True):
            left[a] = right[b] = max(*left, *right) + 1
    free = max([*left, *right, -1]) + 1
    for names in (left, right):
        for i, each in enumerate(names):
            if each < 0:
                names[i], free = free, free + 1
    kept = [left[a] for a in batch[0]]
    kept += [each for a, each in enumerate(left) if a not in (*batch[0], *terms[0])]
    kept += [each for b, each in enumerate(right) if b not in (*batch[1], *terms[1])]
    return np.einsum(lhs, left, rhs, right, kept)


def _dot(op: stablehlo.DotOp, operands: Arrays) -> Array:
    return np.dot(*_for_sums(operands, dtype_of(op)))


def _convolution(op: stablehlo.ConvolutionOp, operands: Arrays) -> Array:
    return _convolved(op, operands, stablehlo.pairs_of(op.padding, op.spatial))


def _dynamic_conv(op: sized.DynamicConvOp, operands: Arrays) -> Array:
    return _convolved(op, operands[:2], [(int(a), int(b)) for a, b in operands[2]])


def _convolved(op: Convolving, operands: Arrays, ends: Sequence[tuple[int, int]]) -> Array:
    """The sums of products under a kernel.

    Args:
        ends: the zeros before and after the image, along each spatial axis.
    """
    axes, rank = op.dimension_numbers.data, op.spatial
    image, kernel = _for_sums(operands, dtype_of(op))
    image = np.transpose(image, [axes.image[0], axes.image[1], *axes.image[2]])
    kernel = np.transpose(kernel, [axes.kernel[1], axes.kernel[0], *axes.kernel[2]])
    kernel = np.flip(kernel, tuple(a + 2 for a, each in enumerate(op.reversals) if each))
    pads = [(0, 0), (0, 0), *ends]
    image = spaced(image, np.zeros(()), pads, [0, 0, *(each - 1 for each in op.dilations)])
    groups, batches = op.groups
    made_shape = shape_of(op.results[0])
    shape = (image.shape[0] // batches, kernel.shape[0], *(made_shape[a] for a in axes.result[2]))
    if 0 in (*shape, *image.shape, *kernel.shape):
        return np.zeros(made_shape)
    found = windows(image, kernel.shape[2:], op.strides, op.kernel_dilations)
    # Either the features or the images are in groups.
    n, g, c, o = range(4)
    spatial, under = range(4, 4 + rank), range(4 + rank, 4 + 2 * rank)
    heads, lead = ((batches, shape[0]), (g, n)) if batches > 1 else ((shape[0], groups), (n, g))
    found = found.reshape(*heads, kernel.shape[1], *found.shape[2:])
    own = kernel.reshape(groups * batches, -1, *kernel.shape[1:])
    read, used, written = [*lead, c, *spatial, *under], [g, o, c, *under], [n, g, o, *spatial]
    made = np.einsum(found, read, own, used, written).reshape(shape)
    order = [0] * (rank + 2)
    for i, a in enumerate((axes.result[0], axes.result[1], *axes.result[2])):
        order[a] = i
    return np.transpose(made, order)


def windows(
    value: Array, window: Sequence[int], strides: Sequence[int], reaches: Sequence[int]
) -> Array:
    """The elements under a window that moves over the last axes, as further axes behind these.

    Args:
        window: no larger than the tensor, along each of the axes.
        strides: from one place of the window to the next.
        reaches: from one element under the window to the next.
    """
    if not len(window):
        return value
    spans = [(n - 1) * reach + 1 for n, reach in zip(window, reaches, strict=True)]
    along = tuple(range(value.ndim - len(window), value.ndim))
    # NumPy moves no windows over types that it does not know.
    bits = value.view(f"u{value.dtype.itemsize}")
    found = np.lib.stride_tricks.sliding_window_view(bits, spans, along).view(value.dtype)
    return found[(..., *(slice(None, None, each) for each in (*strides, *reaches)))]


def _fft(op: stablehlo.FftOp, operands: Arrays) -> Array:
    (value,), lengths = operands, op.lengths
    if 0 in (*value.shape, *shape_of(op.result)):
        return np.zeros(shape_of(op.result))
    axes = range(value.ndim - len(lengths), value.ndim)
    return _TRANSFORMS[op.fft_type.data](wide(value), lengths, axes)


_TRANSFORMS: Mapping[str, Callable[..., Array]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}

MOVING: Mapping[str, Callable[[Any, Arrays], Array]] = {
    "stablehlo.iota": _iota,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.broadcast": _broadcast,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.slice": _slice,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.reverse": _reverse,
    "stablehlo.pad": _pad,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dot": _dot,
    "stablehlo.convolution": _convolution,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_conv": _dynamic_conv,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.get_dimension_size": _dimension_size,
    "stablehlo.fft": _fft,
    **MATRICES,
}
"""What computes each of these operations, by name."""
