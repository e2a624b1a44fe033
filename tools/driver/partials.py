"""What the option partials asks for, read from its text."""

from __future__ import annotations

import os

from ...ir.support.errors import InputError
from ...passes.planner.constraints import PARTIALS, PARTIALS_KEY, read_constraints

PARTS = ("forward", "input-gradient", "weight-gradient")
"""The parts of a step of training that may keep partial sums in a type of their own."""

NEED = (
    f"need {', '.join(PARTIALS)} or auto:ERROR, or one of them for "
    f"{', '.join(PARTS[:-1])} or {PARTS[-1]}, as in {PARTS[-1]}=float32; joined by commas"
)


def partials_options(text: str) -> str:
    """The options of the pass narrow-partials that the option's text stands for.

    Raises InputError for a text that says nothing or contradicts itself.
    """
    found: dict[str, str] = {}
    tolerances: set[str] = set()
    for each in text.split(","):
        part, equals, choice = each.strip().rpartition("=")
        kind, colon, error = choice.partition(":")
        if (equals and part not in PARTS) or kind not in PARTIALS or (colon and kind != "auto"):
            raise InputError(f"--partials {text}: {each.strip()!r}; {NEED}")
        if colon:
            tolerances.add(_error(text, error))
        name = part.replace("-", "_") or PARTIALS_KEY
        if name in found:
            raise InputError(f"--partials {text}: two choices for {part or 'all'}; need one")
        found[name] = kind
    if len(tolerances) > 1:
        raise InputError(f"--partials {text}: errors {', '.join(sorted(tolerances))}; need one")
    chosen = {PARTIALS_KEY: "keep", **found}
    options = [f"{name}={kind}" for name, kind in chosen.items()]
    return " ".join([*options, *(f"tolerance={each}" for each in tolerances)])


def _error(text: str, given: str) -> str:
    """A number as a pipeline writes it."""
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise InputError(f"--partials {text}: {given!r} is no error, such as 0.05")
    return repr(number) if "e" not in repr(number) else f"{number:.17f}"


def constrains_partials(path: str | os.PathLike[str]) -> bool:
    """Whether a file of constraints chooses the partial sums of operators. Raises InputError."""
    return any(PARTIALS_KEY in given for given in read_constraints(path).operators.values())
