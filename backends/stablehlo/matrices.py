"""Operations on matrices in the last two axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dialects import stablehlo
from ...ir.support.arrays import Array
from .elements import wide

Arrays = Sequence[Array]


def _turned(value: Array) -> Array:
    return np.swapaxes(value, -1, -2)


def _cholesky(op: stablehlo.CholeskyOp, operands: Arrays) -> Array:
    """Row by row, as NaN where a matrix is not positive definite: NumPy raises an error there."""
    value = wide(operands[0])
    read = np.tril(value if op.is_lower else np.conj(_turned(value)))
    made = np.zeros_like(read)
    with np.errstate(invalid="ignore", divide="ignore"):
        for j in range(read.shape[-1]):
            before = made[..., j:, :j] @ np.conj(made[..., j, :j, None])
            column = read[..., j:, j] - before[..., 0]
            made[..., j:, j] = column / np.sqrt(column[..., :1])
    return made if op.is_lower else np.conj(_turned(made))


def _triangular_solve(op: stablehlo.TriangularSolveOp, operands: Arrays) -> Array:
    """Row by row of the solutions, from the side where the triangle is narrow."""
    a, b = map(wide, operands)
    a = np.tril(a) if op.lower else np.triu(a)
    a = np.conj(a) if op.transpose_a.data == "ADJOINT" else a
    lower = bool(op.lower)
    if op.is_turned == bool(op.left_side):
        a, lower = _turned(a), not lower
    b = b if op.left_side else _turned(b)
    made = np.zeros_like(b)
    rows = range(b.shape[-2]) if lower else reversed(range(b.shape[-2]))
    with np.errstate(invalid="ignore", divide="ignore"):
        for i in rows:
            known = slice(0, i) if lower else slice(i + 1, None)
            rest = b[..., i, :] - (a[..., i, None, known] @ made[..., known, :])[..., 0, :]
            made[..., i, :] = rest if op.unit_diagonal else rest / a[..., i, i, None]
    return made if op.left_side else _turned(made)


MATRICES: Mapping[str, Callable[[Any, Arrays], Array]] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.triangular_solve": _triangular_solve,
}
"""What computes each of these operations, by name."""
