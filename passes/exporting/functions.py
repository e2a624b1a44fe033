"""The scalar functions of nn, made of the arithmetic that other dialects have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite

from xdsl.dialects.builtin import i1

from ...backends.reference.gather import fill_value
from ...dialects.dtypes import numpy_dtype
from ...ir.refusals import Uncovered
from .terms import BINARY, COMPARED, UNARY, Algebra, Term

Expression = Callable[[Algebra, Sequence[float], Sequence[Term]], Term]
"""What computes a function from its constants and its operands."""


def _unary(name: str) -> Expression:
    return lambda to, _, given: to.primitive(name, given[0])


TRUTHS = {"max": "or", "min": "and", "mul": "and", "add": "or"}
"""What functions of numbers are for truth values."""


def _binary(name: str) -> Expression:
    def make(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
        if not given[0].is_truth:
            return to.primitive(name, *given)
        if name not in TRUTHS:
            raise Uncovered(f"{name} of truth values")
        return to.primitive(TRUTHS[name], *given)

    return make


def _compared(name: str) -> Expression:
    return lambda to, _, given: to.compare(name, *given)


def _logic(name: str) -> Expression:
    return lambda to, _, given: to.primitive(name, *given)


def constant(to: Algebra, value: float, like: Term) -> Term:
    """A constant of a function in the type of an operand; the nearest one if it is out of range."""
    if not like.is_float and isfinite(value) and value != int(value):
        raise Uncovered(f"a constant {value} with elements {like.element}; need a whole number")
    return to.like(fill_value(value, numpy_dtype(like.element)), like)


def _parts(to: Algebra, given: Sequence[Term]) -> tuple[Term, Term, Term]:
    """A dividend, a divisor that is not 0 where integers are divided, and whether it was 0."""
    a, b = given
    if a.is_truth:
        raise Uncovered("a quotient of truth values")
    if a.is_float:
        return a, b, to.number(False, i1)
    none = to.compare("equal", b, to.like(0, b))
    return a, to.select(none, to.like(1, b), b), none


def _div(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    a, b, none = _parts(to, given)
    found = to.primitive("div", a, b)
    return found if a.is_float else to.select(none, to.like(0, a), found)


def _fmod(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    a, b = _parts(to, given)[:2]
    return to.primitive("rem", a, b)


def _mod(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    a, b = _parts(to, given)[:2]
    rest = to.primitive("rem", a, b)
    if a.has_no_sign:
        return rest
    none = to.like(0, a)
    signs = to.primitive("xor", to.compare("less", rest, none), to.compare("less", b, none))
    moves = to.primitive("and", signs, to.compare("not_equal", rest, none))
    return to.select(moves, to.primitive("add", rest, b), rest)


def _relu(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    return a if a.is_truth else to.primitive("max", a, to.like(0, a))


def _abs(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    return a if a.is_truth or a.has_no_sign else to.primitive("abs", a)


def _reciprocal(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    return _div(to, (), (to.like(1, given[0]), given[0]))


def _sigmoid(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    one = to.like(1, a)
    return to.primitive("div", one, to.primitive("add", one, _exp_of_minus(to, a)))


def _exp_of_minus(to: Algebra, a: Term) -> Term:
    return to.primitive("exp", to.primitive("neg", a))


def _softplus(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    rest = to.primitive("log1p", _exp_of_minus(to, to.primitive("abs", a)))
    return to.primitive("add", to.primitive("max", a, to.like(0, a)), rest)


def _square(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    return _binary("mul")(to, (), (given[0], given[0]))


def _leaky(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    small = to.primitive("mul", a, constant(to, parameters[0], a))
    return to.select(to.compare("greater", a, to.like(0, a)), a, small)


def _clip(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    low, high = (constant(to, each, a) for each in parameters)
    return to.primitive("min", to.primitive("max", a, low), high)


def _with_constant(name: str) -> Expression:
    def make(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
        return to.primitive(name, given[0], constant(to, parameters[0], given[0]))

    return make


def _scaled_product(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    product = to.primitive("mul", *given)
    return to.primitive("mul", product, constant(to, parameters[0], product))


MOST_FACTORS = 8
"""The highest exponent of integers, whose factors are multiplied one after another."""


def _power(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    (a,), (p,) = given, parameters
    if not a.is_float:
        if p != int(p) or not 0 <= p <= MOST_FACTORS:
            raise Uncovered(f"integers to the power {p}; need 0 to {MOST_FACTORS}")
        found = to.like(1, a)
        for _ in range(int(p)):
            found = to.primitive("and" if a.is_truth else "mul", found, a)
        return found
    if p == 2:
        return _square(to, (), given)
    if p == -1:
        return _reciprocal(to, (), given)
    if abs(p) == 0.5:
        root = to.primitive("sqrt", a)
        return root if p > 0 else to.primitive("div", to.like(1, a), root)
    return to.primitive("pow", a, constant(to, p, a))


def _sign(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    none = to.like(0, a)
    up = to.compare("greater", a, none)
    if a.has_no_sign:
        return to.select(up, to.like(1, a), none)
    equal = to.select(to.compare("equal", a, none), none, a)
    down = to.select(to.compare("less", a, none), to.like(-1, a), equal)
    return to.select(up, to.like(1, a), down)


def _select(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    return to.select(*given)


def _gate(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    a, b = given
    return to.select(to.compare("greater", a, to.like(0, a)), b, to.like(0, b))


def _match(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    a, b, c = given
    return to.select(to.compare("equal", a, b), c, to.like(0, c))


def _shifted(name: str) -> Expression:
    """A shift by any amount: one that is negative or too large moves all bits out."""

    def make(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
        a, b = given
        width = 8 * numpy_dtype(a.element).itemsize
        inside = to.compare("less", b, to.like(width, b))
        if not b.has_no_sign:
            above = to.compare("greater_equal", b, to.like(0, b))
            inside = to.primitive("and", inside, above)
        amount = to.select(inside, b, to.like(0, b))
        out = to.like(0, a)
        if name == "shift_right" and not a.has_no_sign:
            out = to.primitive("shift_right", a, to.like(width - 1, a))
        return to.select(inside, to.primitive(name, a, amount), out)

    return make


def _bitwise_not(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    ones = (1 << 8 * numpy_dtype(a.element).itemsize) - 1 if a.has_no_sign else -1
    return to.primitive("xor", a, to.like(ones, a))


def _whole_stays(name: str) -> Expression:
    """A rounding to whole numbers; integers stay as they are."""
    return lambda to, _, given: to.primitive(name, given[0]) if given[0].is_float else given[0]


def _random_bits(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """The first word of Philox-4x32-10 for the counter [index, 0, step, 0] and the key
    [seed, key]."""
    index, step, seed = given
    word = index.element
    none = to.number(0, word)

    def number(value: int) -> Term:
        return to.number(value if index.has_no_sign else value - (value >> 31 << 32), word)

    def high_and_low(factor: int, a: Term) -> tuple[Term, Term]:
        """The two words of a product with a constant, by halves."""
        low, high = factor & 0xFFFF, factor >> 16
        a_low = to.primitive("and", a, number(0xFFFF))
        a_high = _logical_right(to, a, 16, number)
        ll = to.primitive("mul", a_low, number(low))
        lh = to.primitive("mul", a_low, number(high))
        hl = to.primitive("mul", a_high, number(low))
        hh = to.primitive("mul", a_high, number(high))
        middle = _logical_right(to, ll, 16, number)
        middle = to.primitive("add", middle, to.primitive("and", lh, number(0xFFFF)))
        middle = to.primitive("add", middle, to.primitive("and", hl, number(0xFFFF)))
        carry = _logical_right(to, middle, 16, number)
        up = to.primitive("add", hh, _logical_right(to, lh, 16, number))
        up = to.primitive("add", up, _logical_right(to, hl, 16, number))
        return to.primitive("add", up, carry), to.primitive("mul", a, number(factor))

    c0, c1, c2, c3 = index, none, step, none
    k0, k1 = seed, number(int(parameters[0]))
    for _ in range(10):
        h0, l0 = high_and_low(0xD2511F53, c0)
        h1, l1 = high_and_low(0xCD9E8D57, c2)
        c0, c1, c2, c3 = (
            to.primitive("xor", to.primitive("xor", h1, c1), k0),
            l1,
            to.primitive("xor", to.primitive("xor", h0, c3), k1),
            l0,
        )
        k0 = to.primitive("add", k0, number(0x9E3779B9))
        k1 = to.primitive("add", k1, number(0xBB67AE85))
    return c0


def _logical_right(to: Algebra, a: Term, places: int, number: Callable[[int], Term]) -> Term:
    """The bits of a word moved towards the lowest; zeros move in."""
    moved = to.primitive("shift_right", a, number(places))
    return moved if a.has_no_sign else to.primitive("and", moved, number((1 << 32 - places) - 1))


EXPRESSIONS: Mapping[str, Expression] = {
    **{name: _unary(name) for name in UNARY},
    **{name: _binary(name) for name in BINARY},
    **{name: _compared(name) for name in COMPARED},
    **{name: _whole_stays(name) for name in ("floor", "ceil", "round")},
    "abs": _abs,
    "bitwise_and": _logic("and"),
    "bitwise_not": _bitwise_not,
    "bitwise_or": _logic("or"),
    "bitwise_xor": _logic("xor"),
    "clip": _clip,
    "div": _div,
    "fmod": _fmod,
    "gate": _gate,
    "identity": lambda _, __, given: given[0],
    "is_inf": lambda to, _, given: to.is_infinite(given[0]),
    "is_nan": lambda to, _, given: to.is_nan(given[0]),
    "leaky_relu": _leaky,
    "logical_and": _logic("and"),
    "logical_not": lambda to, _, given: to.invert(given[0]),
    "logical_or": _logic("or"),
    "match": _match,
    "mod": _mod,
    "power": _power,
    "random_bits": _random_bits,
    "reciprocal": _reciprocal,
    "relu": _relu,
    "scale": _with_constant("mul"),
    "scaled_mul": _scaled_product,
    "select": _select,
    "shift": _with_constant("add"),
    "shift_left": _shifted("shift_left"),
    "shift_right": _shifted("shift_right"),
    "sigmoid": _sigmoid,
    "sign": _sign,
    "softplus": _softplus,
    "square": _square,
}
"""What computes each scalar function. Those that are left out are refused by name."""


def apply(to: Algebra, name: str, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """A scalar function of nn. Raises Uncovered for one that other dialects do not have."""
    if name not in EXPRESSIONS:
        raise Uncovered(f"function {name}; no other dialect has it")
    return EXPRESSIONS[name](to, parameters, given)
