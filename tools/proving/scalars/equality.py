"""Whether two terms are equal: the verdict of a proof about scalars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..terms import Var

Verdict = Literal["equal", "different", "undecided"]
Exactness = Literal["bits", "rounding"]
Special = Literal["same", "zeros", "differ", "open"]

SPECIAL_TEXT: dict[Special, str] = {
    "same": "NaN, infinities and signs of zeros are the same",
    "zeros": "NaN and infinities are the same, signs of zeros may differ",
    "differ": "NaN or infinities may differ",
    "open": "NaN, infinities and signs of zeros are not decided",
}

Values = Mapping[Var, float]
"""A value for each variable."""


@dataclass(frozen=True)
class Equality:
    """Whether two terms are equal for all values of their variables.

    Attributes:
        verdict: equal, if they are the same number wherever all operands and both results are
            finite; different, if not; or undecided.
        exactness: "bits" if results have the same bits, all NaNs being one; "rounding" if they may
            differ by rounding, or by overflow of what is in between. Integers have "bits".
        special: whether NaN, infinities and the signs of zeros are the same.
        example: values for which the terms are different, or {}.
        special_example: values for which special values differ, or {}.
        reason: why the verdict, or what is special, is undecided; else "".
        seconds: processor time.
    """

    verdict: Verdict
    exactness: Exactness = "rounding"
    special: Special = "open"
    example: Values = field(default_factory=dict[Var, float])
    special_example: Values = field(default_factory=dict[Var, float])
    reason: str = ""
    seconds: float = 0.0

    @property
    def is_equal(self) -> bool:
        """Whether the terms are equal up to rounding, special values apart."""
        return self.verdict == "equal"

    def __str__(self) -> str:
        """The verdict in words."""
        if self.verdict == "undecided":
            return f"undecided: {self.reason}"
        if self.verdict == "different":
            return f"different where {_text(self.example)}"
        if self.exactness == "bits" and self.special == "same":
            return "equal to the bit"
        how = "equal to the bit" if self.exactness == "bits" else "equal up to rounding"
        where = f", as where {_text(self.special_example)}" if self.special_example else ""
        return f"{how}; {SPECIAL_TEXT[self.special]}{where}"


def _text(values: Values) -> str:
    return ", ".join(f"{each.name} = {value:g}" for each, value in values.items())
