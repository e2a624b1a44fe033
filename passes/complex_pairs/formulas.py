"""Functions of complex numbers, as formulas of their parts.

The special values are those of C99, Annex G, as far as XLA has them. Kahan, Branch Cuts for Complex
Elementary Functions, has the formulas that keep the digits of small parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan, pi

from .splitting import Rule
from .terms import Complex, Term, chosen, formula

FAR = 22.0
"""Where exp(-x) adds nothing to exp(x), in float64 too."""

HUGE = 1e9
"""Beyond this, a number plus 1 is the number, in float64 too for its square."""


def _is_infinite(z: Complex) -> Term:
    """Whether a part is infinite."""
    return z.real.is_infinite() | z.imag.is_infinite()


def _sized(z: Complex) -> tuple[Term, Term, Term]:
    """The larger magnitude of both parts, the smaller one, and their ratio, from 0 to 1."""
    a, b = abs(z.real), abs(z.imag)
    large, small = a.with_("maximum", b), a.with_("minimum", b)
    ratio = small.equals(inf).choose(1.0, small / large)
    return large, small, large.equals(0.0).choose(0.0, ratio)


def magnitude(z: Complex) -> Term:
    """The distance from 0, also where its square is no float."""
    large, _, ratio = _sized(z)
    found = large * (ratio * ratio + 1.0).of("sqrt")
    return _is_infinite(z).choose(inf, found)


def angle(z: Complex) -> Term:
    """The angle, from -pi to pi."""
    return z.imag.with_("atan2", z.real)


def _log_magnitude(z: Complex) -> Term:
    """The logarithm of the distance from 0. Near 1, it is computed from the square minus 1, which
    keeps its digits."""
    large, small, ratio = _sized(z)
    beyond = (large - 1.0) * (large + 1.0) + small * small
    near = beyond.of("log_plus_one") * 0.5
    far = large.of("log") + (ratio * ratio).of("log_plus_one") * 0.5
    found = ((large > 0.5) & (large < 2.0)).choose(near, far)
    return _is_infinite(z).choose(inf, found)


def logarithm(z: Complex) -> Complex:
    """The natural logarithm with the angle from -pi to pi."""
    return Complex(_log_magnitude(z), angle(z))


def log_plus_one(z: Complex) -> Complex:
    """The logarithm of 1 + z, also exact for small z."""
    x, y = z.real, z.imag
    moved = Complex(x + 1.0, y)
    near = (x * (x + 2.0) + y * y).of("log_plus_one") * 0.5
    is_near = (abs(x) < 0.5) & (abs(y) < 0.5)
    return Complex(is_near.choose(near, _log_magnitude(moved)), angle(moved))


def exponential(z: Complex) -> Complex:
    """The exponential. Where exp of the real part is infinite, the product may be finite."""
    x, y = z.real, z.imag
    grown, half = x.of("exponential"), (x * 0.5).of("exponential")
    is_large = grown.equals(inf)
    along, across = y.of("cosine"), y.of("sine")
    real = is_large.choose(half * along * half, grown * along)
    imag = is_large.choose(half * across * half, grown * across)
    is_real = y.equals(0.0)
    found = Complex(is_real.choose(grown, real), is_real.choose(y, imag))
    no_angle = ~y.is_finite()
    none = no_angle & x.equals(-inf)
    all_ = no_angle & x.equals(inf)
    return Complex(all_.choose(inf, none.choose(0.0, found.real)), none.choose(0.0, found.imag))


def exponential_minus_one(z: Complex) -> Complex:
    """The exponential minus 1, also exact for small z."""
    x, y = z.real, z.imag
    whole = exponential(z)
    half = (y * 0.5).of("sine")
    near = x.of("exponential_minus_one") * y.of("cosine") - half * half * 2.0
    is_near = (abs(x) < 1.0) & y.is_finite()
    return Complex(is_near.choose(near, whole.real - 1.0), whole.imag)


def _hyperbolic(x: Term) -> tuple[Term, Term, Term, Term]:
    """sinh, cosh, whether x is far from 0, and exp(|x| / 2), whose square is twice either there."""
    size = abs(x)
    less = size.of("exponential_minus_one")
    more = less + 1.0
    sign = x.of("sign")
    sinh = (less + less / more) * 0.5 * sign
    cosh = (more + _inverse(more)) * 0.5
    return sinh, cosh, size > FAR, (size * 0.5).of("exponential")


def _inverse(x: Term) -> Term:
    return x.number(1.0) / x


def _waved(wave: Term, x: Term) -> tuple[Term, Term]:
    """The products of a number from -1 to 1 with sinh and cosh of x, which may be finite where
    these are not."""
    sinh, cosh, is_far, root = _hyperbolic(x)
    far = wave * (root * 0.5) * root
    # 0 times infinity, and times NaN, counts as 0.
    zero, negative = wave.equals(0.0), x < 0.0
    times_sinh = is_far.choose(negative.choose(-far, far), wave * sinh)
    times_cosh = is_far.choose(far, wave * cosh)
    none = negative.choose(-wave, wave)
    return zero.choose(none, times_sinh), zero.choose(wave, times_cosh)


def sine(z: Complex) -> Complex:
    """The sine: sin x cosh y + i cos x sinh y."""
    x, y = z.real, z.imag
    _, real = _waved(x.of("sine"), y)
    imag, _ = _waved(x.of("cosine"), y)
    return Complex(real, y.equals(0.0).choose(y, imag))


def cosine(z: Complex) -> Complex:
    """The cosine: cos x cosh y - i sin x sinh y."""
    x, y = z.real, z.imag
    _, real = _waved(x.of("cosine"), y)
    imag, _ = _waved(x.of("sine"), y)
    return Complex(real, -imag)


def hyperbolic_sine(z: Complex) -> Complex:
    """The hyperbolic sine: -i sin(iz)."""
    return sine(z.times_i()).over_i()


def hyperbolic_cosine(z: Complex) -> Complex:
    """The hyperbolic cosine: cos(iz)."""
    return cosine(z.times_i())


def hyperbolic_tangent(z: Complex) -> Complex:
    """The quotient of sinh and cosh, by the tangent of y. Far from 0 it is near 1 or -1."""
    x, y = z.real, z.imag
    sinh, _, is_far, _ = _hyperbolic(x)
    tangent = y.of("tan")
    beta, square = tangent * tangent + 1.0, sinh * sinh
    below = beta * square + 1.0
    near = Complex(beta * (square + 1.0).of("sqrt") * sinh / below, tangent / below)
    left = (abs(x) * -2.0).of("exponential")
    wave = y.of("sine") * y.of("cosine") * 4.0
    far = Complex(x.of("sign") + wave * 0.0, wave * left)
    # Where x is infinite, an angle that is not known has no part in it.
    end = Complex(x.of("sign"), _signed(x.number(0.0), wave))
    found = chosen(x.is_infinite(), end, chosen(is_far, far, near))
    # A part that is 0 stays 0, and the other one has no part in it.
    return Complex(x.equals(0.0).choose(x, found.real), y.equals(0.0).choose(y, found.imag))


def tangent(z: Complex) -> Complex:
    """The tangent: -i tanh(iz)."""
    return hyperbolic_tangent(z.times_i()).over_i()


def _roots(z: Complex, w: Complex) -> tuple[Complex, Complex, Term]:
    """Two square roots, and the imaginary part of the product of the conjugate of the first with
    the second."""
    first, second = square_root(z), square_root(w)
    return first, second, first.real * second.imag - first.imag * second.real


def _less_than_one(z: Complex) -> tuple[Complex, Complex]:
    """1 - z and 1 + z."""
    one = z.real.number(1.0)
    return Complex(one - z.real, -z.imag), Complex(one + z.real, z.imag)


def arc_sine(z: Complex) -> Complex:
    """The inverse of the sine, as Kahan has it."""
    below, above, across = _roots(*_less_than_one(z))
    along = below.real * above.real - below.imag * above.imag
    found = Complex(z.real.with_("atan2", along), across.of("asinh"))
    end = Complex(z.real.with_("atan2", abs(z.imag)), _signed(along.number(inf), z.imag))
    return chosen(_is_infinite(z), end, found)


def arc_cosine(z: Complex) -> Complex:
    """The inverse of the cosine, as Kahan has it."""
    below, above, across = _roots(*_less_than_one(z))
    found = Complex(below.real.with_("atan2", above.real) * 2.0, (-across).of("asinh"))
    size = z.real.number(inf)
    end = Complex(abs(z.imag).with_("atan2", z.real), -_signed(size, z.imag))
    return chosen(_is_infinite(z), end, found)


def hyperbolic_arc_sine(z: Complex) -> Complex:
    """The inverse of sinh: -i asin(iz)."""
    return arc_sine(z.times_i()).over_i()


def hyperbolic_arc_cosine(z: Complex) -> Complex:
    """The inverse of cosh, as Kahan has it."""
    below, above = (square_root(Complex(z.real + by, z.imag)) for by in (-1.0, 1.0))
    along = below.real * above.real + below.imag * above.imag
    found = Complex(along.of("asinh"), below.imag.with_("atan2", above.real) * 2.0)
    return chosen(_is_infinite(z), Complex(z.real.number(inf), angle(z)), found)


def hyperbolic_arc_tangent(z: Complex) -> Complex:
    """The inverse of tanh: half the logarithm of (1 + z) / (1 - z)."""
    x, y = abs(z.real), z.imag
    left = x.number(1.0) - x
    gap, size = magnitude(Complex(left, y)), magnitude(Complex(x, y))
    grown = (x * 4.0 / (gap * gap)).of("log_plus_one") * 0.25
    # Near 1 and far from 0, squares may be no floats.
    near = (_log_magnitude(Complex(x + 1.0, y)) - gap.of("log")) * 0.5
    grown = (gap < 0.5).choose(near, (size > HUGE).choose(x / size / size, grown))
    turned = (y * 2.0).with_("atan2", left * (x + 1.0) - y * y) * 0.5
    found = Complex(_signed(grown, z.real), turned)
    end = Complex(_signed(x.number(0.0), z.real), _signed(x.number(pi / 2), y))
    return chosen(_is_infinite(z), end, found)


def arc_tangent(z: Complex) -> Complex:
    """The inverse of the tangent: -i atanh(iz)."""
    return hyperbolic_arc_tangent(z.times_i()).over_i()


def square_root(z: Complex) -> Complex:
    """The square root whose real part is not negative."""
    x, y = z.real, z.imag
    large, _, ratio = _sized(z)
    # The root of (|z| + |x|) / 2, whose sum may be no float.
    part = abs(x) / large
    root = large.of("sqrt") * (((ratio * ratio + 1.0).of("sqrt") + part) * 0.5).of("sqrt")
    other = abs(y) / (root * 2.0)
    is_right = x >= 0.0
    real, imag = is_right.choose(root, other), is_right.choose(other, root)
    found = Complex(real, _signed(imag, y))
    found = chosen(large.equals(0.0), Complex(x.number(0.0), y), found)
    # Infinite parts.
    along = x.is_infinite()
    right = Complex(x, y.is_finite().choose(_signed(x.number(0.0), y), y))
    left = Complex(y.is_finite().choose(x.number(0.0), y), _signed(x.number(inf), y))
    found = chosen(along, chosen(x > 0.0, right, left), found)
    return chosen(y.is_infinite(), Complex(x.number(inf), y), found)


def _signed(size: Term, like: Term) -> Term:
    """A magnitude with the sign of a number; -0 is negative."""
    negative = (like < 0.0) | (like.equals(0.0) & (_inverse(like) < 0.0))
    return negative.choose(-size, size)


def quotient(z: Complex, w: Complex) -> Complex:
    """The quotient, by Smith's formula, which divides both parts of w by the larger one."""
    a, b, c, d = z.real, z.imag, w.real, w.imag
    is_first = abs(c) >= abs(d)
    large, small = is_first.choose(c, d), is_first.choose(d, c)
    ratio = small / large
    below = large + small * ratio
    real = is_first.choose(a + b * ratio, a * ratio + b) / below
    imag = is_first.choose(b - a * ratio, b * ratio - a) / below
    found = Complex(real, imag)
    infinite, far = a.is_infinite() | b.is_infinite(), c.is_infinite() | d.is_infinite()
    a_end, b_end = _end(a), _end(b)
    grown = Complex((a_end * c + b_end * d) * inf, (b_end * c - a_end * d) * inf)
    found = chosen(infinite & c.is_finite() & d.is_finite(), grown, found)
    c_end, d_end = _end(c), _end(d)
    gone = Complex((a * c_end + b * d_end) * 0.0, (b * c_end - a * d_end) * 0.0)
    found = chosen(far & a.is_finite() & b.is_finite(), gone, found)
    is_zero = c.equals(0.0) & d.equals(0.0) & ~(a.is_nan() & b.is_nan())
    turned = _signed(c.number(inf), c)
    return chosen(is_zero, Complex(turned * a, turned * b), found)


