"""Random words of nn, made of the arithmetic that other dialects have."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64

from ...backends.codelets.philox import KEY_STEPS, MULTIPLIERS, ROUNDS
from ...dialects.dtypes import dtype_named, element_type
from .terms import Algebra, Term

WORD = element_type(dtype_named("ui32"))
"""The type of a word."""


_FACTORS = tuple(map(int, MULTIPLIERS))
_STEPS = tuple(map(int, KEY_STEPS))


def word(to: Algebra, value: int) -> Term:
    """A constant word."""
    return to.number(value & 0xFFFFFFFF, WORD)


def as_word(to: Algebra, number: Term) -> Term:
    """The lowest 32 bits of a whole number; 0 for a float that is too large to be one."""
    if not number.is_float:
        return to.cast(number, WORD)
    small = to.compare("less", to.primitive("abs", number), to.like(2.0**62, number))
    kept = to.select(small, number, to.like(0, number))
    return to.cast(to.cast(kept, i64), WORD)


def philox(to: Algebra, counter: Sequence[Term], key: Sequence[Term]) -> Term:
    """The first word of Philox-4x32-10 for a counter of four words and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        h0, l0 = _high_and_low(to, _FACTORS[0], c0)
        h2, l2 = _high_and_low(to, _FACTORS[1], c2)
        c0, c1 = to.primitive("xor", to.primitive("xor", h2, c1), k0), l2
        c2, c3 = to.primitive("xor", to.primitive("xor", h0, c3), k1), l0
        k0 = to.primitive("add", k0, word(to, _STEPS[0]))
        k1 = to.primitive("add", k1, word(to, _STEPS[1]))
    return c0


def _high_and_low(to: Algebra, factor: int, a: Term) -> tuple[Term, Term]:
    """The two words of a product with a constant."""
    wide = element_type(dtype_named("ui64"))
    made = to.primitive("mul", to.cast(a, wide), to.number(factor, wide))
    high = to.primitive("shift_right", made, to.number(32, wide))
    return to.cast(high, WORD), to.cast(made, WORD)
