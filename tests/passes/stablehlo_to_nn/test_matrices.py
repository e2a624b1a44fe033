"""Operations on matrices of StableHLO, and the calls of LAPACK that JAX writes."""

import numpy as np
import pytest

from abele.backends.reference import run_reference
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.ir.upstream import VerifyException
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.tools.driver.context import new_context


def called(name: str, config: str, operands: str, results: str, *arrays: np.ndarray):
    count = len(arrays)
    text = f"""
    func.func @main({", ".join(f"%a{i}: {each}" for i, each in enumerate(operands.split(", ")))})
        -> ({results}) {{
      %r:{len(results.split(", "))} = "stablehlo.custom_call"(
          {", ".join(f"%a{i}" for i in range(count))})
          <{{call_target_name = "{name}"}}> {{mhlo.backend_config = {{{config}}}}}
          : ({operands}) -> ({results})
      func.return {", ".join(f"%r#{i}" for i in range(len(results.split(", "))))} : {results}
    }}"""
    context = new_context()
    module = parse_module(text, context)
    ConvertStablehloToNn().apply(context, module)
    return run_reference(module, {f"arg{i}": a for i, a in enumerate(arrays)}).outputs


MATRIX = np.array([[[4, 9], [2, 2]], [[4, 9], [2, 0.5]]], np.float32)


def test_the_factor_of_lapack_keeps_the_other_triangle_and_numbers_bad_rows():
    types = "tensor<2x2x2xf32>", "tensor<2x2x2xf32>, tensor<2xi32>"
    found = called("lapack_spotrf_ffi", "uplo = 76 : ui8", *types, MATRIX)
    assert found["out0"][0].tolist() == [[2, 9], [1, 1]]
    assert found["out1"].tolist() == [0, 2]
    turned = np.ascontiguousarray(MATRIX.transpose(0, 2, 1))
    found = called("lapack_spotrf_ffi", "uplo = 85 : ui8", *types, turned)
    assert found["out0"][0].tolist() == [[2, 1], [9, 1]]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_the_systems_of_lapack_have_its_letters(lower: bool, turned: bool, unit: bool):
    draw = np.random.default_rng(0)
    matrix = (draw.normal(size=(3, 3)) + 3 * np.eye(3)).astype(np.float32)
    right = draw.normal(size=(2, 3)).astype(np.float32)
    letters = {
        "diag": "NU"[unit],
        "side": "R",
        "trans_x": "NT"[turned],
        "uplo": "UL"[lower],
    }
    config = ", ".join(f"{name} = {ord(letter)} : ui8" for name, letter in letters.items())
    types = "tensor<3x3xf32>, tensor<2x3xf32>", "tensor<2x3xf32>"
    found = called("lapack_strsm_ffi", config, *types, matrix, right)["out0"]
    whole = np.tril(matrix) if lower else np.triu(matrix)
    if unit:
        np.fill_diagonal(whole, 1)
    np.testing.assert_allclose(found @ (whole.T if turned else whole), right, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("config", "results", "message"),
    [
        ("", "tensor<2x2x2xf32>, tensor<2xi32>", "uplo is missing; need L or U"),
        ("uplo = 90 : ui8", "tensor<2x2x2xf32>, tensor<2xi32>", "uplo is Z; need L or U"),
        ("uplo = 76 : ui8", "tensor<2x2x2xf32>", "need results"),
    ],
)
def test_a_call_of_lapack_that_is_none_is_refused(config: str, results: str, message: str):
    with pytest.raises(InputError, match=message):
        called("lapack_spotrf_ffi", config, "tensor<2x2x2xf32>", results, MATRIX)


def solve(a: str, b: str, transpose: str = "NO_TRANSPOSE") -> str:
    return f"""
    func.func @main(%a: tensor<{a}xf32>, %b: tensor<{b}xf32>) -> tensor<{b}xf32> {{
      %x = "stablehlo.triangular_solve"(%a, %b) <{{left_side = true, lower = true,
          transpose_a = #stablehlo<transpose {transpose}>, unit_diagonal = false}}>
          : (tensor<{a}xf32>, tensor<{b}xf32>) -> tensor<{b}xf32>
      func.return %x : tensor<{b}xf32>
    }}"""


FACTOR = """
    func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %x = "stablehlo.cholesky"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      func.return %x : tensor<2x3xf32>
    }"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FACTOR, r"a has shape \[2, 3\]; need two equal last axes"),
        (solve("3x2", "3x1"), r"a has shape \[3, 2\] and b \[3, 1\]; need square matrices"),
        (solve("3x3", "1x3"), r"a has shape \[3, 3\] and b \[1, 3\]"),
        (solve("2x3x3", "3x1"), r"a has shape \[2, 3, 3\] and b \[3, 1\]"),
        (solve("3", "3"), r"a has shape \[3\] and b \[3\]"),
        (solve("3x3", "3x1", "TRANSPOSE_INVALID"), "transpose_a is TRANSPOSE_INVALID"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(text: str, message: str):
    with pytest.raises(VerifyException, match=message):
        parse_module(text, new_context()).verify()