def _end(x: Term) -> Term:
    """1 for an infinite number and 0 for a finite one, with its sign."""
    return _signed(x.is_infinite().choose(x.number(1.0), 0.0), x)


def reciprocal_root(z: Complex) -> Complex:
    """1 / sqrt(z)."""
    return quotient(z.constant(1.0), square_root(z))


def logistic(z: Complex) -> Complex:
    """1 / (1 + exp(-z))."""
    return quotient(z.constant(1.0), exponential(-z) + z.constant(1.0))


def power(z: Complex, w: Complex) -> Complex:
    """The power z^w, by that of the magnitude.

    0 to the power 0 is 1, and to one whose real part is positive, 0.
    """
    size, turned = magnitude(z), angle(z)
    grown = size.with_("power", w.real) * (-(w.imag * turned)).of("exponential")
    wave = w.real * turned + w.imag * _log_magnitude(z)
    polar = Complex(grown * wave.of("cosine"), grown * wave.of("sine"))
    # One of two factors may be infinite where their product is not.
    found = chosen(grown.is_finite(), polar, exponential(logarithm(z) * w))
    is_zero = z.real.equals(0.0) & z.imag.equals(0.0)
    is_one = w.real.equals(0.0) & w.imag.equals(0.0)
    nothing = (w.real > 0.0).choose(w.real.number(0.0), nan)
    at_zero = chosen(is_one, z.constant(1.0), Complex(nothing, nothing))
    return chosen(is_zero, at_zero, found)


