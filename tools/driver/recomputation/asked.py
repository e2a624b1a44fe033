"""What the option recompute asks for, read from its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....ir.support.errors import InputError
from ....passes.analysis.checkpoints import SQRT
from ....passes.narrow_stashes import Stash, StashType
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


def check_bound(text: str, size: int) -> None:
    """Raise InputError if the fullest tile takes more than the bound of the option.

    Args:
        text: the option; "" for none.
        size: the bytes of the fullest tile, with what the target reserves.
    """
    bound = read_recompute(text).bound if text.startswith(AUTO) else None
    if bound is not None and size > bound:
        raise InputError(
            f"--recompute {text}: the fullest tile takes at least {size:,} bytes, whatever is "
            "computed again; need a higher bound"
        )


def is_automatic(stash: str) -> bool:
    """Whether a choice of stashes lets the compiler choose them."""
    return stash.endswith(f":{AUTO}")


def automatic_types(stashes: Sequence[str]) -> tuple[StashType, ...]:
    """The types in which the compiler may keep stashes. Raises InputError."""
    return tuple(Stash.read(each).type for each in stashes if is_automatic(each))


def read_stashes(stashes: Sequence[str], recompute: str) -> tuple[Stash, ...]:
    """The choices of stashes that are the user's own. Raises InputError.

    Args:
        recompute: the option beside it.
    """
    chosen = automatic_types(stashes)
    if chosen and (not recompute or read_recompute(recompute).again is not None):
        raise InputError(
            f"--stash {chosen[0]}:{AUTO} without --recompute {AUTO}, which chooses; need both"
        )
    return tuple(Stash.read(each) for each in stashes if not is_automatic(each))
