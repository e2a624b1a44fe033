from __future__ import annotations

from collections.abc import Callable
from math import erfc, factorial, inf, lgamma, nan
from statistics import NormalDist

import ml_dtypes
import numpy as np
import pytest
from built_steps import values_of

from abele.passes.stablehlo_to_nn.special_functions import FORMULAS, special

EULER = 0.5772156649015329


def erf_inv(p: float) -> float:
    """The inverse of the error function, by the normal distribution."""
    return NormalDist().inv_cdf((p + 1) / 2) / 2**0.5


def digamma(n: float) -> float:
    """The digamma function of a whole number, by the harmonic numbers."""
    return -EULER + sum(1 / k for k in range(1, int(n)))


def bessel_i1e(x: float) -> float:
    """exp(-|x|) I1(x), by its series."""
    whole = sum((x / 2) ** (2 * k + 1) / (factorial(k) * factorial(k + 1)) for k in range(80))
    return whole * np.exp(-abs(x))


EXPECTED: dict[str, tuple[Callable[[float], float], list[float]]] = {
    "chlo.erf_inv": (erf_inv, [-0.999, -0.5, -1e-3, 1e-6, 0.25, 0.9, 0.99999]),
    "chlo.erfc": (erfc, [-12.0, -3.0, -1.0, -0.5, 0.0, 0.3, 0.999, 1.0, 1.5, 2.0, 4.0, 9.0]),
    "chlo.lgamma": (lgamma, [-2.5, -0.7, 0.01, 0.5, 1.5, 3.0, 10.0, 1e4, 1e20]),
    "chlo.digamma": (digamma, [1.0, 2.0, 5.0, 20.0]),
    "chlo.bessel_i1e": (bessel_i1e, [-20.0, -3.0, -0.1, 0.0, 0.5, 7.9, 8.0, 9.0, 30.0]),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_functions_are_right_to_six_digits(name: str) -> None:
    function, points = EXPECTED[name]
    given = np.array(points, np.float32)
    want = [function(float(x)) for x in given]
    found = values_of(lambda new, x: special(new, name, x), given)
    np.testing.assert_allclose(found, want, rtol=3e-6, atol=2e-6)


def test_the_zeta_function_and_its_relatives() -> None:
    x, q = np.array([2, 4, 1, 2, 3], np.float32), np.array([1, 1, 1, -1, -1], np.float32)
    found = values_of(lambda new, *v: special(new, "chlo.zeta", *v), x, q)
    np.testing.assert_allclose(found, [np.pi**2 / 6, np.pi**4 / 90, inf, inf, nan], rtol=1e-6)
    n, at = np.array([0, 1, 3, 0.5, -1], np.float32), np.array([2, 1, 1, 1, 1], np.float32)
    found = values_of(lambda new, *v: special(new, "chlo.polygamma", *v), n, at)
    want = [1 - EULER, np.pi**2 / 6, np.pi**4 / 15, nan, nan]
    np.testing.assert_allclose(found, want, rtol=2e-6)


@pytest.mark.parametrize(
    ("name", "points", "want"),
    [
        ("chlo.erf_inv", [1.0, -1.0, 2.0, nan], [inf, -inf, nan, nan]),
        ("chlo.erfc", [inf, -inf, nan, 0.0], [0.0, 2.0, nan, 1.0]),
        ("chlo.lgamma", [0.0, -1.0, inf, -inf, nan], [inf, inf, inf, inf, nan]),
        ("chlo.digamma", [0.0, -1.0, nan], [nan, nan, nan]),
    ],
)
def test_functions_at_poles_and_beyond(name: str, points: list[float], want: list[float]) -> None:
    found = values_of(lambda new, x: special(new, name, x), np.array(points, np.float32))
    np.testing.assert_array_equal(found, np.array(want, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_next_number_is_that_of_numpy(dtype: type) -> None:
    some = np.array([0.0, -0.0, 1.0, -1.0, 1.5, inf, -inf, nan, 3e-5], dtype)
    x, y = (each.reshape(-1) for each in np.meshgrid(some, some))
    found = values_of(lambda new, *v: special(new, "chlo.next_after", *v), x, y)
    # Of equal numbers it is the second, as in C; NumPy returns the first.
    want = np.where(x == y, y, np.nextafter(x, y))
    np.testing.assert_array_equal(found.astype(np.float32), want.astype(np.float32))
    zeros = found == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(want[zeros]))


def test_narrow_floats_are_computed_in_float32() -> None:
    given = np.array([0.1, 0.7, 3.3], np.float16)
    found = values_of(lambda new, x: special(new, "chlo.lgamma", x), given)
    np.testing.assert_array_equal(
        found, np.array([lgamma(float(x)) for x in given]).astype(np.float16)
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_float64_is_refused(name: str) -> None:
    given = [np.zeros(1), np.zeros(1)][: 2 if name in ("chlo.zeta", "chlo.polygamma") else 1]
    with pytest.raises(ValueError, match="float64"):
        values_of(lambda new, *v: special(new, name, *v), *given)
