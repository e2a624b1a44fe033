"""Triangular factors and systems, against NumPy and by what they promise."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f16, f32, f64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.dtypes import numpy_dtype
from abele.ir.unmet import Unmet
from abele.ir.upstream import VerifyException
from abele.passes.decompose import Decompose
from abele.tools.driver.context import new_context

SIZES = (1, 2, 8, 9, 12, 20)
"""One block of one row, of some, of the most; several blocks, of which the last is whole or not."""


def program(types, make) -> ModuleOp:
    block = Block(arg_types=types)
    op = make(*block.args)
    block.add_ops([op, ReturnOp(op.result)])
    return ModuleOp([FuncOp("main", (list(types), [op.result.type]), Region(block))])


def result(make, *arrays: np.ndarray, element=f64) -> np.ndarray:
    module = program([nn.tensor(each.shape, element) for each in arrays], make)
    given = {f"arg{i}": a.astype(numpy_dtype(element)) for i, a in enumerate(arrays)}
    return run_reference(module, given).outputs["out0"]


def positive(n: int, batch: tuple[int, ...] = (2,)) -> np.ndarray:
    made = np.random.default_rng(n).normal(size=(*batch, n, n))
    return made @ np.swapaxes(made, -1, -2) + n * np.eye(n)


def only(matrix: np.ndarray, *, lower: bool, unit: bool = False) -> np.ndarray:
    """A matrix whose elements that must not be read are NaN."""
    kept = np.tri(matrix.shape[-1], k=-1 if unit else 0, dtype=bool)
    return np.where(kept if lower else kept.T, matrix, np.nan)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("upper", [False, True])
def test_a_factor_is_that_of_numpy_and_reads_one_triangle(n: int, upper: bool):
    matrix = positive(n)
    found = result(lambda a: nn.CholeskyOp(a, upper=upper), only(matrix, lower=not upper))
    wanted = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(np.swapaxes(found, -1, -2) if upper else found, wanted, 1e-12, 1e-12)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("lower", [False, True])
def test_a_system_is_solved_as_numpy_solves_it_and_reads_one_triangle(n: int, lower: bool):
    draw = np.random.default_rng(n)
    matrix = draw.normal(size=(2, n, n)) / n + 2 * np.eye(n)
    for transpose, unit, from_right in np.ndindex(2, 2, 2):
        right = draw.normal(size=(2, 3, n) if from_right else (2, n, 3))
        found = result(
            lambda a, b, t=transpose, u=unit, r=from_right: nn.TriangularSolveOp(
                a, b, lower=lower, transpose=bool(t), unit=bool(u), from_right=bool(r)
            ),
            only(matrix, lower=lower, unit=bool(unit)),
            right,
        )
        whole = np.tril(matrix) if lower else np.triu(matrix)
        if unit:
            whole[:, range(n), range(n)] = 1
        whole = np.swapaxes(whole, -1, -2) if transpose else whole
        back = found @ whole if from_right else whole @ found
        np.testing.assert_allclose(back, right, 1e-10, 1e-10)


@pytest.mark.parametrize("element", [f32, f16], ids=str)
def test_a_factor_of_narrower_floats_is_rounded_once(element):
    """Its steps are computed in f32 at least."""
    matrix = positive(12).astype(numpy_dtype(element))
    found = result(nn.CholeskyOp, matrix, element=element)
    assert found.dtype == matrix.dtype
    wanted = np.linalg.cholesky(matrix.astype(np.float64))
    error = 1e-6 if element == f32 else 6e-4
    np.testing.assert_allclose(found.astype(np.float64), wanted, error, error)


@pytest.mark.parametrize("n", [3, 12])
def test_a_matrix_that_is_not_positive_definite_has_nan_on_the_diagonal_of_its_factor(n: int):
    matrix = positive(n)
    matrix[1, 2, 2] = -1
    matrix[0, -1, -1] = 0
    found = result(nn.CholeskyOp, matrix)
    nan = np.isnan(np.diagonal(found, axis1=-2, axis2=-1))
    assert nan[1, 2]
    assert nan[0].tolist() == [False] * (n - 1) + [True]


def test_the_number_of_the_first_row_without_a_factor_is_counted_from_1():
    matrix = np.stack([positive(4, ()), positive(4, ()), positive(4, ())])
    matrix[1, 2, 2], matrix[2, 0, 0] = -1, np.nan
    block = Block(arg_types=[nn.tensor(matrix.shape, f64)])
    factor = nn.CholeskyOp(block.args[0])
    block.add_op(factor)

    def add(op: Operation):
        block.add_op(op)
        return op.results[0]

    bad = nn.bad_pivot(add, factor.result)
    block.add_op(ReturnOp(bad))
    module = ModuleOp([FuncOp("main", ([block.args[0].type], [bad.type]), Region(block))])
    assert run_reference(module, {"arg0": matrix}).outputs["out0"].tolist() == [0, 3, 1]


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0)])
def test_no_matrices_and_matrices_without_rows_have_factors(shape: tuple[int, ...]):
    assert result(nn.CholeskyOp, np.zeros(shape)).shape == shape


def test_the_number_of_operations_does_not_depend_on_the_size():
    def count(n: int) -> int:
        module = program([nn.tensor((n, n), f32)], nn.CholeskyOp)
        Decompose().apply(new_context(), module)
        return sum(1 for _ in module.walk())

    assert count(64) == count(1024)
    assert count(64) < 100


@pytest.mark.parametrize(
    ("types", "make", "message"),
    [
        ([nn.tensor((3, 4), f32)], nn.CholeskyOp, r"\[3, 4\]; need two equal last axes"),
        ([nn.tensor((3,), f32)], nn.CholeskyOp, r"\[3\]; need two equal last axes"),
        (
            [nn.tensor((3, 3), f32), nn.tensor((4, 3), f32)],
            nn.TriangularSolveOp,
            r"a right side of shape \[4, 3\]; need \[3, columns\]",
        ),
        (
            [nn.tensor((2, 3, 3), f32), nn.tensor((3, 3), f32)],
            lambda a, b: nn.TriangularSolveOp(a, b, from_right=True),
            r"a right side of shape \[3, 3\]; need \[2, columns, 3\]",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(types, make, message: str):
    with pytest.raises((Unmet, VerifyException), match=message):
        program(types, make)
