"""The verdict of a proof of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from .outcomes import Outcome

Kind: TypeAlias = Literal[
    "all ranks", "all sizes", "listed shapes", "not decided", "not of nn", "refuted"
]

KINDS: dict[Kind, str] = {
    "all ranks": "proved for all sizes, and for any number of further axes that are carried along",
    "all sizes": "proved for all sizes, at the ranks and attributes of the grid",
    "listed shapes": "proved for all values, at the sizes of the grid",
    "not decided": "not proved, and not refuted",
    "not of nn": "of operations of another level, about which nothing is proved",
    "refuted": "a program shows that the rule is wrong",
}
"""The kinds of verdicts, from the strongest on, and what they mean."""
OTHER: Kind = "not of nn"
"""The kind of verdicts that are counted apart."""


@dataclass(frozen=True)
class Grid:
    """What a proof has looked at.

    Attributes:
        forms: how many forms of matches: see tools/proving/forms.py.
        operators: the names of the operators that the patterns matched.
        elements: the element types of the results.
        ranks: of the results.
        least: the smallest size of axes whose size is free.
        checked: how many programs of other sizes the formulas of spaces were checked with.
        left: how many further forms there was no time to prove.
    """

    forms: int = 0
    operators: tuple[str, ...] = ()
    elements: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    least: int = 1
    checked: int = 0
    left: int = 0

    @property
    def text(self) -> str:
        """The grid in words."""
        shown = ", ".join(self.operators[:4]) + (", ..." if len(self.operators) > 4 else "")
        ranks = ", ".join(map(str, self.ranks))
        count = f"{self.forms} of {self.forms + self.left}" if self.left else f"{self.forms}"
        return f"{count} forms: {shown}; {', '.join(self.elements)}; ranks {ranks}"


@dataclass(frozen=True)
class Verdict:
    """The verdict of a proof of a rule.

    Attributes:
        equality: what is equal, in words; "" if the rule is not proved.
        reason: why a stronger verdict was not reached, or what is wrong; "" for the strongest.
        tested: how many programs were run, if the rule is not proved.
        example: the program that refutes the rule, and what differs, as text; "" if there is none.
        seconds: of processor time.
    """

    rule: str
    kind: Kind
    equality: str = ""
    reason: str = ""
    grid: Grid = field(default_factory=Grid)
    tested: int = 0
    example: str = ""
    seconds: float = 0.0

    @property
    def proved(self) -> bool:
        """Whether the rule is proved in any way."""
        return self.kind in ("all ranks", "all sizes", "listed shapes")

    @property
    def text(self) -> str:
        """The verdict in one line."""
        if self.proved:
            return f"proved for {self.kind}: {self.equality}"
        if self.kind == "refuted":
            return f"refuted: {self.reason}"
        return f"{self.kind} ({self.reason}); {self.tests}"

    @property
    def tests(self) -> str:
        """How the rule was tested, if it is neither proved nor refuted."""
        plural = "" if self.tested == 1 else "s"
        return f"tested on {self.tested} program{plural}" if self.tested else "not tested"

    def record(self) -> dict[str, Any]:
        """The verdict as data for JSON."""
        return asdict(self)

    @staticmethod
    def of(record: Mapping[str, Any]) -> Verdict:
        """The verdict of a record."""
        grid: dict[str, Any] = dict(record["grid"])
        grid |= {key: tuple(grid[key]) for key in ("operators", "elements", "ranks")}
        known: dict[str, Any] = {**record, "grid": Grid(**grid)}
        return Verdict(**known)


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts there are of each kind, in one line. Rules of other levels come apart."""
    kinds = [(kind, sum(each.kind == kind for each in verdicts)) for kind in KINDS]
    found = [f"{count} {kind}" for kind, count in kinds if count and kind != OTHER]
    others = dict(kinds)[OTHER]
    own = len(verdicts) - others
    parts = [f"{own} rule{'' if own == 1 else 's'}: {', '.join(found)}"] if own else []
    parts += [f"{others} {OTHER}"] if others else []
    return "; ".join(parts)


@dataclass(frozen=True)
class Proved:
    """What was found for one form: the outcome, and how it was reached.

    Attributes:
        sizes: whether the outcome holds for all sizes; else for those of the form.
        why_not: why it does not hold for all sizes; "" if it does.
    """

    outcome: Outcome
    sizes: bool = False
    carried: bool = False
    least: int = 1
    checked: int = 0
    why_not: str = ""
