"""What the option recompute asks for, read from its text."""

from __future__ import annotations

from dataclasses import dataclass

from ....ir.support.errors import InputError
from ....passes.analysis.checkpoints import SQRT
from ....passes.recompute import Recompute

AUTO = "auto"
"""Choose what to compute again, under a memory bound."""


@dataclass(frozen=True)
class RecomputeOption:
    """The option.

    Attributes:
        again: the pass that it stands for; None if the compiler chooses.
        bound: bytes of a tile, with what the target reserves, that the program may take if the
            compiler chooses; None for all that the target has.
    """

    again: Recompute | None
    bound: int | None = None


def read_recompute(text: str) -> RecomputeOption:
    """The option from its text: auto, auto:BYTES, sqrt, or names joined by commas.

    Raises InputError.
    """
    kind, colon, number = text.partition(":")
    if kind == AUTO:
        bound = number.replace("_", "")
        if colon and not (bound.isdecimal() and int(bound)):
            raise InputError(
                f"--recompute {text}: {number!r} is no number of bytes, such as 500000"
            )
        return RecomputeOption(None, int(bound) if colon else None)
    if text == SQRT:
        return RecomputeOption(Recompute(schedule=SQRT))
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InputError(f"--recompute {text!r}: need {AUTO}, {AUTO}:BYTES, {SQRT}, or names")
    return RecomputeOption(Recompute(names))
