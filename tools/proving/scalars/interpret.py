"""Reads unfolded terms as formulas of a solver: integers as bit-vectors, floats as a subclass does.

The tables in dialects/scalar_meanings.py say which functions reach an interpretation: basic ones,
those that are known by laws, and unknown ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ..terms import Apply, Const, Merge, Term, Var, subterms
from .library import z3
from .types import TRUTH, is_float, is_signed, limits, width

Formula = Any
"""An expression of the solver. Its own types have no annotations."""


class Unreadable(Exception):
    """Raised for a term that an interpretation has no formula for."""


def and_(*parts: Formula | bool) -> Formula | bool:
    """The conjunction, without a formula where Python knows the result."""
    if any(part is False for part in parts):
        return False
    left = [part for part in parts if part is not True]
    return True if not left else left[0] if len(left) == 1 else z3.And(*left)


def or_(*parts: Formula | bool) -> Formula | bool:
    """The disjunction, without a formula where Python knows the result."""
    if any(part is True for part in parts):
        return True
    left = [part for part in parts if part is not False]
    return False if not left else left[0] if len(left) == 1 else z3.Or(*left)


def not_(part: Formula | bool) -> Formula | bool:
    """The negation, without a formula where Python knows the result."""
    return (not part) if isinstance(part, bool) else z3.Not(part)


def if_(condition: Formula | bool, a: Any, b: Any) -> Any:
    """The first value where the condition holds, else the second."""
    if isinstance(condition, bool):
        return a if condition else b
    if a is b:
        return a
    if isinstance(a, bool) and isinstance(b, bool):
        return a if a == b else condition if a else not_(condition)
    return z3.If(condition, a, b)


def integer_sort(dtype: str) -> Formula:
    """The sort of the integers of a type."""
    return z3.BoolSort() if dtype == TRUTH else z3.BitVecSort(width(dtype))


class Interpretation(ABC):
    """Formulas of terms.

    Attributes:
        facts: what holds for the formulas that were made, such as the laws of functions.
        opaque: the functions of which only congruence is known.
    """

    def __init__(self) -> None:
        self.facts: list[Formula] = []
        self.opaque: set[str] = set()
        self._made: dict[Term, Any] = {}

    def formula(self, term: Term) -> Any:
        """The formula of an unfolded term. Raises Unreadable."""
        for each in subterms(term):
            if each not in self._made:
                self._made[each] = self._read(each)
        return self._made[term]

    def _read(self, term: Term) -> Any:
        match term:
            case Var(name=name, dtype=dtype):
                return self.variable(name, dtype)
            case Const(value=value, dtype=dtype):
                return self.constant(value, dtype)
            case Merge(args=args, dtype=dtype):
                return self._merge(term, [self._made[arg] for arg in args], dtype)
            case Apply(function=name, args=args, dtype=dtype):
                values = [self._made[arg] for arg in args]
                kinds = [arg.dtype for arg in args]
                return self._apply(term, name, values, kinds, dtype)

    # What a subclass knows of floats

    @abstractmethod
    def float_variable(self, name: str, dtype: str) -> Any:
        """An unknown float."""

    @abstractmethod
    def float_constant(self, value: float, dtype: str) -> Any:
        """A known float."""

    @abstractmethod
    def float_function(self, term: Apply, name: str, values: list[Any], dtype: str) -> Any:
        """A basic function of floats, or an unknown one, with any result."""

    @abstractmethod
    def float_choice(self, condition: Any, a: Any, b: Any) -> Any:
        """The first float where the condition holds, else the second."""

    @abstractmethod
    def cast(self, value: Any, source: str, target: str) -> Any:
        """A conversion from or to a float."""

    @abstractmethod
    def float_merge(self, term: Merge, values: list[Any], dtype: str) -> Any:
        """A merge of floats."""

    @abstractmethod
    def parts(self, value: Any) -> list[Any]:
        """The formulas that a float consists of. Equal floats have equal parts."""

    # Integers and truth values

    def variable(self, name: str, dtype: str) -> Any:
        """An unknown number."""
        if is_float(dtype):
            return self.float_variable(name, dtype)
        return z3.Const(f"{name}:{dtype}", integer_sort(dtype))

    def constant(self, value: float, dtype: str) -> Any:
        """A known number."""
        if is_float(dtype):
            return self.float_constant(value, dtype)
        if dtype == TRUTH:
            return z3.BoolVal(bool(value))
        return z3.BitVecVal(int(value), width(dtype))

    def unknown(self, name: str, values: list[Any], kinds: list[str], sort: Formula) -> Any:
        """A function of which only congruence is known."""
        parts = [
            part
            for value, kind in zip(values, kinds, strict=True)
            for part in (self.parts(value) if is_float(kind) else [value])
        ]
        if not parts:
            return z3.Const(name, sort)
        parts = [z3.BoolVal(part) if isinstance(part, bool) else part for part in parts]
        return z3.Function(name, *(part.sort() for part in parts), sort)(*parts)

    def _apply(
        self, term: Apply, name: str, values: list[Any], kinds: list[str], dtype: str
    ) -> Any:
        if name == "select":
            condition, a, b = values
            if is_float(dtype):
                return self.float_choice(condition, a, b)
            return if_(condition, a, b)
        if name == "identity":
            return self._identity(values[0], kinds[0], dtype)
        if name in _LOGICAL:
            return _LOGICAL[name](*values)
        if any(map(is_float, kinds)) or is_float(dtype):
            return self.float_function(term, name, values, dtype)
        kind = kinds[-1]
        if kind == TRUTH and name in _WHOLE:
            # Comparisons of truth values.
            values = [if_(value, z3.BitVecVal(1, 8), z3.BitVecVal(0, 8)) for value in values]
            kind = "i8"
        if name in _WHOLE:
            return _WHOLE[name](is_signed(kind), *values)
        self.opaque.add(name)
        return self.unknown(function_name(term), values, kinds, integer_sort(dtype))

    def _identity(self, value: Any, source: str, target: str) -> Any:
        if source == target:
            return value
        if is_float(source) or is_float(target):
            return self.cast(value, source, target)
        return whole_cast(value, source, target)

    def _merge(self, term: Merge, values: list[Any], dtype: str) -> Any:
        if is_float(dtype):
            return self.float_merge(term, values, dtype)
        signed = is_signed(dtype)
        low, high = limits(dtype)
        first = {"sum": 0, "prod": 1, "max": low, "min": high}[term.combiner]
        made: Any = self.constant(first, dtype)
        for value in values:
            if dtype == TRUTH:
                both = term.combiner in ("prod", "min")
                made = and_(made, value) if both else or_(made, value)
            else:
                made = _MERGED[term.combiner](signed, made, value)
        return made


def function_name(term: Apply) -> str:
    """The name of an unknown function: with its parameters and types."""
    kinds = ",".join(arg.dtype for arg in term.args)
    constants = ",".join(map(repr, term.parameters))
    return f"{term.function}[{constants}]({kinds})->{term.dtype}"


def whole_cast(value: Any, source: str, target: str) -> Any:
    """A conversion between integers, or to and from truth values."""
    if target == TRUTH:
        return value != z3.BitVecVal(0, width(source))
    wide = width(target)
    if source == TRUTH:
        return if_(value, z3.BitVecVal(1, wide), z3.BitVecVal(0, wide))
    more = wide - width(source)
    if more < 0:
        return z3.Extract(wide - 1, 0, value)
    if more == 0:
        return value
    return z3.SignExt(more, value) if is_signed(source) else z3.ZeroExt(more, value)


def _zero(a: Any) -> Any:
    return z3.BitVecVal(0, a.size())


def _less(signed: bool, a: Any, b: Any) -> Any:
    return a < b if signed else z3.ULT(a, b)


def _less_equal(signed: bool, a: Any, b: Any) -> Any:
    return a <= b if signed else z3.ULE(a, b)


def _divided(signed: bool, a: Any, b: Any) -> Any:
    """Division towards zero; by zero, the result is 0."""
    return z3.If(b == _zero(b), _zero(a), a / b if signed else z3.UDiv(a, b))


def _remainder(signed: bool, a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend; by zero, it is 0."""
    return z3.If(b == _zero(b), _zero(a), z3.SRem(a, b) if signed else z3.URem(a, b))


