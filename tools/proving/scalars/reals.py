"""Floats as real numbers with no bound, and NaN, infinities and the sign of zero beside them.

Nothing is rounded, and nothing overflows. What is equal here is equal up to rounding, and in all
special values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations
from math import copysign, inf, isinf
from typing import Any

from ....dialects.scalar_meanings import LAWS, Laws
from ..terms import Apply, Merge
from .interpret import (
    Interpretation,
    Unreadable,
    and_,
    function_name,
    if_,
    integer_sort,
    not_,
    or_,
    whole_cast,
)
from .library import z3
from .types import TRUTH, is_float, is_signed, limits, width

MOST_SUMS = 6
"""The law of sums of exponents is stated for at most this many exponentials."""
Flag = Any
"""A truth value of Python or of the solver."""


@dataclass(frozen=True)
class Number:
    """A float: NaN, an infinity, a zero with a sign, or another real number.

    Attributes:
        nan: whether it is NaN. Then nothing else counts.
        far: whether it is infinite. Then `real` does not count.
        minus: whether it is below zero, or a zero with a minus sign.
        real: the number, if it is finite.
    """

    nan: Flag
    far: Flag
    minus: Flag
    real: Any

    @property
    def is_zero(self) -> Flag:
        """Whether it is a zero."""
        return and_(not_(self.far), same_real(self.real, _ZERO))

    @property
    def is_finite(self) -> Flag:
        """Whether it is finite."""
        return and_(not_(self.nan), not_(self.far))


_ZERO = z3.RealVal(0)


def real_of(value: float | Fraction) -> Any:
    """A number of the solver with exactly the value of a float."""
    whole = Fraction(value)
    return z3.RealVal(f"{whole.numerator}/{whole.denominator}")


def same_real(a: Any, b: Any) -> Flag:
    """Whether two real numbers are equal; a truth value of Python where both are known."""
    if z3.is_rational_value(a) and z3.is_rational_value(b):
        return bool(a.as_fraction() == b.as_fraction())
    return a == b


def number_of(value: float) -> Number:
    """A known float."""
    if value != value:
        return Number(True, False, False, _ZERO)
    minus = copysign(1.0, value) < 0
    if isinf(value):
        return Number(False, True, minus, _ZERO)
    return Number(False, False, minus, real_of(value))


class Reals(Interpretation):
    """Formulas of terms whose floats are real numbers.

    Attributes:
        finite: whether the variables are finite, and zeros have no minus sign.
        inputs: the variables, by name.
        calls: for each function with laws, its real operands and results.
        is_partial: whether a real number was made up by a function without a formula.
    """

    def __init__(self, *, finite: bool) -> None:
        super().__init__()
        self.finite = finite
        self.inputs: dict[str, Number] = {}
        self.calls: dict[str, list[tuple[Any, Any]]] = {}
        self.is_partial = False

    def float_variable(self, name: str, dtype: str) -> Number:
        """An unknown float, as facts bind its parts."""
        name = f"{name}:{dtype}"
        if name not in self.inputs:
            real = z3.Real(name)
            if self.finite:
                self.inputs[name] = Number(False, False, real < 0, real)
            else:
                nan, far, minus = (z3.Bool(f"{name}.{part}") for part in ("nan", "far", "minus"))
                self.inputs[name] = Number(nan, far, minus, real)
                self.facts += [
                    z3.Not(z3.And(nan, far)),
                    z3.Implies(real < 0, minus),
                    z3.Implies(real > 0, z3.Not(minus)),
                    # What does not count has one value, so that models are plain.
                    z3.Implies(z3.Or(nan, far), real == 0),
                ]
        return self.inputs[name]

    def float_constant(self, value: float, dtype: str) -> Number:
        """A known float."""
        return number_of(value)

    def float_choice(self, condition: Any, a: Number, b: Number) -> Number:
        """The first float where the condition holds, else the second."""
        return Number(
            if_(condition, a.nan, b.nan),
            if_(condition, a.far, b.far),
            if_(condition, a.minus, b.minus),
            if_(condition, a.real, b.real),
        )

    def parts(self, value: Number) -> list[Any]:
        """The formulas of a float, each with one value where it does not count."""
        far = and_(value.far, not_(value.nan))
        minus = and_(value.minus, not_(value.nan))
        return [value.nan, far, minus, if_(or_(value.nan, value.far), _ZERO, value.real)]

    def float_function(self, term: Apply, name: str, values: list[Any], dtype: str) -> Any:
        """A function of floats."""
        if name in _REAL:
            return _REAL[name](*values)
        kinds = [arg.dtype for arg in term.args]
        if name == "sqrt" or (name in LAWS and len(values) == 1 and is_float(kinds[0])):
            return self._by_laws(name, values[0])
        self.opaque.add(name)
        key = function_name(term)
        if not is_float(dtype):
            return self.unknown(key, values, kinds, integer_sort(dtype))
        return self._made_up(key, values, kinds)

    def _made_up(self, key: str, values: list[Any], kinds: list[str]) -> Number:
        self.is_partial = True
        nan, far, minus = (
            self.unknown(f"{key}.{part}", values, kinds, z3.BoolSort())
            for part in ("nan", "far", "minus")
        )
        real = self.unknown(key, values, kinds, z3.RealSort())
        self.facts += [z3.Implies(real < 0, minus), z3.Implies(real > 0, z3.Not(minus))]
        return Number(nan, and_(far, not_(nan)), minus, real)

    def _by_laws(self, name: str, a: Number) -> Number:
        laws = SQUARE_ROOT if name == "sqrt" else LAWS[name]
        calls = self.calls.setdefault(name, [])
        made = z3.Function(name, z3.RealSort(), z3.RealSort())(a.real)
        if not any(argument.eq(a.real) for argument, _ in calls):
            calls.append((a.real, made))
        outside = or_(*_outside(laws, a))
        nan = or_(a.nan, outside)
        far: Flag = False
        minus: Flag = and_(a.is_zero, a.minus) if laws.parity == -1 or name == "sqrt" else False
        real: Any = made
        for at, value in laws.at:
            if not (isinf(at) or isinf(value)):
                continue
            here = (
                and_(a.far, a.minus if at < 0 else not_(a.minus))
                if isinf(at)
                else and_(not_(a.far), same_real(a.real, real_of(at)))
            )
            if value != value:
                nan = or_(nan, here)
                continue
            there = number_of(value)
            far = if_(here, there.far, far)
            minus = if_(here, there.minus, minus)
            real = if_(here, there.real, real)
        return Number(nan, far, or_(minus, and_(not_(far), real < 0)), real)

    def cast(self, value: Any, source: str, target: str) -> Any:
        """A conversion from or to a float."""
        if is_float(source):
            return value if is_float(target) else self._truncated(value, target)
        if source == TRUTH:
            return Number(False, False, False, if_(value, z3.RealVal(1), _ZERO))
        real = z3.ToReal(z3.BV2Int(value, is_signed=is_signed(source)))
        return Number(False, False, and_(real < 0), real)

    def _truncated(self, value: Number, target: str) -> Any:
        """A float as an integer: truncated, limited to the range, 0 for NaN."""
        if target == TRUTH:
            return or_(value.nan, value.far, not_(same_real(value.real, _ZERO)))
        low, high = limits(target)
        real = value.real
        whole = z3.If(real < 0, -z3.ToInt(-real), z3.ToInt(real))
        limited = z3.If(whole < low, low, z3.If(whole > high, high, whole))
        ends = if_(value.minus, z3.IntVal(low), z3.IntVal(high))
        made = if_(value.nan, z3.IntVal(0), if_(value.far, ends, limited))
        return z3.Int2BV(made, width(target))

    def float_merge(self, term: Merge, values: list[Number], dtype: str) -> Number:
        """A merge of floats, in order: real numbers have none."""
        if not values:
            empty = {"sum": 0.0, "prod": 1.0, "max": -inf, "min": inf}
            return number_of(empty[term.combiner])
        merge = {"sum": _sum, "prod": _product, "max": _largest, "min": _smallest}[term.combiner]
        made = values[0]
        for value in values[1:]:
            made = merge(made, value)
        return made

    def laws(self) -> list[Any]:
        """The laws of all functions in the formulas so far, stated for their operands."""
        facts: list[Any] = []
        for name, calls in self.calls.items():
            laws = SQUARE_ROOT if name == "sqrt" else LAWS[name]
            facts += _stated(name, laws, calls, self.calls)
        return [fact for fact in facts if fact is not True]


def different(a: Number, b: Number, *, zeros: bool) -> Flag:
    """Whether two floats differ as numbers or in what is special.

    Args:
        zeros: whether zeros of different signs differ.
    """
    both = and_(not_(a.nan), not_(b.nan))
    return or_(
        _unlike(a.nan, b.nan),
        and_(both, _unlike(a.far, b.far)),
        and_(both, a.far, b.far, _unlike(a.minus, b.minus)),
        and_(both, not_(a.far), not_(b.far), not_(same_real(a.real, b.real))),
        and_(zeros, both, not_(a.far), not_(b.far), _unlike(a.minus, b.minus)),
    )


def different_reals(a: Number, b: Number) -> Flag:
    """Whether two floats are finite and different numbers."""
    return and_(a.is_finite, b.is_finite, not_(same_real(a.real, b.real)))


def _unlike(a: Flag, b: Flag) -> Flag:
    if isinstance(a, bool):
        return not_(b) if a else b
    if isinstance(b, bool):
        return not_(a) if b else a
    return z3.Xor(a, b)


# Functions of real numbers


def _zero_or(real: Any, minus: Flag) -> Flag:
    """The sign of a finite number: that of the real, or for zero the given one."""
    return or_(real < 0, and_(same_real(real, _ZERO), minus))


def _sum(a: Number, b: Number) -> Number:
    real = a.real + b.real
    minus = if_(a.far, a.minus, if_(b.far, b.minus, _zero_or(real, and_(a.minus, b.minus))))
    opposite = and_(a.far, b.far, _unlike(a.minus, b.minus))
    return Number(or_(a.nan, b.nan, opposite), or_(a.far, b.far), minus, real)


def _negative(a: Number) -> Number:
    return Number(a.nan, a.far, not_(a.minus), -a.real)


def _product(a: Number, b: Number) -> Number:
    undefined = or_(and_(a.far, b.is_zero), and_(b.far, a.is_zero))
    return Number(
        or_(a.nan, b.nan, undefined),
        or_(a.far, b.far),
        _unlike(a.minus, b.minus),
        a.real * b.real,
    )


def _quotient(a: Number, b: Number) -> Number:
    undefined = or_(and_(a.far, b.far), and_(a.is_zero, b.is_zero))
    zero = b.is_zero
    # A quotient by 0 has no real value; the solver must not make one up.
    real = if_(or_(b.far, zero), _ZERO, a.real / if_(zero, z3.RealVal(1), b.real))
    return Number(or_(a.nan, b.nan, undefined), or_(a.far, zero), _unlike(a.minus, b.minus), real)


def _below(a: Number, b: Number) -> Flag:
    finite = if_(b.far, not_(b.minus), a.real < b.real)
    ordered = if_(a.far, and_(a.minus, not_(and_(b.far, b.minus))), finite)
    return and_(not_(a.nan), not_(b.nan), ordered)


def _equal(a: Number, b: Number) -> Flag:
    far = and_(a.far, b.far, not_(_unlike(a.minus, b.minus)))
    alike = if_(or_(a.far, b.far), far, same_real(a.real, b.real))
    return and_(not_(a.nan), not_(b.nan), alike)


def _choice(condition: Flag, a: Number, b: Number) -> Number:
    return Number(
        if_(condition, a.nan, b.nan),
        if_(condition, a.far, b.far),
        if_(condition, a.minus, b.minus),
        if_(condition, a.real, b.real),
    )


def _largest(a: Number, b: Number) -> Number:
    found = _choice(_below(b, a), a, b)
    return Number(or_(a.nan, b.nan), found.far, found.minus, found.real)


def _smallest(a: Number, b: Number) -> Number:
    found = _choice(_below(a, b), a, b)
    return Number(or_(a.nan, b.nan), found.far, found.minus, found.real)


def _rounded(a: Number, real: Any) -> Number:
    """A whole number near a; a zero has the sign of a."""
    return Number(a.nan, a.far, _zero_or(real, a.minus), real)


def _floor(a: Number) -> Number:
    return _rounded(a, z3.ToReal(z3.ToInt(a.real)))


def _ceil(a: Number) -> Number:
    return _rounded(a, -z3.ToReal(z3.ToInt(-a.real)))


def _round(a: Number) -> Number:
    up = z3.ToInt(a.real + z3.RealVal("1/2"))
    tie = z3.And(z3.ToReal(up) == a.real + z3.RealVal("1/2"), up % 2 == 1)
    return _rounded(a, z3.ToReal(z3.If(tie, up - 1, up)))


def _difference(a: Number, b: Number) -> Number:
    return _sum(a, _negative(b))


def _magnitude(a: Number) -> Number:
    return Number(a.nan, a.far, False, if_(a.minus, -a.real, a.real))


def _above(a: Number, b: Number) -> Flag:
    return _below(b, a)


def _not_above(a: Number, b: Number) -> Flag:
    return or_(_below(a, b), _equal(a, b))


def _not_below(a: Number, b: Number) -> Flag:
    return or_(_below(b, a), _equal(a, b))


_REAL: dict[str, Callable[..., Any]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "neg": _negative,
    "abs": _magnitude,
    "floor": _floor,
    "ceil": _ceil,
    "round": _round,
    "less": _below,
    "greater": _above,
    "less_equal": _not_above,
    "greater_equal": _not_below,
    "equal": _equal,
}
"""The formulas of basic functions, by name."""

SQUARE_ROOT = Laws(
    at=((0.0, 0.0), (1.0, 1.0), (inf, inf)),
    domain=(0.0, inf),
    bounds=(0.0, inf),
    attains=True,
    direction=1,
)
"""The laws of the square root, beside that its square is the operand."""


# Laws


def _outside(laws: Laws, a: Number) -> Iterator[Flag]:
    """The conditions under which an operand has no result."""
    low, high = laws.domain
    if low != -inf:
        yield and_(a.far, a.minus)
        yield and_(not_(a.far), a.real < real_of(low))
    if high != inf:
        yield and_(a.far, not_(a.minus))
        yield and_(not_(a.far), a.real > real_of(high))


def _inside(laws: Laws, real: Any) -> Flag:
    low, high = laws.domain
    return and_(
        True if low == -inf else real >= real_of(low),
        True if high == inf else real <= real_of(high),
    )


def _implies(condition: Flag, fact: Any) -> Any:
    return fact if condition is True else z3.Implies(condition, fact)


def _stated(
    name: str, laws: Laws, calls: list[tuple[Any, Any]], others: dict[str, list[tuple[Any, Any]]]
) -> Iterator[Any]:
    """The laws of one function, stated for its operands."""
    low, high = laws.bounds
    for argument, made in calls:
        inside = _inside(laws, argument)
        for at, value in laws.at:
            if not (isinf(at) or isinf(value)):
                yield z3.Implies(argument == real_of(at), made == real_of(value))
                if laws.direction:
                    yield _implies(
                        inside, z3.Implies(made == real_of(value), argument == real_of(at))
                    )
        if low != -inf:
            bound = real_of(low)
            yield _implies(inside, made >= bound if laws.attains else made > bound)
        if high != inf:
            bound = real_of(high)
            yield _implies(inside, made <= bound if laws.attains else made < bound)
        if name == "sqrt":
            yield z3.Implies(argument >= 0, made * made == argument)
        if laws.inverse:
            for given, result in others.get(laws.inverse, ()):
                fits = _inside(LAWS[laws.inverse], given)
                yield _implies(fits, z3.Implies(argument == result, made == given))
    for (a, f), (b, g) in combinations(calls, 2):
        inside = and_(_inside(laws, a), _inside(laws, b))
        if laws.direction:
            rises = f < g if laws.direction > 0 else f > g
            yield _implies(inside, z3.And(z3.Implies(a < b, rises), z3.Implies(f == g, a == b)))
            falls = f > g if laws.direction > 0 else f < g
            yield _implies(inside, z3.Implies(a > b, falls))
        if laws.parity:
            yield z3.Implies(a == -b, f == (g if laws.parity > 0 else -g))
        if laws.turns_sums:
            yield z3.Implies(a == -b, f * g == 1)
            yield z3.Implies(a == 2 * b, f == g * g)
            yield z3.Implies(b == 2 * a, g == f * f)
    if laws.turns_sums and len(calls) <= MOST_SUMS:
        for (a, f), (b, g), (c, h) in permutations(calls, 3):
            yield z3.Implies(a == b + c, f == g * h)


def value_in(model: Any, number: Number) -> float:
    """The value of a float in a model: the nearest float64 of the real."""

    def holds(flag: Flag) -> bool:
        return flag if isinstance(flag, bool) else bool(z3.is_true(model.eval(flag, True)))

    if holds(number.nan):
        return float("nan")
    minus = holds(number.minus)
    if holds(number.far):
        return -inf if minus else inf
    found = model.eval(number.real, True)
    if z3.is_algebraic_value(found):
        found = found.approx(20)
    if not z3.is_rational_value(found):
        raise Unreadable("the solver gave no number")
    value = float(found.as_fraction())
    return copysign(0.0, -1.0) if minus and value == 0.0 else value


def whole_in(model: Any, value: Any, dtype: str) -> int:
    """The value of an integer in a model."""
    if isinstance(value, bool):
        return int(value)
    found = model.eval(value, True)
    if dtype == TRUTH:
        return int(bool(z3.is_true(found)))
    return int(found.as_signed_long() if is_signed(dtype) else found.as_long())


__all__ = ["Number", "Reals", "different", "different_reals", "value_in", "whole_cast", "whole_in"]
