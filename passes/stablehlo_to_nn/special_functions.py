"""Functions of chlo that nn has no operation for, by the formulas by which StableHLO defines them.

Their error is that of these formulas. Of narrower floats, they are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, log, nan, pi

from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn
from ...ir.support.number_kinds import bit_width
from .conversion import ToNn
from .formula import Number, in_float32
from .integers import dtype_of, signed

# The inverse of the error function: Giles, Approximating the erfinv function, 2010.

_CENTRE = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)


def _erf_inv(x: Number) -> Number:
    w = -((x * -x).log_plus_one())
    is_central = w < 5.0
    central = (w - 2.5).polynomial(_CENTRE)
    tail = (is_central.choose(w.constant(5.0), w).sqrt() - 3.0).polynomial(_TAIL)
    found = is_central.choose(central, tail) * x
    return abs(x).equals(1.0).choose(x * inf, found)


# One minus the error function: Moshier, Cephes.

_ERF = (
    *(7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2),
    *(1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710),
)
_ERFC_TO_2 = (
    *(2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1),
    *(6.210004621745983e-1, -4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1),
    5.638259427386472e-1,
)
_ERFC_FROM_2 = (
    *(-1.047766399936249e1, 1.297719955372516e1, -7.495518717768503, 2.921019019210786),
    *(-1.015265279202700, 4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1),
)
_MOST_NEGATIVE = -88.72283905206835
"""Exponentials of less are 0."""


def _erfc(x: Number) -> Number:
    squares, size = x * x, abs(x)
    near = 1.0 - x * squares.polynomial(_ERF)
    # Where |x| < 1, this is not used; 1 is no pole.
    outer = (size < 1.0).choose(x.constant(1.0), size)
    inverse = 1.0 / (outer * outer)
    rows = (outer < 2.0).choose(inverse.polynomial(_ERFC_TO_2), inverse.polynomial(_ERFC_FROM_2))
    exponent = -(outer * outer)
    far = exponent.exp() * (1.0 / outer) * rows
    far = (exponent < _MOST_NEGATIVE).choose(x.constant(0.0), far)
    far = (x < 0.0).choose(2.0 - far, far)
    return (size < 1.0).choose(near, far)


# The logarithm of the gamma function and its derivative: Lanczos, A Precision Approximation of the
# Gamma Function, 1964, with g = 7 and 9 terms.

_G = 7.0
_FIRST = 0.99999999999980993227684700473478
_TERMS = (
    *(676.520368121885098567009190444019, -1259.13921672240287047156078755283),
    *(771.3234287776530788486528258894, -176.61502916214059906584551354),
    *(12.507343278686904814458936853, -0.13857109526572011689554707),
    *(9.984369578019570859563e-6, 1.50563273514931155834e-7),
)


def _lgamma(x: Number) -> Number:
    mirrors = x < 0.5
    z = mirrors.choose(-x, x - 1.0)
    total = x.constant(_FIRST)
    for i, term in enumerate(_TERMS, 1):
        total = total + term / (z + float(i))
    t = z + (_G + 0.5)
    log_t = (z / (_G + 0.5)).log_plus_one() + log(_G + 0.5)
    # (z + 1/2) * log(t) - t, without a product that is too large.
    power = ((z + 0.5) - t / log_t) * log_t
    found = (power + 0.5 * (log(2.0) + log(pi))) + total.log()
    # Below 1/2: log(pi / |sin(pi x)|) minus the logarithm at 1 - x.
    size = abs(x)
    part = size - size.floor()
    part = (part > 0.5).choose(1.0 - part, part)
    sine = (part * pi).apply(nn.SinOp).log()
    mirrored = (log(pi) - sine) - found
    # At a pole, the sine alone decides; infinity minus infinity would be NaN.
    mirrored = abs(sine).equals(inf).choose(-sine, mirrored)
    found = mirrors.choose(mirrored, found)
    return size.equals(inf).choose(x.constant(inf), found)


def _digamma(x: Number) -> Number:
    mirrors = x < 0.5
    z = mirrors.choose(-x, x - 1.0)
    total, slope = x.constant(_FIRST), x.constant(0.0)
    for i, term in enumerate(_TERMS, 1):
        place = z + float(i)
        slope = slope - term / (place * place)
        total = total + term / place
    t = z + (_G + 0.5)
    log_t = (z / (_G + 0.5)).log_plus_one() + log(_G + 0.5)
    found = (log_t + slope / total) - _G / t
    # Below 1/2: minus pi times the cotangent of pi x, with x moved into [-1/2, 1/2].
    angle = (x + abs((x + 0.5).floor())) * pi
    turned = (angle.apply(nn.CosOp) * pi) / angle.apply(nn.SinOp)
    found = mirrors.choose(found - turned, found)
    is_pole = ((x < 0.0) | x.equals(0.0)) & x.equals(x.floor())
    return is_pole.choose(x.constant(nan), found)


# The exponentially scaled modified Bessel function of order 1: Chebyshev series of Cephes.

_I1E_TO_8 = (
    *(9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7),
    *(-8.56872026469545474066e-7, 3.47025130813767847674e-6, -1.32731636560394358279e-5),
    *(4.78156510755005422638e-5, -1.61760815825896745588e-4, 5.12285956168575772895e-4),
    *(-1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2),
    *(2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1),
    *(-1.76416518357834055153e-1, 2.52587186443633654823e-1),
)
_I1E_FROM_8 = (
    *(-3.83538038596423702205e-9, -2.63146884688951950684e-8, -2.51223623787020892529e-7),
    *(-3.88256480887769039346e-6, -1.10588938762623716291e-4, -9.76109749136146840777e-3),
    7.78576235018280120474e-1,
)


def _chebyshev(x: Number, coefficients: tuple[float, ...]) -> Number:
    """Half of the difference of the last and the last but two of Clenshaw's sums."""
    last = before = older = x.constant(0.0)
    for coefficient in coefficients:
        older, before = before, last
        last = (x * before - older) + coefficient
    return (last - older) * 0.5


