"""Factors of matrices and triangular systems of PyTorch, for other numbers of samples or sizes."""

from typing import Any

import numpy as np
import pytest

from abele.ir.support.errors import InputError

from .fixture_models import imported, results
from .written import node_tree, written

LOWER = np.array([[2, 0, 0], [1, 2, 0], [-1, 3, 2]], np.float32)
DRAW = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return DRAW.normal(size=shape).astype(np.float32)


def solve(result: str, right: str, *, left: bool) -> Any:
    """A node that solves systems with the lower triangular matrix w."""
    return node_tree(
        "linalg_solve_triangular.default", result, self="w", B=right, upper=False, left=left
    )


@pytest.mark.parametrize(
    ("nodes", "matrix"),
    [
        ([solve("y", "x", left=False)], LOWER),
        (
            [
                node_tree("permute.default", "t", self="x", dims=[1, 0]),
                solve("s", "t", left=True),
                node_tree("permute.default", "y", self="s", dims=[1, 0]),
            ],
            LOWER.T,
        ),
    ],
    ids=["rows", "columns"],
)
def test_samples_may_be_rows_or_columns_of_right_sides(nodes: list[Any], matrix: np.ndarray):
    archive = written({"x": ((1, 3), "float32")}, nodes, ["y"], constants={"w": LOWER})
    x = floats(4, 3)
    (found,) = results(imported(archive, batch=4), [x])
    np.testing.assert_allclose(found @ matrix, x, 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("shape", "node", "message"),
    [
        (
            (3, 3),
            node_tree("linalg_cholesky.default", "y", self="x"),
            r"shape \[6, 3\]; need two equal last axes",
        ),
        ((3, 1), solve("y", "x", left=True), r"shape \[6, 1\]; need \[3, columns\]"),
    ],
)
def test_samples_are_no_rows_of_a_matrix(shape: tuple[int, int], node: Any, message: str):
    archive = written({"x": (shape, "float32")}, [node], ["y"], constants={"w": LOWER})
    with pytest.raises(InputError, match=message):
        imported(archive, batch=6)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_number_of_matrices_that_a_run_gives_is_refused_by_name(rows: int):
    """One row is factored without a loop, and three rows in one."""
    archive = written(
        {"x": (("n", rows, rows), "float32")},
        [node_tree("linalg_cholesky.default", "y", self="x")],
        ["y"],
        ranges={"n": (0, 6)},
    )
    imported(archive, dims={"n": 4})
    with pytest.raises(
        InputError, match=r"linalg_cholesky.default: a size depends on inputs \(n\)"
    ):
        imported(archive, dims={"n": (0, 6)})
