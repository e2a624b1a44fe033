"""How equal two elements are, as far as a proof knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from .scalars.equality import SPECIAL_TEXT, Exactness, Special, Verdict

VERDICTS: tuple[Verdict, ...] = ("equal", "undecided", "different")
EXACT: tuple[Exactness, ...] = ("bits", "rounding")
SPECIALS: tuple[Special, ...] = ("same", "zeros", "open", "differ")
"""Each from the strongest to the weakest."""


@dataclass(frozen=True)
class Outcome:
    """The result of a comparison.

    Attributes:
        exactness, special: as in Equality, if the two are equal.
        reason: why it is undecided.
        model: values of variables, by name, for which the two differ.
        special_model: values for which special values differ.
    """

    verdict: Verdict = "equal"
    exactness: Exactness = "bits"
    special: Special = "same"
    reason: str = ""
    model: Mapping[str, float] = field(default_factory=dict[str, float])
    special_model: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def proved(self) -> bool:
        """Whether the two are equal, at least up to rounding."""
        return self.verdict == "equal"

    def rounded(self) -> Outcome:
        """The outcome if results may also differ by rounding."""
        return replace(self, exactness="rounding") if self.proved else self

    @property
    def text(self) -> str:
        """What is equal, in words."""
        if self.exactness == "bits" and self.special == "same":
            return "equal to the bit"
        how = "equal to the bit" if self.exactness == "bits" else "equal up to rounding"
        values = ", ".join(f"{name} = {value:g}" for name, value in self.special_model.items())
        where = f", as where {values}" if values else ""
        return f"{how}; {SPECIAL_TEXT[self.special]}{where}"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """What holds for all outcomes: equal to the bit if there is none.

    An outcome that is not proved comes with its reason and model.
    """
    made = Outcome()
    for each in outcomes:
        if VERDICTS.index(each.verdict) > VERDICTS.index(made.verdict):
            made = each
        elif each.proved and made.proved:
            rounds = EXACT.index(each.exactness) > EXACT.index(made.exactness)
            exactness = (each if rounds else made).exactness
            weaker = SPECIALS.index(each.special) > SPECIALS.index(made.special)
            special, model = (each if weaker else made).special, made.special_model
            made = Outcome(
                exactness=exactness, special=special, special_model=model or each.special_model
            )
    return made
