"""Functions of elements, at the numbers where their steps could lose something."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_stablehlo import applied, results_of, returned

X = np.array([0.0, -0.0, 8.0, -27.0, np.inf, -np.inf, np.nan, 1e-30], np.float32)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("cbrt", np.cbrt(X)), ("sign", [0.0, -0.0, 1, -1, 1, -1, np.nan, 1])],
)
def test_a_zero_keeps_its_sign(name: str, wanted: np.ndarray):
    kind = "tensor<8xf32>"
    body = applied(f"stablehlo.{name}", ["x"], kind, "0") + returned(["0"], [kind], "func.return")
    (found,) = results_of(body, f"%x: {kind}", kind, X)
    np.testing.assert_allclose(found, wanted, rtol=2e-6)
    is_number = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(wanted)[is_number])
