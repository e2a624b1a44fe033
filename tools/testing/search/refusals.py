"""Judges refusals: a pass may refuse a program because an earlier pass broke it."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects.levels import LEVELS
from ....ir.upstream import ModulePass
from ....passes.pipelines import shorthand_from
from ..generators.program import Program
from .failures import PassFailed, Wrong
from .run import PassList, Refused, apply, is_abeles


def broken_before(
    refused: Refused, program: Program, passes: Sequence[ModulePass], limit: float
) -> Wrong | None:
    """The failure of an earlier pass that makes a later pass refuse a program; None if none is.

    Returns None where the refusal stands: the program does not fit the machine, no user's pass ran
    before, or the program is refused in all these ways.

    The program must be accepted without the users' passes before the refusal. If it is refused
    without them too, abele's default pipeline is tried, because a user's pass may stand in for one
    of abele's.

    Args:
        passes: all passes, of which one refused.
        limit: CPU seconds, as for `apply`.
    """
    at = refused.at
    if at is None or not refused.fits:
        return None
    users = [i for i in range(at) if not is_abeles(passes[i])]
    if not users:
        return None
    without = [each for i, each in enumerate(passes[: at + 1]) if i not in users]
    refuser = passes[at]
    if takes(without, program, limit):
        blamed = _first_to_break(users, passes[: at + 1], program, limit)
    elif is_abeles(refuser) and takes(_default_up_to(refuser, program), program, limit):
        blamed = passes[users[-1]]
    else:
        return None
    text = f"pass {refused}; without '{blamed.name}' it takes the program"
    return Wrong("refused", text, blamed=blamed.name)


def takes(passes: Sequence[ModulePass], program: Program, limit: float) -> bool:
    """Whether passes run on a program without refusing it or failing; False for no passes."""
    after = program.clone()
    try:
        for each in passes:
            apply(each, after, program, limit)
    except (Refused, PassFailed):
        return False
    return bool(passes)


def _first_to_break(
    users: Sequence[int], passes: Sequence[ModulePass], program: Program, limit: float
) -> ModulePass:
    """The first user's pass that makes a later pass refuse, with later users' passes left out."""
    for last in users:
        some = [each for i, each in enumerate(passes) if i <= last or i not in users]
        if not takes(some, program, limit):
            return passes[last]
    return passes[users[-1]]


def _default_up_to(refuser: ModulePass, program: Program) -> tuple[ModulePass, ...]:
    """The default pipeline from a program's level up to a pass; () if the pass is not in it."""
    if program.level == LEVELS[-1]:
        return ()
    default = PassList.of(shorthand_from(program.level)).for_program(program)
    names = [each.name for each in default]
    return default[: names.index(refuser.name) + 1] if refuser.name in names else ()
