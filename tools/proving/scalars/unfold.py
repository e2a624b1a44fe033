"""Unfolds terms: every function in them becomes basic, or one that is known by laws or not at all.

Conversions of operands and results become functions of their own, so that an interpretation finds
operands of one type.

    add(x: f16, y: f16): f16   ->  as f16(add(as f32(x), as f32(y)))
    relu(x: f32)               ->  select(..., select(greater(x, 0), x, 0), nan)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from ....dialects.scalar_functions import FUNCTIONS
from ....dialects.scalar_meanings import DEFINITIONS, LAWS, LIMIT, NUMBER, Definition
from ....dialects.slopes import Term as Meaning
from ....dialects.slopes import Values
from ..terms import Apply, Const, Merge, Term, Var, subterms
from .types import DOUBLE, TRUTH, computing, is_float, limits, wrapped

COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal"})
LOGICAL = frozenset({"logical_and", "logical_or", "logical_not"})
MOST_FACTORS = 16
"""Whole powers up to this one are products."""


def unfolded(term: Term, *, to_the_bit: bool = False, basic: frozenset[str] = frozenset()) -> Term:
    """A term of basic functions, and of functions that are known by laws or not at all.

    Args:
        to_the_bit: whether definitions that round apart stay as they are.
        basic: further functions that stay as they are.
    """
    made: dict[Term, Term] = {}
    for each in subterms(term):
        made[each] = _unfolded(each, made, to_the_bit, basic)
    return made[term]


def _unfolded(
    term: Term, made: Mapping[Term, Term], to_the_bit: bool, basic: frozenset[str]
) -> Term:
    match term:
        case Var() | Const():
            return term
        case Merge(combiner=combiner, args=args, dtype=dtype):
            return Merge(combiner, tuple(as_type(made[arg], dtype) for arg in args), dtype)
        case Apply():
            below = tuple(made[arg] for arg in term.args)
            return _Unfolding(to_the_bit, basic).apply(
                term.function, below, term.dtype, term.parameters
            )


def as_type(term: Term, dtype: str) -> Term:
    """A term converted to a type."""
    if term.dtype == dtype:
        return term
    if isinstance(term, Const):
        return constant(term.value, dtype, saturates=is_float(term.dtype))
    return Apply("identity", (term,), dtype)


def constant(value: float, dtype: str, *, saturates: bool = False) -> Const:
    """A number in a type. Integers wrap, or take the nearest value."""
    if dtype == TRUTH:
        return Const(int(value != 0), dtype)
    if is_float(dtype):
        return Const(float(value), dtype)
    low, high = limits(dtype)
    if value != value:
        return Const(0, dtype)
    if abs(value) == inf:
        return Const(low if value < 0 else high, dtype)
    whole = int(value)
    return Const(min(max(whole, low), high) if saturates else wrapped(whole, dtype), dtype)


class _Unfolding:
    """Unfolds one function after another."""

    def __init__(self, to_the_bit: bool, basic: frozenset[str]) -> None:
        self.to_the_bit = to_the_bit
        self.basic = basic

    def apply(
        self, name: str, args: tuple[Term, ...], dtype: str, parameters: tuple[float, ...]
    ) -> Term:
        """A function of unfolded terms."""
        if name == "identity":
            return as_type(args[0], dtype)
        if name == "bitcast":
            same = args[0].dtype == dtype
            return args[0] if same else Apply(name, args, dtype, parameters)
        if name in LOGICAL:
            truths = tuple(as_type(arg, TRUTH) for arg in args)
            return as_type(Apply(name, truths, TRUTH), dtype)
        known = FUNCTIONS.get(name)
        conditions = known.values if known is not None else 0
        numbers = args[conditions:]
        kind = computing(tuple(arg.dtype for arg in numbers), dtype)
        if name in COMPARISONS:
            # Comparisons of types with whole bytes read them as they are.
            same = len({arg.dtype for arg in numbers}) == 1
            read = numbers if same else tuple(as_type(arg, kind) for arg in numbers)
            return as_type(Apply(name, read, TRUTH), dtype)
        if name == "select":
            # A choice converts no more than it has to.
            condition = as_type(args[0], TRUTH)
            return Apply(name, (condition, *(as_type(arg, dtype) for arg in numbers)), dtype)
        truths = tuple(as_type(arg, TRUTH) for arg in args[:conditions])
        read = (*truths, *(as_type(arg, kind) for arg in numbers))
        boolean = known is not None and known.boolean
        made = self._computed(name, read, TRUTH if boolean else kind, parameters, kind)
        return as_type(made, dtype)

    def _computed(
        self,
        name: str,
        args: tuple[Term, ...],
        dtype: str,
        parameters: tuple[float, ...],
        kind: str,
    ) -> Term:
        definition = DEFINITIONS.get(name)
        whole = not is_float(kind)
        if name in self.basic:
            return Apply(name, args, dtype, parameters)
        if name == "power" and (power := self._power(args[0], parameters[0], dtype)) is not None:
            return power
        doubles = name in LAWS if definition is None else _in_doubles(definition, parameters)
        if whole and doubles:
            wide = tuple(as_type(arg, DOUBLE) for arg in args)
            return as_type(self._computed(name, wide, DOUBLE, parameters, DOUBLE), dtype)
        if whole and name == "sqrt":
            root = Apply("sqrt", (as_type(args[0], DOUBLE),), DOUBLE)
            return as_type(root, dtype)
        if whole and name in ("floor", "ceil", "round"):
            return args[0]
        if definition is None or (self.to_the_bit and definition.rounds_apart):
            return Apply(name, args, dtype, parameters)
        values = dict(zip("abcde", args, strict=False))
        meaning = definition.meaning if definition.whole is None or not whole else definition.whole
        return self._defined(meaning(Values(parameters)), values, dtype, kind)

    def _power(self, base: Term, exponent: float, dtype: str) -> Term | None:
        """A constant power as products, quotients and roots; None if it is none of them."""
        whole = not is_float(dtype)
        if exponent == 0.0:
            return constant(1.0, dtype)
        if exponent == -1.0:
            return self._computed("reciprocal", (base,), dtype, (), dtype)
        if 0 < exponent <= MOST_FACTORS and exponent.is_integer():
            # To the bit, only the square of a float is a product.
            return (
                None
                if self.to_the_bit and exponent > 2 and not whole
                else _product(base, int(exponent), dtype)
            )
        if whole or self.to_the_bit or not abs(exponent) <= MOST_FACTORS:
            return None
        for roots in (0, 1, 2):
            factors = abs(exponent) * 2**roots
            if factors.is_integer() and factors <= MOST_FACTORS:
                made = _product(_root(base, roots, dtype), int(factors), dtype)
                return made if exponent > 0 else Apply("div", (Const(1.0, dtype), made), dtype)
        return None

    def _defined(self, meaning: Meaning, values: Mapping[str, Term], dtype: str, kind: str) -> Term:
        """A definition with terms in the place of its operands."""
        if meaning.name == NUMBER:
            (value,) = meaning.parameters
            return constant(value, kind)
        if meaning.name == LIMIT:
            (value,) = meaning.parameters
            return constant(value, kind, saturates=True)
        if meaning.is_value:
            return values[meaning.name]
        below = tuple(self._defined(each, values, dtype, kind) for each in meaning.operands)
        known = FUNCTIONS[meaning.name]
        return self.apply(meaning.name, below, TRUTH if known.boolean else kind, meaning.parameters)


def _product(factor: Term, count: int, dtype: str) -> Term:
    made = factor
    for _ in range(count - 1):
        made = Apply("mul", (made, factor), dtype)
    return made


def _root(base: Term, roots: int, dtype: str) -> Term:
    """A square root of a square root, as powers have it: of -0.0 it is 0.0, of -inf it is inf."""
    made = base
    for _ in range(roots):
        root = Apply("sqrt", (made,), dtype)
        positive = Apply("add", (root, Const(0.0, dtype)), dtype)
        far = Apply("equal", (made, Const(-inf, dtype)), TRUTH)
        made = Apply("select", (far, Const(inf, dtype), positive), dtype)
    return made


def _in_doubles(definition: Definition, parameters: tuple[float, ...]) -> bool:
    if definition.in_doubles == "unless whole":
        return not all(abs(each) < inf and float(each).is_integer() for each in parameters)
    return definition.in_doubles == "always"
