"""Factors of matrices, and systems of equations: the operations, and the calls by which JAX asks
LAPACK for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i32
from xdsl.ir import SSAValue

from ...dialects import nn, stablehlo
from .conversion import Lower, ToNn

CONFIG = "mhlo.backend_config"
"""The attribute with further arguments of a call."""


def _cholesky(op: stablehlo.CholeskyOp, new: ToNn) -> Sequence[SSAValue]:
    (value,) = new.operands(op)
    return [new.add(nn.CholeskyOp(value, upper=not op.is_lower))]


def _triangular_solve(op: stablehlo.TriangularSolveOp, new: ToNn) -> Sequence[SSAValue]:
    matrix, right = new.operands(op)
    made = nn.TriangularSolveOp(
        matrix,
        right,
        lower=bool(op.lower),
        transpose=op.is_turned,
        unit=bool(op.unit_diagonal),
        from_right=not op.left_side,
    )
    return [new.add(made)]


# Calls of LAPACK


def _letters(op: stablehlo.CustomCallOp, new: ToNn, known: Mapping[str, str]) -> list[str]:
    """The letters that the configuration of a call gives for some names.

    Args:
        known: for each name, the letters that it may have.
    """
    config = op.attributes.get(CONFIG)
    found: list[str] = []
    for name, letters in known.items():
        value = config.data.get(name) if isinstance(config, DictionaryAttr) else None
        letter = chr(value.value.data % 256) if isinstance(value, IntegerAttr) else ""
        if letter not in letters or not letter:
            raise new.bad(f"{name} is {letter or 'missing'}; need {' or '.join(letters)}")
        found.append(letter)
    return found


def _factor(op: stablehlo.CustomCallOp, new: ToNn) -> Sequence[SSAValue]:
    """The factors, and for each matrix the number of the first row that has none, from 1, or 0.

    LAPACK leaves the other triangle of a matrix as it is.
    """
    (uplo,) = _letters(op, new, {"uplo": "LU"})
    (value,) = _operands(op, new, 1)
    factor = new.add(nn.CholeskyOp(value, upper=uplo == "U"))
    bad = nn.bad_pivot(new.add, factor)
    if [each.type for each in op.made] != [factor.type, bad.type]:
        raise new.bad(f"need results {factor.type} and {bad.type}")
    square = nn.tensor(nn.shape_of(value)[-2:], i32)
    row, column = (new.add(nn.IotaOp(square, steps)) for steps in ([1, 0], [0, 1]))
    first, second = (column, row) if uplo == "U" else (row, column)
    made = new.add(nn.GreaterEqualOp(first, second))
    return [new.select(made, factor, value), bad]


def _solve(op: stablehlo.CustomCallOp, new: ToNn) -> Sequence[SSAValue]:
    known = {"diag": "NU", "side": "LR", "trans_x": "NTC", "uplo": "LU"}
    diag, side, trans, uplo = _letters(op, new, known)
    matrix, right = _operands(op, new, 2)
    made = nn.TriangularSolveOp(
        matrix,
        right,
        lower=uplo == "L",
        transpose=trans != "N",
        unit=diag == "U",
        from_right=side == "R",
    )
    return [new.add(made)]


def _operands(op: stablehlo.CustomCallOp, new: ToNn, count: int) -> list[SSAValue]:
    operands = new.operands(op)
    if len(operands) != count:
        raise new.bad(f"{len(operands)} operands; need {count}")
    return operands


CALLS: Mapping[str, Callable[[stablehlo.CustomCallOp, ToNn], Sequence[SSAValue]]] = {
    f"lapack_{kind}{name}": call
    for kind in "sd"
    for name, call in {"potrf_ffi": _factor, "trsm_ffi": _solve}.items()
}
"""What lowers a call of a function for f32 or f64, by its name."""

TABLE: Mapping[str, Lower] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.triangular_solve": _triangular_solve,
}
"""What lowers each operation, by name."""
