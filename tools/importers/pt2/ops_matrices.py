"""ATen operators that factor matrices and solve systems of equations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ....dialects import nn
from .aten_node import AtenNode, Importer, Results


def _cholesky(node: AtenNode) -> Results:
    return node.add(nn.CholeskyOp(node["self"], upper=node.flag("upper", False)))


def _cholesky_ex(node: AtenNode) -> Results:
    """The factors, and for each matrix the number of the first row that has none, or 0."""
    factor = node.add(nn.CholeskyOp(node["self"], upper=node.flag("upper", False)))
    return [factor, nn.bad_pivot(node.add, factor) if node.wants(1) else None]


def _of_one_batch(node: AtenNode, *names: str) -> list[SSAValue]:
    """Operands whose axes before the last two are broadcast."""
    values = [node[name] for name in names]
    shapes = [nn.shape_of(each) for each in values]
    for name, shape in zip(names, shapes, strict=True):
        if len(shape) < 2:
            raise node.bad(f"{name} of shape {list(shape)}; need two axes or more")
    with node.checked():
        batch = nn.broadcast([shape[:-2] for shape in shapes])
    return [
        each if shape[:-2] == batch else node.add(nn.ExpandOp(each, (*batch, *shape[-2:])))
        for each, shape in zip(values, shapes, strict=True)
    ]


def _solve_triangular(node: AtenNode) -> Results:
    matrix, right = _of_one_batch(node, "self", "B")
    made = nn.TriangularSolveOp(
        matrix,
        right,
        lower=not node.flag("upper"),
        unit=node.flag("unitriangular", False),
        from_right=not node.flag("left", True),
    )
    return node.add(made)


def _triangular_solve(node: AtenNode) -> Results:
    """The solutions, and the matrices."""
    matrix, right = _of_one_batch(node, "A", "self")
    made = nn.TriangularSolveOp(
        matrix,
        right,
        lower=not node.flag("upper", True),
        transpose=node.flag("transpose", False),
        unit=node.flag("unitriangular", False),
    )
    return [node.add(made), matrix]


def _cholesky_solve(node: AtenNode) -> Results:
    """The solutions of two triangular systems, the second with the transposed factor."""
    factor, right = _of_one_batch(node, "input2", "self")
    lower = not node.flag("upper", False)
    for transpose in _order(lower=lower):
        right = node.add(nn.TriangularSolveOp(factor, right, lower=lower, transpose=transpose))
    return right


def _order(*, lower: bool) -> Sequence[bool]:
    """Whether each of the two factors of a matrix is the transposed one, the first one first."""
    return (False, True) if lower else (True, False)


MATRICES: dict[str, Importer] = {
    "linalg_cholesky": _cholesky,
    "cholesky": _cholesky,
    "linalg_cholesky_ex": _cholesky_ex,
    "linalg_solve_triangular": _solve_triangular,
    "triangular_solve": _triangular_solve,
    "cholesky_solve": _cholesky_solve,
}
"""The importers of factors of matrices, and of systems of equations."""
