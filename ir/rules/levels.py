"""What a file of rules declares about levels, for the pass that applies its rules."""

from __future__ import annotations

from ..level import Level
from ..pass_levels import PassLevels
from ..support.suggestions import suggestion
from .parse import refusal
from .syntax import Declared, RuleFile
from .vocabulary import Vocabulary


def bind_levels(file: RuleFile, vocabulary: Vocabulary) -> PassLevels | None:
    """The declarations of a file; None if there are none.

    Raises InputError for an unknown level, and for a declaration that occurs twice.
    """
    found: dict[str, Level | bool] = {}
    for each in file.declared:
        if each.what in found:
            raise refusal(each.place, f"{each.what} is already declared", file.text)
        found[each.what] = True if each.what == "rounds" else _level(each, file, vocabulary)
    return PassLevels(**found) if found else None  # pyright: ignore[reportArgumentType]


def _level(declared: Declared, file: RuleFile, vocabulary: Vocabulary) -> Level:
    known = {level.name: level for level in (*vocabulary.levels, *vocabulary.sources)}
    if declared.level not in known:
        message = f"no level {declared.level}{suggestion(declared.level, known)}"
        raise refusal(declared.place, message, file.text)
    return known[declared.level]
