"""Factors and systems of complex matrices, which only the interpreter computes."""

import numpy as np
import pytest

from abele.backends.stablehlo import run_stablehlo
from abele.ir.text import parse_module
from abele.tools.driver.context import new_context

DRAW = np.random.default_rng(0)
KIND = "tensor<3x3xcomplex<f32>>"


def drawn() -> np.ndarray:
    return (DRAW.normal(size=(3, 3)) + 1j * DRAW.normal(size=(3, 3))).astype(np.complex64)


def computed(operation: str, *arrays: np.ndarray) -> np.ndarray:
    names = [f"%x{i}" for i in range(len(arrays))]
    arguments = ", ".join(f"{each}: {KIND}" for each in names)
    text = f"""builtin.module {{ func.func @main({arguments}) -> {KIND} {{
      %0 = {operation.replace("()", f"({', '.join(names)})")}
        : ({", ".join([KIND] * len(arrays))}) -> {KIND}
      func.return %0 : {KIND} }} }}"""
    given = {f"arg{i}": each for i, each in enumerate(arrays)}
    (found,) = run_stablehlo(parse_module(text, new_context()), given).outputs.values()
    return found


@pytest.mark.parametrize("lower", [True, False])
def test_a_factor_times_its_conjugate_transpose_is_the_matrix(lower: bool):
    root = drawn()
    matrix = root @ root.conj().T + 3 * np.eye(3, dtype=np.complex64)
    read = np.tril(matrix) if lower else np.triu(matrix)
    found = computed(f'"stablehlo.cholesky"() <{{lower = {str(lower).lower()}}}>', read)
    wanted = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(found, wanted if lower else wanted.conj().T, 1e-5, 1e-5)


@pytest.mark.parametrize("word", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_a_system_has_the_matrix_its_transpose_or_its_conjugate_transpose(word: str):
    matrix, right = drawn() + 3 * np.eye(3, dtype=np.complex64), drawn()
    found = computed(
        f""""stablehlo.triangular_solve"() <{{left_side = true, lower = true, transpose_a =
        #stablehlo<transpose {word}>, unit_diagonal = false}}>""",
        matrix,
        right,
    )
    lower = np.tril(matrix)
    whole = {"NO_TRANSPOSE": lower, "TRANSPOSE": lower.T, "ADJOINT": lower.conj().T}[word]
    np.testing.assert_allclose(whole @ found, right, 1e-5, 1e-5)
