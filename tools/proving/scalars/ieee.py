"""Floats as the bits of IEEE 754, every operation rounded. All NaNs are one.

What is equal here is equal to the bit. Functions that no standard rounds are unknown functions:
equal operands give equal results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import Any

from ..terms import Apply, Merge
from .interpret import Interpretation, Unreadable, function_name, if_, integer_sort
from .library import z3
from .types import TRUTH, is_float, is_signed, limits, width

_SORTS = {"f16": (5, 11), "bf16": (8, 8), "f32": (8, 24), "f64": (11, 53)}
"""The bits of exponent and significand of each type."""


@lru_cache(maxsize=8)
def sort_of(dtype: str) -> Any:
    """The sort of a float type. Raises Unreadable for types without infinities."""
    if dtype not in _SORTS:
        raise Unreadable(f"{dtype} is only stored, and its bits are not modelled")
    return z3.FPSort(*_SORTS[dtype])


class Bits(Interpretation):
    """Formulas of terms whose floats are bits."""

    def float_variable(self, name: str, dtype: str) -> Any:
        """An unknown float."""
        return z3.Const(f"{name}:{dtype}", sort_of(dtype))

    def float_constant(self, value: float, dtype: str) -> Any:
        """A known float, rounded to its type."""
        return z3.FPVal(value, sort_of("f64")) if dtype == "f64" else _rounded(value, dtype)

    def float_choice(self, condition: Any, a: Any, b: Any) -> Any:
        """The first float where the condition holds, else the second."""
        return if_(condition, a, b)

    def parts(self, value: Any) -> list[Any]:
        """The float itself."""
        return [value]

    def float_function(self, term: Apply, name: str, values: list[Any], dtype: str) -> Any:
        """A function of floats."""
        if name in _EXACT:
            return _EXACT[name](*values)
        if name in _ROUNDED:
            return _ROUNDED[name](z3.RNE(), *values)
        self.opaque.add(name)
        sort = sort_of(dtype) if is_float(dtype) else integer_sort(dtype)
        return self.unknown(function_name(term), values, [arg.dtype for arg in term.args], sort)

    def cast(self, value: Any, source: str, target: str) -> Any:
        """A conversion from or to a float."""
        if is_float(source) and is_float(target):
            return z3.fpFPToFP(z3.RNE(), value, sort_of(target))
        if is_float(target):
            sort = sort_of(target)
            if source == TRUTH:
                return z3.If(value, z3.FPVal(1.0, sort), z3.FPVal(0.0, sort))
            convert = z3.fpSignedToFP if is_signed(source) else z3.fpUnsignedToFP
            return convert(z3.RNE(), value, sort)
        sort = value.sort()
        if target == TRUTH:
            return z3.Not(z3.fpIsZero(value))
        low, high = limits(target)
        wide = z3.BitVecSort(width(target))
        convert = z3.fpToSBV if is_signed(target) else z3.fpToUBV
        # A limit may round up: then no number lies between it and the true limit.
        least, most = (z3.FPVal(float(each), sort) for each in (low, high))
        inside = convert(z3.RTZ(), value, wide)
        below = z3.If(z3.fpLEQ(value, least), z3.BitVecVal(low, wide), inside)
        above = z3.If(z3.fpGEQ(value, most), z3.BitVecVal(high, wide), below)
        return z3.If(z3.fpIsNaN(value), z3.BitVecVal(0, wide), above)

    def float_merge(self, term: Merge, values: list[Any], dtype: str) -> Any:
        """A merge: an extreme as it is, a sum or product as an unknown function of its terms."""
        if len(values) == 1:
            return values[0]
        if term.combiner in ("max", "min") and values:
            made = values[0]
            for value in values[1:]:
                made = _extreme(term.combiner, made, value)
            return made
        kinds = [arg.dtype for arg in term.args]
        name = f"{term.combiner} of {len(values)} {dtype}"
        # Two terms have the same sum in both orders; more are rounded in between.
        ordered = sorted(values, key=lambda each: each.get_id()) if len(values) == 2 else values
        return self.unknown(name, ordered, kinds, sort_of(dtype))


def _rounded(value: float, dtype: str) -> Any:
    sort = sort_of(dtype)
    if value != value:
        return z3.fpNaN(sort)
    if abs(value) == inf:
        return z3.fpInfinity(sort, value < 0)
    return z3.FPVal(value, sort)


def _extreme(combiner: str, a: Any, b: Any) -> Any:
    first = z3.fpGT(a, b) if combiner == "max" else z3.fpLT(a, b)
    found = z3.If(first, a, b)
    return z3.If(z3.Or(z3.fpIsNaN(a), z3.fpIsNaN(b)), z3.fpNaN(a.sort()), found)


def different(a: Any, b: Any, *, zeros: bool = True) -> Any:
    """Whether two floats differ in their bits.

    Args:
        zeros: whether zeros of different signs differ.
    """
    return a != b if zeros else z3.And(a != b, z3.Not(z3.fpEQ(a, b)))


def _whole(mode: Any) -> Callable[[Any], Any]:
    """A rounding to whole numbers."""

    def round_(a: Any) -> Any:
        return z3.fpRoundToIntegral(mode, a)

    return round_


_ROUNDED: dict[str, Any] = {
    "add": z3.fpAdd,
    "sub": z3.fpSub,
    "mul": z3.fpMul,
    "div": z3.fpDiv,
    "sqrt": z3.fpSqrt,
}
_EXACT: dict[str, Any] = {
    "neg": z3.fpNeg,
    "abs": z3.fpAbs,
    "less": z3.fpLT,
    "less_equal": z3.fpLEQ,
    "greater": z3.fpGT,
    "greater_equal": z3.fpGEQ,
    "equal": z3.fpEQ,
    "floor": _whole(z3.RTN()),
    "ceil": _whole(z3.RTP()),
    "round": _whole(z3.RNE()),
}