def _bessel_i1e(x: Number) -> Number:
    size = abs(x)
    near = size * _chebyshev(size * 0.5 - 2.0, _I1E_TO_8)
    # Where |x| <= 8, this is not used; 8 is no pole.
    is_near = size <= 8.0
    outer = is_near.choose(x.constant(8.0), size)
    far = _chebyshev(32.0 / outer - 2.0, _I1E_FROM_8) / outer.sqrt()
    return x.apply(nn.SignOp) * is_near.choose(near, far)


# The Hurwitz zeta function: Johansson, Rigorous high-precision computation of the Hurwitz zeta
# function and its derivatives, 2015, formula 5.

_SUMMED = 9
_BERNOULLI = (
    *(-7.1661652561756670113e18, 1.8152105401943546773e17, -4.5979787224074726105e15),
    *(1.1646782814350067249e14, -2.950130727918164224e12, 7.47242496e10),
    *(-1.8924375803183791606e9, 47900160.0, -1209600.0, 30240.0, -720.0, 12.0),
)


def _zeta(x: Number, q: Number) -> Number:
    total, place = q**-x, q
    for _ in range(_SUMMED):
        place = place + 1.0
        total = total + place**-x
    place = place + 1.0
    power = place**-x
    correction = (power * place) / (x - 1.0)
    inverse = 1.0 / (place * place)
    horner = q.constant(0.0)
    for i, coefficient in enumerate(_BERNOULLI[:-1]):
        highest = 2.0 * len(_BERNOULLI) - 2.0 - 2.0 * i
        both = (x + highest) * (x + (highest - 1.0))
        horner = both * (inverse * (horner + 1.0 / coefficient))
    tail = power * ((x / place) * (horner + 1.0 / _BERNOULLI[-1]) + 0.5)
    found = (total + correction) + tail
    is_whole_x, is_whole_q = x.equals(x.floor()), q.equals(q.floor())
    is_left = q <= 0.0
    found = (x < 1.0).choose(x.constant(nan), found)
    found = (is_left & ~is_whole_x).choose(x.constant(nan), found)
    is_even = is_whole_x & (x % 2.0).equals(0.0)
    at_pole = is_even.choose(x.constant(inf), nan)
    found = (is_left & is_whole_q).choose(at_pole, found)
    return x.equals(1.0).choose(x.constant(inf), found)


def _polygamma(n: Number, x: Number) -> Number:
    sign = (n % 2.0) * 2.0 - 1.0
    more = n + 1.0
    found = sign * _lgamma(more).exp() * _zeta(more, x)
    found = n.equals(0.0).choose(_digamma(x), found)
    is_natural = n.equals(n.floor()) & ~(n < 0.0)
    return is_natural.choose(found, nan)


def next_after(new: ToNn, x: SSAValue, y: SSAValue) -> SSAValue:
    """The next number after x towards y, by the bits of floats."""
    element = nn.element_of(x)
    width = bit_width(dtype_of(x))
    kind: Attribute = signed(width)
    start, end = Number(new, x), Number(new, y)
    a, b = Number(new, new.bits(x, kind)), Number(new, new.bits(y, kind))
    sign = new.number(1 << (width - 1), a.value)
    rest = new.number((1 << (width - 1)) - 1, a.value)

    def masked(value: Number, mask: SSAValue) -> Number:
        return Number(new, new.add(nn.BitwiseAndOp(value.value, mask)))

    size, other = masked(a, rest), masked(b, rest)
    turns = ~masked(a, sign).equals(masked(b, sign))
    step = ((size > other) | turns).choose(a.constant(-1), 1)
    one = new.number(1, a.value)
    smallest = Number(new, new.add(nn.BitwiseOrOp(masked(b, sign).value, one)))
    found = size.equals(0).choose(smallest, a + step)
    found = start.equals(end).choose(b, found)
    unknown = ~start.equals(start) | ~end.equals(end)
    number = Number(new, new.bits(found.value, element))
    return unknown.choose(number.constant(nan), number).value


Formula = Callable[..., Number]

FORMULAS: Mapping[str, Formula] = {
    "chlo.bessel_i1e": _bessel_i1e,
    "chlo.digamma": _digamma,
    "chlo.erf_inv": _erf_inv,
    "chlo.erfc": _erfc,
    "chlo.lgamma": _lgamma,
    "chlo.polygamma": _polygamma,
    "chlo.zeta": _zeta,
}
"""By operation, its formula."""


def special(new: ToNn, name: str, *operands: SSAValue) -> SSAValue:
    """A function of chlo.

    Raises ValueError for float64, for which the formulas have too few digits.
    """
    if name == "chlo.next_after":
        return next_after(new, *operands)
    if nn.element_of(operands[0]) == f64:
        raise ValueError("float64, for which the formula has too few digits; need float32 or fewer")
    return in_float32(new, FORMULAS[name], *operands)
