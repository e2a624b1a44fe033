"""ONNX's Det: the determinant, by eliminating one column after the other."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import dtype_of
from .node import Importer, Node, Results
from .ops_extremes import hardmax

MOST_ROWS = 64
"""The most rows of a matrix, because the elimination is unrolled column by column."""


def _det(node: Node) -> Results:
    *outer, n, columns = (0, 0, *node.shape(0))[-max(len(node.shape(0)), 2) :]
    if len(node.shape(0)) < 2 or n != columns:
        raise node.bad(f"matrix of shape {list(node.shape(0))}; need two equal last axes")
    if n > MOST_ROWS:
        raise node.unsupported(f"a matrix of {n} rows", f"up to {MOST_ROWS} are")
    if n == 0:
        return node.filled(np.ones((), dtype_of(node.value(0))), outer)
    rest = node.reshape(node.wide(node[0]), (prod(outer), n, n))
    total: SSAValue | None = None
    for _ in range(n):
        pivot, rest = _eliminated(node, rest)
        total = pivot if total is None else node.add(nn.MulOp(total, pivot))
    assert total is not None
    return node.reshape(node.cast(total, nn.element_of(node[0])), outer)


def _eliminated(node: Node, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """One step of elimination on matrices [m, n, n].

    Returns the first factor of their determinants, and the remaining matrices. The row with the
    largest element in the first column is swapped with the first row.
    """
    m, n, _ = nn.shape_of(value)
    column = _part(node, value, [0, 0, 0], [m, n, 1])
    if n == 1:
        return node.reshape(column, (m,)), value
    chosen = hardmax(node, node.add(nn.AbsOp(column)), 1)
    row = node.add(nn.MatMulOp(chosen, value, transpose_lhs=True))
    is_chosen = node.add(nn.EqualOp(chosen, node.constant(1, chosen)))
    swapped = node.add(nn.SelectOp(is_chosen, _part(node, value, [0, 0, 0], [m, 1, n]), value))
    pivot = node.reshape(_part(node, row, [0, 0, 0], [m, 1, 1]), (m,))
    first = node.reshape(_part(node, chosen, [0, 0, 0], [m, 1, 1]), (m,))
    # 1 if the first row is not swapped, -1 if it is.
    sign = node.add(nn.ShiftOp(node.add(nn.ScaleOp(first, 2.0)), -1.0))
    is_zero = node.add(nn.EqualOp(pivot, node.constant(0, pivot)))
    divisor = node.add(nn.SelectOp(is_zero, node.constant(1, pivot), pivot))
    left = _part(node, swapped, [0, 1, 0], [m, n - 1, 1])
    factor = node.add(nn.DivOp(left, node.reshape(divisor, (m, 1, 1))))
    above = _part(node, row, [0, 0, 1], [m, 1, n - 1])
    inner = _part(node, swapped, [0, 1, 1], [m, n - 1, n - 1])
    rest = node.add(nn.SubOp(inner, node.add(nn.MulOp(factor, above))))
    return node.add(nn.MulOp(pivot, sign)), rest


def _part(node: Node, value: SSAValue, starts: list[int], sizes: list[int]) -> SSAValue:
    return node.add(nn.SliceOp(value, starts, [1, 1, 1], sizes))


DETERMINANTS: dict[str, Importer] = {"Det": _det}
