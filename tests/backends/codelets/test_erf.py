"""The error function is right to 2 ulps, and the same bytes everywhere."""

import math
from decimal import Decimal, localcontext
from hashlib import sha256

import numpy as np

from abele.backends.codelets.erf import erf

ROOT_PI = Decimal("1.77245385090551602729816748334114518279754945612238712821380779")
"""The square root of pi."""


def exact(x: float) -> Decimal:
    """The Taylor series, in digits enough for terms that cancel."""
    with localcontext() as context:
        context.prec = 70
        value = Decimal(x)
        power = total = value
        n = 0
        while abs(power) > Decimal("1e-40"):
            n += 1
            power = -power * value * value / n
            total += power / (2 * n + 1)
        return 2 * total / ROOT_PI


def sweep() -> np.ndarray:
    rng = np.random.default_rng(5)
    edges = np.arange(1, 6.01, 0.5)
    near = np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, 9)])
    return np.concatenate([np.linspace(0, 6.2, 500), rng.uniform(-2, 2, 200), near])


def test_the_error_function_is_right_to_2_ulps():
    x = sweep()
    for at, found in zip(x.tolist(), erf(x).tolist(), strict=True):
        need = exact(at)
        assert abs(Decimal(found) - need) <= 2 * Decimal(math.ulp(float(need))), at


def test_small_numbers_keep_their_digits():
    x = np.logspace(-307, -9, 200)
    need = [float(2 * Decimal(v) / ROOT_PI) for v in x.tolist()]
    assert (np.abs(erf(x) - need) <= 2 * np.spacing(need)).all()
    assert erf(np.array([0.0, -0.0])).tobytes() == np.array([0.0, -0.0]).tobytes()


def test_far_numbers_give_1():
    x = np.array([6.0, -6.0, 1e300, math.inf, -math.inf, math.nan])
    np.testing.assert_array_equal(erf(x), [1, -1, 1, 1, -1, math.nan])


def test_results_are_the_same_bytes_on_every_machine():
    digest = sha256(erf(np.linspace(-7, 7, 20001)).astype("<f8").tobytes()).hexdigest()
    assert digest[:16] == "ca0a303f877118c4"


def test_a_number_without_axes_keeps_none():
    assert erf(np.array(0.5)).shape == ()