def _modulo(signed: bool, a: Any, b: Any) -> Any:
    """The remainder with the sign of the divisor; by zero, it is 0."""
    return z3.If(b == _zero(b), _zero(a), a % b if signed else z3.URem(a, b))


_LOGICAL: dict[str, Callable[..., Any]] = {
    "logical_and": and_,
    "logical_or": or_,
    "logical_not": not_,
}

One = Callable[[bool, Any], Any]
Two = Callable[[bool, Any, Any], Any]

_MERGED: dict[str, Two] = {
    "sum": lambda signed, a, b: a + b,
    "prod": lambda signed, a, b: a * b,
    "max": lambda signed, a, b: z3.If(_less(signed, b, a), a, b),
    "min": lambda signed, a, b: z3.If(_less(signed, a, b), a, b),
}

_OF_ONE: dict[str, One] = {
    "neg": lambda signed, a: -a,
    "abs": lambda signed, a: z3.If(a < _zero(a), -a, a) if signed else a,
    "bitwise_not": lambda signed, a: ~a,
}

_OF_TWO: dict[str, Two] = {
    "add": lambda signed, a, b: a + b,
    "sub": lambda signed, a, b: a - b,
    "mul": lambda signed, a, b: a * b,
    "div": _divided,
    "mod": _modulo,
    "fmod": _remainder,
    "less": _less,
    "less_equal": _less_equal,
    "greater": lambda signed, a, b: _less(signed, b, a),
    "greater_equal": lambda signed, a, b: _less_equal(signed, b, a),
    "equal": lambda signed, a, b: a == b,
    "bitwise_and": lambda signed, a, b: a & b,
    "bitwise_or": lambda signed, a, b: a | b,
    "bitwise_xor": lambda signed, a, b: a ^ b,
    "shift_left": lambda signed, a, b: a << b,
    "shift_right": lambda signed, a, b: a >> b if signed else z3.LShR(a, b),
}

_WHOLE: dict[str, Callable[..., Any]] = {**_OF_ONE, **_OF_TWO}
"""The formulas of functions of integers of one type, by name; the first argument says whether the
type has a sign."""