def sign(z: Complex) -> Complex:
    """The number of magnitude 1 with the same angle; 0 for 0."""
    size = magnitude(z)
    zero = size.equals(0.0)
    # A part that is NaN makes both so.
    return chosen(zero, z, Complex(z.real / size, z.imag / size))


def cube_root(z: Complex) -> Complex:
    """The cube root whose angle is a third of that of z."""
    size, turned = magnitude(z).of("cbrt"), angle(z) * (1 / 3)
    return Complex(size * turned.of("cosine"), size * turned.of("sine"))


def angle_of_two(y: Complex, x: Complex) -> Complex:
    """The angle of two numbers: -i log((x + iy) / sqrt(x^2 + y^2))."""
    length = square_root(x * x + y * y)
    return logarithm(quotient(x + y.times_i(), length)).over_i()


def _is_less(z: Complex, w: Complex) -> Term:
    """The order of real parts; where they are equal, that of imaginary parts."""
    return (z.real < w.real) | (z.real.equals(w.real) & (z.imag < w.imag))


def larger(z: Complex, w: Complex) -> Complex:
    """The later one in the order of the parts, in which NaN comes last."""
    return chosen((_is_less(w, z) & ~_is_nan(w)) | _is_nan(z), z, w)


def smaller(z: Complex, w: Complex) -> Complex:
    """The earlier one in the order of the parts, in which NaN comes first."""
    return chosen((_is_less(z, w) & ~_is_nan(w)) | _is_nan(z), z, w)


