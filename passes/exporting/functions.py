"""The scalar functions of nn, made of the arithmetic that other dialects have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute

from ...backends.codelets.scalar import constant_in, equal_exponent, scalar_function
from ...backends.reference.gather import fill_value
from ...dialects.dtypes import numpy_dtype
from ...ir.refusals import Uncovered
from ...ir.support.number_kinds import whole_limits
from .random_words import WORD, as_word, philox, word
from .roundings import ROUNDINGS
from .terms import BINARY, COMPARED, EXACT, UNARY, Algebra, Term

Expression = Callable[[Algebra, Sequence[float], Sequence[Term]], Term]
"""What computes a function from its constants and its operands."""


def _unary(name: str) -> Expression:
    return lambda to, _, given: to.primitive(name, given[0])


TRUTHS = {"max": "or", "min": "and", "mul": "and", "add": "or"}
"""What functions of numbers are for truth values."""

MERGES = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
"""What merges two elements, by combiner."""


def merge_of(combiner: str, element: Attribute) -> str:
    """The function that merges two elements of a type."""
    name = MERGES[combiner]
    return TRUTHS[name] if element == i1 else name


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
    """A constant of a function in the type of an operand. A whole number wraps, as in nn."""
    if like.is_float:
        return to.like(value, like)
    return to.like(int(constant_in(numpy_dtype(like.element), value)), like)


def _parts(to: Algebra, given: Sequence[Term]) -> tuple[Term, Term, Term]:
    """A dividend, a divisor that is not 0 where integers are divided, and whether it was 0."""
    a, b = given
    if a.is_truth:
        raise Uncovered("a quotient of truth values")
    if a.is_float or b.never_zero:
        return a, b, to.number(False, i1)
    none = to.compare("equal", b, to.like(0, b))
    return a, to.select(none, to.like(1, b), b), none


def _div(to: Algebra, _: Sequence[float], given: Sequence[Term]) -> Term:
    a, b, none = _parts(to, given)
    found = to.primitive("div", a, b)
    known = a.is_float or b.never_zero
    return found if known else to.select(none, to.like(0, a), found)


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
    small = apply(to, "scale", parameters, given)
    return to.select(to.compare("greater", a, to.like(0, a)), a, small)


def _clip(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    (a,) = given
    low, high = parameters
    if not a.is_float:
        # The whole numbers between the limits.
        dtype = numpy_dtype(a.element)
        low, high = (fill_value(float(each), dtype) for each in (np.ceil(low), np.floor(high)))
    return to.primitive("min", to.primitive("max", a, to.like(low, a)), to.like(high, a))


def _with_constant(name: str) -> Expression:
    def make(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
        return to.primitive(name, given[0], constant(to, parameters[0], given[0]))

    return make


def _scaled_product(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    return apply(to, "scale", parameters, [to.primitive("mul", *given)])


def _whole_power(to: Algebra, a: Term, exponent: int) -> Term:
    """An integer to a whole power, which wraps; a negative power is rounded towards zero."""
    if exponent < 0:
        one, none = to.like(1, a), to.like(0, a)
        found = to.select(to.compare("equal", a, one), one, none)
        if a.has_no_sign:
            return found
        minus = to.like(-1, a)
        of_minus = one if exponent % 2 == 0 else minus
        return to.select(to.compare("equal", a, minus), of_minus, found)
    found: Term | None = None
    exponent = equal_exponent(exponent)
    while exponent:
        if exponent % 2:
            found = a if found is None else to.primitive("mul", found, a)
        exponent //= 2
        a = to.primitive("mul", a, a) if exponent else a
    return to.like(1, a) if found is None else found


def _power(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    (a,), (p,) = given, parameters
    if p == -1:
        return _reciprocal(to, (), given)
    if not a.is_float:
        return _whole_power(to, a, int(p))
    if p == 2:
        return _square(to, (), given)
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
        if to.shifts_all_out:
            return to.primitive(name, a, b)
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
    """The first word of Philox for the counter [index, 0, step, 0] and the key [seed, key]."""
    index, step, seed = given
    none = to.number(0, WORD)
    counter = (as_word(to, index), none, as_word(to, step), none)
    found = philox(to, counter, (as_word(to, seed), word(to, int(parameters[0]))))
    return to.cast(found, index.element)


def _packed_mul(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """A number times an integer that is taken out of a byte, minus a zero point, times a scale."""
    number, packed, scale, zero, shift = given
    if number.is_float:
        packed, shift = (_as_whole(to, each, i64) for each in (packed, shift))
    moved = _shifted("shift_right")(to, (), (packed, shift))
    whole = to.primitive("and", moved, to.like((1 << int(parameters[0])) - 1, packed))
    unpacked = to.primitive("sub", to.cast(whole, number.element), zero)
    return to.primitive("mul", number, to.primitive("mul", unpacked, scale))


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
    "packed_mul": _packed_mul,
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
    **ROUNDINGS,
}
"""What computes each scalar function. Those that are left out are refused by name."""


IN_FLOATS = frozenset((*(n for n in UNARY if n not in EXACT), "sigmoid", "softplus", *ROUNDINGS))
"""The functions that compute whole numbers in float64."""

BY_PARAMETERS = ("scale", "shift", "power")
"""The functions that do so where a parameter is no whole number."""

OF_TRUTHS = (
    *(*TRUTHS, *COMPARED, "identity", "select"),
    *("logical_and", "logical_or", "logical_not", "is_nan", "is_inf"),
)
"""The functions of truth values that dialects compute. Others are tables of all their values."""


BY_WORDS = ("stochastic", "by_word")
"""The functions whose further operands are whole numbers, whatever the first operand is."""


def cast_operands(to: Algebra, name: str, given: Sequence[Term], element: Attribute) -> list[Term]:
    """The operands of a function in the type that it is computed in."""
    kept = len(given) if name not in BY_WORDS else 1
    return [*(to.cast(each, element) for each in given[:kept]), *given[kept:]]


def apply(to: Algebra, name: str, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """A scalar function of nn. Raises Uncovered for one that other dialects do not have."""
    if name not in EXPRESSIONS:
        raise Uncovered(f"function {name}; no other dialect has it")
    if all(each.is_truth for each in given) and name not in OF_TRUTHS:
        return _table(to, name, parameters, given)
    fractions = name in BY_PARAMETERS and not all(float(p).is_integer() for p in parameters)
    if (name in IN_FLOATS or fractions) and not given[0].is_float:
        wide = [to.cast(given[0], f64), *given[1:]]
        return _as_whole(to, EXPRESSIONS[name](to, parameters, wide), given[0].element)
    return EXPRESSIONS[name](to, parameters, given)


def _as_whole(to: Algebra, value: Term, element: Attribute) -> Term:
    """Floats cut to integers: 0 for NaN, and the nearest limit for what is out of range."""
    if element == i1:
        return to.cast(value, element)
    limits = whole_limits(numpy_dtype(element))
    none = to.like(0, value)
    value = to.select(to.is_nan(value), none, value)
    value = to.primitive("max", value, to.like(float(limits.min), value))
    inside = to.compare("less", value, to.like(float(limits.max + 1), value))
    made = to.cast(to.select(inside, value, none), element)
    return to.select(inside, made, to.number(limits.max, element))


def _table(to: Algebra, name: str, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """A function of truth values: a choice of its values, which are computed here."""
    known = scalar_function(name)
    points = product((False, True), repeat=len(given))
    values = [known.apply(tuple(parameters), *map(np.array, each)).item() for each in points]
    return _chosen(to, list(map(bool, values)), given)


def _chosen(to: Algebra, values: Sequence[bool], given: Sequence[Term]) -> Term:
    """The one of 2^n values whose index is n truth values, read as binary digits."""
    if len(set(values)) == 1:
        return to.number(values[0], i1)
    half = len(values) // 2
    no, yes = values[:half], values[half:]
    if no == yes:
        return _chosen(to, no, given[1:])
    if half == 1:
        return given[0] if yes[0] else to.invert(given[0])
    return to.select(given[0], _chosen(to, yes, given[1:]), _chosen(to, no, given[1:]))
