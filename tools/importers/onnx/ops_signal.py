"""ONNX operators on signals: Fourier transforms as products with constant matrices, and windows."""

from __future__ import annotations

from math import isqrt, prod

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from .node import Importer, Node, Results

Numbers = NDArray[np.float64]

LARGEST_MATRIX = 256
"""The longest transform of complex numbers that is a single product, if its length can be
factored."""


def _signals(node: Node, length: int, parts: int) -> NDArray[np.complex128]:
    """The signals with a single 1, and with a single i if there are two parts, [length * parts,
    length].

    A linear transform of these signals is the transform's matrix.
    """
    node.check_table(length * parts, length)
    one = np.eye(length, dtype=np.complex128)
    return one if parts == 1 else np.stack([one, 1j * one], 1).reshape(-1, length)


def _pairs(values: NDArray[np.complex128]) -> Numbers:
    """Complex numbers [rows, n] as numbers [rows, n * 2], each real part before its imaginary
    part."""
    return np.stack([values.real, values.imag], -1).reshape(len(values), -1)


def _transform_matrix(
    node: Node, length: int, size: int, parts: int, *, inverse: bool, onesided: bool
) -> Numbers:
    """The matrix of a transform, [length * parts, size of the result * its parts].

    Args:
        length: of the signals, which are cropped or padded with zeros to the size of the transform.
    """
    node.check_table(length * parts, size * 2)
    signals = _signals(node, length, parts)
    if inverse and onesided:
        return np.fft.irfft(signals, size)
    found = np.fft.ifft(signals, size) if inverse else np.fft.fft(signals, size)
    return _pairs(found[:, : size // 2 + 1] if onesided else found)


def _dft(node: Node) -> Results:
    shape = node.shape(0)
    rank = len(shape)
    if rank < 2 or shape[-1] not in (1, 2):
        raise node.bad(f"signal of shape {list(shape)}; need a last axis of size 1 or 2")
    if node.opset >= 20:
        given = int(node.array_scalar(2, "axis")) if node.has(2) else -2
    else:
        given = node.integer("axis", 1)
    axis = node.axis(given, rank)
    if axis == rank - 1:
        raise node.bad(f"axis {given} is that of real and imaginary parts; need another one")
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    length, parts = shape[axis], shape[-1]
    size = 2 * (length - 1) if inverse and onesided else length
    size = int(node.array_scalar(1, "dft_length")) if node.has(1) else size
    if size < 1:
        raise node.bad(f"a transform of {size} elements; need 1 or more")
    order = [*(i for i in range(rank) if i != axis)]
    order.insert(rank - 2, axis)
    value = node.wide(node[0])
    moved = value if order == list(range(rank)) else node.add(nn.TransposeOp(value, order))
    outer = [n for i, n in enumerate(nn.shape_of(moved)) if i < rank - 2]
    flat = node.reshape(moved, (prod(outer), length * parts))
    if not onesided and parts == 2 and length == size:
        found = _fourier(node, flat, size, inverse=inverse)
        found = node.add(nn.ScaleOp(found, 1 / size)) if inverse else found
    else:
        matrix = _transform_matrix(node, length, size, parts, inverse=inverse, onesided=onesided)
        found = node.add(nn.MatMulOp(flat, node.emitted(matrix, flat)))
    made = 1 if inverse and onesided else 2
    found = node.reshape(found, (*outer, nn.shape_of(found)[1] // made, made))
    back = [order.index(i) for i in range(rank)]
    found = found if order == list(range(rank)) else node.add(nn.TransposeOp(found, back))
    return node.cast(found, nn.element_of(node[0]))


def _fourier(node: Node, value: SSAValue, size: int, *, inverse: bool) -> SSAValue:
    """The transform of complex signals [rows, size * 2], not divided by their size.

    Cooley and Tukey: of a * b elements, transform every b-th one, multiply by roots of unity, and
    transform the results of these.
    """
    sign = 1 if inverse else -1
    a = next(n for n in range(isqrt(size), 0, -1) if size % n == 0)
    if size <= LARGEST_MATRIX or a == 1:
        signals = _signals(node, size, 2)
        found = np.fft.ifft(signals) * size if inverse else np.fft.fft(signals)
        return node.add(nn.MatMulOp(value, node.emitted(_pairs(found), value)))
    b, rows = size // a, nn.shape_of(value)[0]
    node.check_table(b, a)
    split = node.reshape(value, (rows, a, b, 2))
    columns = node.add(nn.TransposeOp(split, [0, 2, 1, 3]))
    inner = _fourier(node, node.reshape(columns, (rows * b, a * 2)), a, inverse=inverse)
    roots = np.exp(sign * 2j * np.pi / size * np.outer(np.arange(b), np.arange(a)))
    turned = _times(node, node.reshape(inner, (rows, b, a, 2)), roots)
    lines = node.add(nn.TransposeOp(turned, [0, 2, 1, 3]))
    outer = _fourier(node, node.reshape(lines, (rows * a, b * 2)), b, inverse=inverse)
    whole = node.add(nn.TransposeOp(node.reshape(outer, (rows, a, b, 2)), [0, 2, 1, 3]))
    return node.reshape(whole, (rows, size * 2))


def _times(node: Node, value: SSAValue, factors: NDArray[np.complex128]) -> SSAValue:
    """Complex numbers [..., n, m, 2] times constants [n, m]."""
    shape = nn.shape_of(value)
    first = [0] * len(shape)
    part = [*shape[:-1], 1]
    real, imaginary = (
        node.add(nn.SliceOp(value, [*first[:-1], i], [1] * len(shape), part)) for i in (0, 1)
    )
    swapped = node.add(nn.ConcatOp([imaginary, real], -1))
    cosines = node.emitted(np.stack([factors.real] * 2, -1), value)
    sines = node.emitted(np.stack([-factors.imag, factors.imag], -1), value)
    along = node.add(nn.MulOp(value, cosines))
    return node.add(nn.AddOp(along, node.add(nn.MulOp(swapped, sines))))


def _stft(node: Node) -> Results:
    """Fourier transforms of windows that move over a signal: a convolution with weights per
    frequency.
    """
    shape = node.shape(0)
    if len(shape) != 3 or shape[-1] not in (1, 2):
        raise node.bad(f"signal of shape {list(shape)}; need [batch, length, 1 or 2]")
    step = int(node.array_scalar(1, "frame_step"))
    length = node.shape(2)[0] if node.has(2) else shape[1]
    length = int(node.array_scalar(3, "frame_length")) if node.has(3) else length
    if step < 1 or not 1 <= length <= shape[1]:
        raise node.bad(f"frames of {length} elements every {step} of a signal of {shape[1]}")
    if node.has(2) and node.shape(2) != (length,):
        raise node.bad(f"window of shape {list(node.shape(2))}; need [{length}]")
    onesided = node.flag("onesided", True)
    parts = shape[-1]
    matrix = _transform_matrix(node, length, length, parts, inverse=False, onesided=onesided)
    value = node.wide(node[0])
    weights = matrix.reshape(length, parts, -1).transpose(2, 1, 0)
    factor = node.emitted(weights, value)
    if node.has(2):
        factor = node.add(nn.MulOp(factor, node.cast(node[2], nn.element_of(value))))
    channels = node.add(nn.TransposeOp(value, [0, 2, 1]))
    found = node.add(nn.ConvOp(channels, factor, stride=[step]))
    _, numbers, frames = nn.shape_of(found)
    found = node.reshape(found, (shape[0], numbers // 2, 2, frames))
    found = node.add(nn.TransposeOp(found, [0, 3, 1, 2]))
    return node.cast(found, nn.element_of(node[0]))


def _cosines(*factors: float) -> Importer:
    """A window that is a sum of cosines.

    Args:
        factors: of the cosines of 0, 1, ... periods.
    """

    def importer(node: Node) -> Results:
        size = int(node.array_scalar(0, "size"))
        if size < 0:
            raise node.bad(f"size {size}; need 0 or more")
        dtype = numpy_dtype(node.element(node.integer("output_datatype", 1)))
        period = size if node.flag("periodic", True) else size - 1
        node.check_table(len(factors), size)
        angle = 2 * np.pi * np.arange(size) / max(period, 1)
        periods = np.arange(len(factors))[:, None]
        return node.known((np.array(factors) @ np.cos(periods * angle)).astype(dtype))

    return importer


def _mel_weights(node: Node) -> Results:
    """Triangular filters over the frequencies of a transform, evenly spaced on the mel scale."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    bins, length, rate, low, high = (node.array_scalar(i, name) for i, name in enumerate(names))
    if bins < 1 or length < 1 or rate < 1 or not 0 <= low <= high <= rate / 2:
        raise node.bad(
            f"{bins:g} bins, length {length:g}, rate {rate:g}, edges {low:g} and {high:g}; need "
            "1 or more, and edges in order up to half the rate"
        )
    count, rows = int(bins), int(length) // 2 + 1
    node.check_table(rows, count)
    mels = 2595 * np.log10(1 + np.array([low, high]) / 700)
    # Like onnx's reference, which divides by one more than the number of steps.
    edges = np.arange(count + 2) * ((mels[1] - mels[0]) / (count + 2)) + mels[0]
    hertz = 700 * (10 ** (edges / 2595) - 1)
    at = np.floor((length + 1) * hertz / rate).astype(np.int64)
    begin, centre, end = at[:-2], at[1:-1], at[2:]
    row = np.arange(rows)[:, None]
    rising = np.where(centre > begin, (row - begin) / np.maximum(centre - begin, 1), 1.0)
    falling = (end - row) / np.maximum(end - centre, 1)
    found = np.where((row >= begin) & (row <= centre), rising, 0.0)
    found = np.where((row >= centre) & (row < end) & (end > centre), falling, found)
    dtype = numpy_dtype(node.element(node.integer("output_datatype", 1)))
    return node.known(found.astype(dtype))


SIGNALS: dict[str, Importer] = {
    "DFT": _dft,
    "STFT": _stft,
    "HannWindow": _cosines(0.5, -0.5),
    "HammingWindow": _cosines(25 / 46, -21 / 46),
    "BlackmanWindow": _cosines(0.42, -0.5, 0.08),
    "MelWeightMatrix": _mel_weights,
}
