from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from lowered_stablehlo import applied, results_of, returned

from abele.dialects.chlo import CHLO
from abele.passes.stablehlo_to_nn.table import TABLE

GIVEN = np.array([-0.5, 0.25, 0.75], np.float32)
TYPE = "tensor<3xf32>"


def test_every_operation_of_the_dialect_is_lowered() -> None:
    assert {op.name for op in CHLO.operations} <= TABLE.keys()


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("acos", np.arccos),
        ("asin", np.arcsin),
        ("asinh", np.arcsinh),
        ("atan", np.arctan),
        ("atanh", np.arctanh),
        ("cosh", np.cosh),
        ("sinh", np.sinh),
        ("square", np.square),
        ("tan", np.tan),
    ],
)
def test_functions_of_one_element(name: str, function: np.ufunc) -> None:
    body = applied(f"chlo.{name}", ["x"], TYPE, "0") + returned(["0"], [TYPE], "func.return")
    (found,) = results_of(body, f"%x: {TYPE}", TYPE, GIVEN)
    np.testing.assert_allclose(found, function(GIVEN), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("is_inf", [True, True, False, False]),
        ("is_pos_inf", [True, False, False, False]),
        ("is_neg_inf", [False, True, False, False]),
    ],
)
def test_tests_of_one_element(name: str, want: list[bool]) -> None:
    body = f'%0 = "chlo.{name}"(%x) : (tensor<4xf32>) -> tensor<4xi1>\n'
    body += returned(["0"], ["tensor<4xi1>"], "func.return")
    given = np.array([inf, -inf, nan, 1], np.float32)
    (found,) = results_of(body, "%x: tensor<4xf32>", "tensor<4xi1>", given)
    np.testing.assert_array_equal(found, want)
