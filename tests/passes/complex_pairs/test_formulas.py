"""Functions of complex numbers agree with those of NumPy, whose special values are C99's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lowered_stablehlo import Array, applied, lowered, returned, values_of

ENDS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan], np.float32)


def plane(values: Array) -> Array:
    """All complex numbers whose parts are among some."""
    made = np.empty((len(values), len(values)), np.complex64)
    made.real, made.imag = values[:, None], values
    return made.ravel()


def computed(name: str, *operands: Array, real: bool = False) -> Array:
    """What the lowered operation computes in float32."""
    kind = f"tensor<{operands[0].size}xcomplex<f32>>"
    made = f"tensor<{operands[0].size}xf32>" if real else kind
    names = [f"x{i}" for i in range(len(operands))]
    body = applied(name, names, kind, "0").replace(f"-> {kind}", f"-> {made}")
    module = lowered(
        body + returned(["0"], [made], "func.return"),
        ", ".join(f"%{each}: {kind}" for each in names),
        made,
    )
    parts = [np.ascontiguousarray(p) for each in operands for p in (each.real, each.imag)]
    found = values_of(module, *parts)
    if real:
        return found[0]
    joined = np.empty(found[0].shape, np.complex64)
    joined.real, joined.imag = found
    return joined


def assert_agree(found: Array, wanted: Array, tolerance: float = 4e-6) -> None:
    """Compare parts that are infinite or NaN, and then the numbers, with 0 for such a part."""
    pairs = [[np.real(each), np.imag(each)] for each in (found, wanted.astype(found.dtype))]
    ends = [[np.where(np.isfinite(p), 0, p) for p in parts] for parts in pairs]
    np.testing.assert_array_equal(ends[0], ends[1])
    kept = [[np.where(np.isfinite(p), p, 0) for p in parts] for parts in pairs]
    numbers = [real + 1j * imag for real, imag in kept]
    np.testing.assert_allclose(*numbers, rtol=tolerance, atol=1e-7)


UNARY: dict[str, Callable[..., Any]] = {
    "chlo.acos": np.arccos,
    "chlo.acosh": np.arccosh,
    "chlo.asin": np.arcsin,
    "chlo.asinh": np.arcsinh,
    "chlo.atan": np.arctan,
    "chlo.atanh": np.arctanh,
    "chlo.conj": np.conj,
    "chlo.cosh": np.cosh,
    "chlo.sinh": np.sinh,
    "chlo.square": np.square,
    "chlo.tan": np.tan,
    "stablehlo.cosine": np.cos,
    "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": np.expm1,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": np.log1p,
    "stablehlo.logistic": lambda z: 1 / (1 + np.exp(-z)),
    "stablehlo.negate": np.negative,
    "stablehlo.rsqrt": lambda z: 1 / np.sqrt(z),
    "stablehlo.sign": lambda z: z / np.abs(z),
    "stablehlo.sine": np.sin,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.tan": np.tan,
    "stablehlo.tanh": np.tanh,
}


INFINITE = ("chlo.acos", "chlo.acosh", "chlo.asin", "chlo.asinh", "stablehlo.log", "stablehlo.sqrt")
WITH_NAN = ("stablehlo.exponential", "stablehlo.tanh", "stablehlo.sine")
AWAY_FROM_ZERO = ("stablehlo.rsqrt", "stablehlo.sign", "stablehlo.log")


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_number_is_numpys(name: str):
    """Anywhere, on both sides of each cut, and with special parts where XLA follows C99."""
    draw = np.random.default_rng(0)
    near = plane(np.array([1.5, -0.5, 1e-3, -1e-3, 10], np.float32))
    cuts = plane(np.array([0.0, -0.0, 0.5, -0.5, 2.5, -2.5], np.float32))
    drawn = (draw.normal(size=100) + 1j * draw.normal(size=100)) * 3
    ends = plane(ENDS[~np.isnan(ENDS)])
    special = [ends[~np.isfinite(ends)]] if name in INFINITE else []
    if name in WITH_NAN:
        special = [np.array([complex(np.nan, 0.0), complex(0.0, np.nan)])]
    z = np.concatenate([drawn, near, cuts, *special]).astype(np.complex64)
    z = z[z != 0] if name in AWAY_FROM_ZERO else z
    with np.errstate(all="ignore"):
        assert_agree(computed(name, z), UNARY[name](z.astype(np.complex128)))


def test_products_that_are_finite_have_infinite_factors():
    z = np.array([complex(89.5, 1.5), complex(-1e-30, 100), complex(1.5, 89.5)], np.complex64)
    for name in ("stablehlo.exponential", "stablehlo.sine", "stablehlo.cosine", "chlo.sinh"):
        with np.errstate(over="ignore"):
            assert_agree(computed(name, z), UNARY[name](z.astype(np.complex128)), 2e-5)


def test_a_magnitude_has_no_square():
    z = np.array([3e30 + 4e30j, 3e-30 + 4e-30j, 0, complex(np.inf, np.nan)], np.complex64)
    found = computed("stablehlo.abs", z, real=True)
    np.testing.assert_allclose(found, [5e30, 5e-30, 0, np.inf], rtol=1e-6)


def test_a_quotient_may_have_a_large_and_a_small_divisor():
    a = np.array([1e30 + 1e30j, 1e-30 + 1e-30j, 1 + 2j, 1 + 1j, complex(np.inf, 1)], np.complex64)
    b = np.array([1e30 - 1e30j, 1e-30 + 1e-30j, 3 - 4j, 0, 2 + 1j], np.complex64)
    found = computed("stablehlo.divide", a, b)
    np.testing.assert_allclose(found[:3], [1j, 1, -0.2 + 0.4j], rtol=1e-6, atol=1e-7)
    parts = [part for each in found[3:] for part in (each.real, each.imag)]
    np.testing.assert_array_equal(parts, [np.inf, np.inf, np.inf, -np.inf])
    gone = computed("stablehlo.divide", a[2:3], np.array([complex(np.inf, 1)], np.complex64))
    assert gone[0] == 0


def test_a_power_is_numpys():
    draw = np.random.default_rng(0)
    z, w = ((draw.normal(size=99) + 1j * draw.normal(size=99)).astype(np.complex64) for _ in "zw")
    wanted = z.astype(np.complex128) ** w
    assert_agree(computed("stablehlo.power", z, w), wanted)
    zeros = np.zeros(4, np.complex64)
    found = computed("stablehlo.power", zeros, np.array([0, 2, 2 + 1j, -1], np.complex64))
    np.testing.assert_array_equal(found[:3], [1, 0, 0])
    assert np.isnan(found[3])


def test_the_larger_number_has_the_larger_real_part_or_else_the_larger_imaginary_one():
    nans = [complex(np.nan, 1), complex(2, np.nan)]
    a = np.array([1 + 2j, 1 + 3j, 2 + 0j, *nans, 1, 3, 0], np.complex64)
    b = np.array([2 + 1j, 1 + 1j, 2 - 1j, 1, 1, nans[0], nans[1], nans[1]], np.complex64)
    np.testing.assert_array_equal(computed("stablehlo.maximum", a, b), np.maximum(a, b))
    np.testing.assert_array_equal(computed("stablehlo.minimum", a, b), np.minimum(a, b))


def test_other_functions_of_two_numbers_are_numpys():
    draw = np.random.default_rng(1)
    a, b = (draw.normal(size=50) + 1j * draw.normal(size=50) for _ in "ab")
    a, b = a.astype(np.complex64), b.astype(np.complex64)
    assert_agree(computed("stablehlo.multiply", a, b), a * b)
    wide_a, wide_b = a.astype(np.complex128), b.astype(np.complex128)
    angle = -1j * np.log((wide_b + 1j * wide_a) / np.sqrt(wide_a**2 + wide_b**2))
    assert_agree(computed("stablehlo.atan2", a, b), angle, 2e-5)
    cube = computed("stablehlo.cbrt", a)
    assert_agree(cube, wide_a ** (1 / 3))
