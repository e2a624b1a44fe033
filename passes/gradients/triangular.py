"""What triangular factors and solutions of triangular systems pass back.

Source: Giles, Collected Matrix Derivative Results for Forward and Reverse Mode Algorithmic
Differentiation, 2008; Murray, Differentiation of the Cholesky decomposition, 2016.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from .emit import Emitter


def cholesky(
    emit: Emitter, op: Operation, gradients: Sequence[SSAValue | None], wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The gradient of the triangle that is read: L^-T P L^-1 and its transpose, added.

    P is the lower triangle of L^T times the gradient, with half of the diagonal. An element of the
    triangle stands for two of the matrix, except on the diagonal.
    """
    assert isinstance(op, nn.CholeskyOp)
    (gradient,) = gradients
    assert gradient is not None
    factor, upper = op.result, op.upper is not None
    if upper:
        product = nn.MatMulOp(factor, gradient, transpose_rhs=True)
    else:
        product = nn.MatMulOp(factor, gradient, transpose_lhs=True)
    half = _triangle(emit, emit(product), lower=True, diagonal=0.5)
    left = emit(nn.TriangularSolveOp(factor, half, lower=not upper, transpose=not upper))
    both = emit(
        nn.TriangularSolveOp(factor, left, lower=not upper, transpose=upper, from_right=True)
    )
    rank = len(nn.shape_of(both))
    turned = emit(nn.TransposeOp(both, [*range(rank - 2), rank - 1, rank - 2]))
    total = emit(nn.AddOp(both, turned))
    return {0: _triangle(emit, total, lower=not upper, diagonal=0.5)}


def triangular_solve(
    emit: Emitter, op: Operation, gradients: Sequence[SSAValue | None], wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The gradient of B solves the transposed systems. That of A is minus its product with X."""
    assert isinstance(op, nn.TriangularSolveOp)
    (gradient,) = gradients
    assert gradient is not None
    lower, unit = op.lower is not None, op.unit is not None
    transposed, from_right = op.transpose is not None, op.from_right is not None
    right = emit(
        nn.TriangularSolveOp(
            op.matrix,
            gradient,
            lower=lower,
            transpose=not transposed,
            unit=unit,
            from_right=from_right,
        )
    )
    found = {1: right} if 1 in wanted else {}
    if 0 in wanted:
        first, second = (op.result, right) if transposed != from_right else (right, op.result)
        product = nn.MatMulOp(first, second, transpose_lhs=from_right, transpose_rhs=not from_right)
        minus = emit(nn.NegOp(emit(product)))
        found[0] = _triangle(emit, minus, lower=lower, diagonal=0.0 if unit else 1.0)
    return found


def _triangle(emit: Emitter, value: SSAValue, *, lower: bool, diagonal: float) -> SSAValue:
    """One triangle of square matrices, and zeros.

    Args:
        diagonal: what the elements on the diagonal are multiplied by.
    """
    shape = nn.shape_of(value)[-2:]
    row, column = (emit(nn.IotaOp(nn.tensor(shape, i32), steps)) for steps in ([1, 0], [0, 1]))
    first, second = (row, column) if lower else (column, row)
    on = emit(nn.ScaleOp(value, diagonal)) if diagonal not in (0.0, 1.0) else value
    rest = emit(nn.SelectOp(emit(nn.GreaterOp(first, second)), value, emit.zero(value)))
    if not diagonal:
        return rest
    return emit(nn.SelectOp(emit(nn.EqualOp(row, column)), on, rest))