def _is_nan(z: Complex) -> Term:
    return z.real.is_nan() | z.imag.is_nan()


def square(z: Complex) -> Complex:
    """The square."""
    return z * z


def conjugate(z: Complex) -> Complex:
    """The number with the sign of its imaginary part changed."""
    return Complex(z.real, -z.imag)


RULES: Mapping[str, Rule] = {
    "stablehlo.abs": formula(magnitude),
    "stablehlo.atan2": formula(angle_of_two),
    "stablehlo.cbrt": formula(cube_root),
    "stablehlo.cosine": formula(cosine),
    "stablehlo.divide": formula(quotient),
    "stablehlo.exponential": formula(exponential),
    "stablehlo.exponential_minus_one": formula(exponential_minus_one),
    "stablehlo.log": formula(logarithm),
    "stablehlo.log_plus_one": formula(log_plus_one),
    "stablehlo.logistic": formula(logistic),
    "stablehlo.maximum": formula(larger),
    "stablehlo.minimum": formula(smaller),
    "stablehlo.multiply": formula(Complex.__mul__),
    "stablehlo.power": formula(power),
    "stablehlo.rsqrt": formula(reciprocal_root),
    "stablehlo.sign": formula(sign),
    "stablehlo.sine": formula(sine),
    "stablehlo.sqrt": formula(square_root),
    "stablehlo.tan": formula(tangent),
    "stablehlo.tanh": formula(hyperbolic_tangent),
    "chlo.acos": formula(arc_cosine),
    "chlo.acosh": formula(hyperbolic_arc_cosine),
    "chlo.asin": formula(arc_sine),
    "chlo.asinh": formula(hyperbolic_arc_sine),
    "chlo.atan": formula(arc_tangent),
    "chlo.atanh": formula(hyperbolic_arc_tangent),
    "chlo.conj": formula(conjugate),
    "chlo.cosh": formula(hyperbolic_cosine),
    "chlo.sinh": formula(hyperbolic_sine),
    "chlo.square": formula(square),
    "chlo.tan": formula(tangent),
}
"""What replaces each function of complex numbers, by name."""
