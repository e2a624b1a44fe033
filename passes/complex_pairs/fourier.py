"""Fourier transforms as products with matrices.

A transform of n elements is one product with an n by n matrix. One of n = a * b elements, of more
than DIRECT, is transforms of a elements, products with numbers of magnitude 1, and transforms of b
elements, as Cooley and Tukey split it. One of a prime number of elements, of more than PRIME, is a
convolution, and so transforms of a power of two, as Bluestein has it. Both parts of a number lie
one after the other along the axis, so that one matrix of floats does four products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from ...dialects import stablehlo
from ...dialects.source_types import dtype_of_elements, is_complex, part_type, shape_of
from . import moving
from .splitting import Made, Pair, Rule, Splitting
from .terms import Complex, Term

DIRECT = 64
"""The most elements that are always transformed by one matrix. Assumed: up to here, a product takes
fewer cycles than the exchanges between two."""

PRIME = 512
"""The largest prime number of elements that one matrix transforms. Beyond it, a convolution takes
fewer multiplications."""

EXACT = 1e-15
"""Below this, the cosine of a whole number of quarters of a turn is a rounded 0."""

Matrix = NDArray[np.float64]


def _fft(op: stablehlo.FftOp, new: Splitting) -> Sequence[Made]:
    kind, lengths = op.fft_type.data, op.lengths
    rank = len(shape_of(op.operand))
    made = part_type(op.result) if is_complex(op.result) else op.result
    if 0 in (*shape_of(op.operand), *shape_of(op.result)):
        zero = new.add(stablehlo.ConstantOp(np.zeros(shape_of(made), dtype_of_elements(made))))
        return [(zero, zero) if is_complex(op.result) else zero]
    axes = range(rank - len(lengths), rank)
    last, others = axes[-1], axes[:-1]
    inverse = kind in ("IFFT", "IRFFT")
    if kind == "RFFT":
        value = _of_floats(new, op.operand, last)
    else:
        value = new.pair(op.operand)
        if kind != "IRFFT":
            value = _along(new, value, last, inverse=inverse)
    for axis in others:
        value = _along(new, value, axis, inverse=inverse)
    if kind == "IRFFT":
        return [_to_floats(new, value, last, lengths[-1])]
    return [value]


def _turns(rows: NDArray[np.int64], columns: NDArray[np.int64], n: int) -> tuple[Matrix, Matrix]:
    """The cosines and sines of the products of numbers, in n-ths of a full turn."""
    return _turned(np.outer(rows, columns), n)


def _turned(numbers: NDArray[np.int64], n: int) -> tuple[Matrix, Matrix]:
    """The cosines and sines of numbers of n-ths of a full turn."""
    # Whole turns are left out before the angle is rounded.
    angles = numbers % n * (2 * np.pi / n)
    # A quarter of a turn is exact too.
    cos, sin = (np.where(abs(each) < EXACT, 0.0, each) for each in (np.cos(angles), np.sin(angles)))
    return cos, sin


def _along(new: Splitting, value: Pair, axis: int, *, inverse: bool) -> Pair:
    """The transform along one axis, whose inverse is divided by its length."""
    n = shape_of(value[0])[axis]
    found = _plain(new, value, axis, inverse=inverse)
    if not inverse or n == 1:
        return found
    real, imag = (Term(new, each) * (1 / n) for each in found)
    return real.value, imag.value


def _plain(new: Splitting, value: Pair, axis: int, *, inverse: bool) -> Pair:
    """The transform along one axis, without a factor."""
    n = shape_of(value[0])[axis]
    if n == 1:
        return value
    if not _is_direct(n):
        parts = _factors(n)
        if parts is not None:
            return _in_two(new, value, axis, parts, inverse=inverse)
        return _convolved(new, value, axis, inverse=inverse)
    numbers = np.arange(n)
    cos, sin = _turns(numbers, numbers, n)
    sin = sin if inverse else -sin
    both = np.block([[cos, sin], [-sin, cos]])
    made = _times(new, moving.concatenate(new, value, axis), both, axis)
    return moving.box(new, made, axis, 0, n), moving.box(new, made, axis, n, 2 * n)


def _is_direct(n: int) -> bool:
    """Whether one matrix transforms n elements."""
    return n <= DIRECT or (n <= PRIME and _factors(n) is None)


def _factors(n: int) -> tuple[int, int] | None:
    """Two numbers with a product, as near to each other as there are; None for a prime."""
    first = next((a for a in range(isqrt(n), 1, -1) if n % a == 0), None)
    return None if first is None else (first, n // first)


def _in_two(
    new: Splitting, value: Pair, axis: int, parts: tuple[int, int], *, inverse: bool
) -> Pair:
    """The transform along an axis of a * b elements, by one of a elements and one of b."""
    a, b = parts
    shape = shape_of(value[0])
    split = (*shape[:axis], a, b, *shape[axis + 1 :])
    real, imag = (moving.reshape(new, each, split) for each in value)
    real, imag = _plain(new, (real, imag), axis, inverse=inverse)
    cos, sin = _turns(np.arange(a), np.arange(b), a * b)
    sin = sin if inverse else -sin
    both = _plain(new, _scaled(new, (real, imag), (cos, sin), axis), axis + 1, inverse=inverse)
    # The number of a frequency is that of the first transform plus a times that of the second.
    order = [*range(axis), axis + 1, axis, *range(axis + 2, len(split))]
    real, imag = (moving.reshape(new, moving.transpose(new, each, order), shape) for each in both)
    return real, imag


def _convolved(new: Splitting, value: Pair, axis: int, *, inverse: bool) -> Pair:
    """The transform along an axis of any number of elements, by those of a power of two.

    The product of two numbers is half of the sum of their squares minus that of their difference,
    so the transform is a convolution with one number of magnitude 1 for each difference.
    """
    n = shape_of(value[0])[axis]
    size = 1 << (2 * n - 2).bit_length()
    cos, sin = _turned(np.arange(n) ** 2, 2 * n)
    sin = sin if inverse else -sin
    kernel = np.zeros(size, np.complex128)
    kernel[:n] = cos - 1j * sin
    kernel[size - n + 1 :] = kernel[n - 1 : 0 : -1]
    kernel = np.fft.fft(kernel) / size
    real, imag = (
        moving.pad(new, each, axis, size - n) for each in _scaled(new, value, (cos, sin), axis)
    )
    found = _plain(new, (real, imag), axis, inverse=False)
    found = _scaled(new, found, (kernel.real, kernel.imag), axis)
    found = _plain(new, found, axis, inverse=True)
    real, imag = (moving.box(new, each, axis, 0, n) for each in found)
    return _scaled(new, (real, imag), (cos, sin), axis)


def _scaled(new: Splitting, value: Pair, by: tuple[Matrix, Matrix], axis: int) -> Pair:
    """The products with complex numbers along as many axes as these have, from one on."""
    shape, dtype = shape_of(value[0]), dtype_of_elements(value[0])
    axes = range(axis, axis + by[0].ndim)
    held = (new.add(stablehlo.ConstantOp(each.astype(dtype))) for each in by)
    spread = (Term(new, moving.repeat(new, each, axes, shape)) for each in held)
    found = Complex(*(Term(new, each) for each in value)) * Complex(*spread)
    return found.real.value, found.imag.value


def _times(new: Splitting, value: SSAValue, matrix: Matrix, axis: int) -> SSAValue:
    """The products of the rows along an axis with a matrix."""
    weights = new.add(stablehlo.ConstantOp(matrix.astype(dtype_of_elements(value))))
    made = moving.product(new, value, weights, axis)
    rank = len(shape_of(value))
    order = [*range(axis), rank - 1, *range(axis, rank - 1)]
    return moving.transpose(new, made, order)


def _of_floats(new: Splitting, value: SSAValue, axis: int) -> Pair:
    """The first half of the frequencies of floats, and one more."""
    n = shape_of(value)[axis]
    kept = n // 2 + 1
    if not _is_direct(n):
        found = _plain(new, (value, new.number(0.0, value)), axis, inverse=False)
        real, imag = (moving.box(new, each, axis, 0, kept) for each in found)
        return real, imag
    cos, sin = _turns(np.arange(n), np.arange(kept), n)
    made = _times(new, value, np.concatenate([cos, -sin], axis=1), axis)
    return moving.box(new, made, axis, 0, kept), moving.box(new, made, axis, kept, 2 * kept)


def _to_floats(new: Splitting, value: Pair, axis: int, n: int) -> SSAValue:
    """The floats whose first half of the frequencies is given. Those left out are conjugates."""
    kept = n // 2 + 1
    if not _is_direct(n):
        real, imag = value
        rest = (moving.box(new, each, axis, 1, n - kept + 1) for each in value)
        back = [moving.reverse(new, each, axis) for each in rest]
        whole = (
            moving.concatenate(new, [real, back[0]], axis),
            moving.concatenate(new, [imag, (-Term(new, back[1])).value], axis),
        )
        return _along(new, whole, axis, inverse=True)[0]
    cos, sin = _turns(np.arange(kept), np.arange(n), n)
    # Frequencies stand for themselves and for their conjugates, but 0 and the middle one do not.
    count = np.where((np.arange(kept) * 2) % n == 0, 1.0, 2.0)[:, None] / n
    matrix = np.concatenate([cos * count, -sin * count])
    return _times(new, moving.concatenate(new, value, axis), matrix, axis)


RULES: Mapping[str, Rule] = {"stablehlo.fft": _fft}
"""What replaces each transform, by name."""
