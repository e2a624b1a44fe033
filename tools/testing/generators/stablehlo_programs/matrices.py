"""Draws factors of matrices, and systems of equations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import BoolAttr, f16, f32, f64
from xdsl.ir import SSAValue

from .....dialects import nn, stablehlo
from .draft import Draft, Draw, Kinds

ELEMENTS: Kinds = (*[f32] * 4, f16, f64)

ROWS = (1, 2, 3, 5, 9)
"""The sizes of matrices. The largest one has several blocks."""


def _regular(draft: Draft) -> SSAValue:
    """Matrices of which each triangle is that of a positive definite matrix, with a diagonal that
    is larger than all other elements of a row together.
    """
    rows, element = draft.choice(ROWS), draft.choice(ELEMENTS)
    shape = (*draft.shape(0, 1), rows, rows)
    type_ = nn.tensor(shape, element)
    (small,) = draft.add("stablehlo.tanh", [draft.of(shape, element)], [type_])
    part = draft.constant(np.full(shape, 1 / rows), element)
    two = draft.constant(np.broadcast_to(2 * np.eye(rows), shape), element)
    (small,) = draft.add("stablehlo.multiply", [small, part], [type_])
    (found,) = draft.add("stablehlo.add", [small, two], [type_])
    return found


def _cholesky(draft: Draft, name: str) -> None:
    matrix = _regular(draft)
    lower = BoolAttr.from_bool(draft.chance(0.5))
    draft.add(name, [matrix], [matrix.type], {"lower": lower} if draft.chance(0.8) else {})


def _triangular_solve(draft: Draft, name: str) -> None:
    matrix = _regular(draft)
    *batch, rows, _ = nn.shape_of(matrix)
    left, columns = draft.chance(0.5), draft.choice((1, 2, 4))
    shape = (*batch, *((rows, columns) if left else (columns, rows)))
    right = draft.of(shape, nn.element_of(matrix))
    flags = {"left_side": left, "lower": draft.chance(0.5), "unit_diagonal": draft.chance(0.5)}
    how = {each: BoolAttr.from_bool(flag) for each, flag in flags.items()}
    word = draft.choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    turned = {"transpose_a": stablehlo.TransposeAttr(word)}
    draft.add(name, [matrix, right], [right.type], {**how, **turned})


TABLE: Mapping[str, Draw] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.triangular_solve": _triangular_solve,
}
"""What draws each of these operations, by name."""
