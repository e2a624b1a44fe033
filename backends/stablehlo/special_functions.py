"""Special functions in float64, by series and integrals that nothing else in abele uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf, erfc, exp, factorial, inf, isinf, isnan, lgamma, log, log1p, nan, pi, sqrt

import numpy as np

from ...ir.support.arrays import Array

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The Bernoulli numbers of even index from 2 on."""

FAR = 16
"""From here on, the series of Euler and Maclaurin are exact to float64."""


def _log_gamma(x: float) -> float:
    if isnan(x):
        return nan
    if x in (inf, -inf) or (x <= 0 and x == int(x)):
        return inf
    return lgamma(x)


def _digamma(x: float) -> float:
    if isnan(x) or x == -inf or (x <= 0 and x == int(x)):
        return nan
    if x == inf:
        return inf
    if x > 1e15:
        return log(x)
    if x < 0:
        # The remainder keeps the digits of the tangent's argument.
        return _digamma(1 - x) - pi / np.tan(pi * (x - np.floor(x)))
    found = 0.0
    while x < FAR:
        found -= 1 / x
        x += 1
    found += log(x) - 1 / (2 * x)
    return found - sum(b / (2 * k * x ** (2 * k)) for k, b in enumerate(BERNOULLI, 1))


def _zeta(s: float, q: float) -> float:
    """The sum of (q + k)^-s over all k from 0 on, by the formula of Euler and Maclaurin.

    Where the sum has none or several limits, it is what XLA makes it.
    """
    if s == 1:
        return inf
    if isnan(s) or isnan(q) or isinf(s) or isinf(q):
        return nan
    if q <= 0 and q == np.floor(q):
        return nan if s % 2 else inf
    if s < 1 or (q < 0 and s != np.floor(s)):
        return nan
    with np.errstate(all="ignore"):
        terms = int(max(FAR - q, 0)) + 1
        base = q + np.arange(terms, dtype=np.float64)
        found = float(np.sum(np.power(base, -s)))
        end = q + terms
        power = float(np.power(end, -s))
        found += power * end / (s - 1) + power / 2
        rising = s
        for k, b in enumerate(BERNOULLI, 1):
            power /= end if k == 1 else end * end
            found += b / factorial(2 * k) * rising * power
            rising *= (s + 2 * k - 1) * (s + 2 * k)
    return found


def _polygamma(n: float, x: float) -> float:
    if isnan(n) or isnan(x) or n < 0 or n != np.floor(n):
        return nan
    if n == 0:
        return _digamma(x)
    sign = 1.0 if n % 2 else -1.0
    with np.errstate(all="ignore"):
        size = float(np.exp(_log_gamma(n + 1)))
        return sign * size * _zeta(n + 1, x)


def _inverse_erf(y: float) -> float:
    """Newton's method on the tail, whose digits do not cancel."""
    if isnan(y) or abs(y) > 1:
        return nan
    if abs(y) == 1:
        return inf * y
    size = abs(y)
    spread = log1p(-size * size)
    half = 2 / (pi * 0.147) + spread / 2
    x = sqrt(max(sqrt(half * half - spread / 0.147) - half, 0.0))
    for _ in range(6):
        slope = 2 / sqrt(pi) * exp(-x * x)
        over = erfc(x) - (1 - size) if size > 0.5 else size - erf(x)
        x += over / slope
    return x if y > 0 else -x if y < 0 else y


def _bessel_i1e(x: float) -> float:
    """The integral of its definition far from infinity, and its asymptotic series beyond."""
    size = abs(x)
    if size < 600:
        # The trapezoid rule is exact for a smooth function of a period.
        angles = (np.arange(400) + 0.5) * (pi / 400)
        found = float(np.mean(np.exp(size * (np.cos(angles) - 1)) * np.cos(angles)))
        return found if x > 0 else -found if x < 0 else x
    if isnan(x):
        return nan
    term, found = 1.0, 1.0
    for k in range(1, 8):
        term *= -(4 - (2 * k - 1) ** 2) / (k * 8 * size)
        found += term
    found /= sqrt(2 * pi * size)
    return found if x > 0 else -found


FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    name: np.vectorize(function, otypes=[np.float64])
    for name, function in (
        ("chlo.bessel_i1e", _bessel_i1e),
        ("chlo.digamma", _digamma),
        ("chlo.erf_inv", _inverse_erf),
        ("chlo.lgamma", _log_gamma),
        ("chlo.polygamma", _polygamma),
        ("chlo.zeta", _zeta),
    )
}
"""The function of numbers that each operation is, on arrays."""
