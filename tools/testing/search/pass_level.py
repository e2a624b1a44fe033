"""The level of programs for testing a pass: declared, named by its code, or found by trial."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from ....dialects.levels import (
    LEVELS,
    NN,
    PLANNED,
    SOURCE_LEVELS,
    SOURCES,
    USERS_DIALECTS,
)
from ....ir.equal import same_program
from ....ir.level import Level
from ....ir.pass_levels import declared_levels
from ....ir.support.errors import InputError
from ....ir.upstream import ModulePass
from ..generators.levels import known_levels, level_before
from ..generators.program import Program
from ..limits import TooLong, guarded
from .aim import Aim
from .draw import generated
from .failures import PassFailed
from .judge import STUCK, Judge
from .named import classes_named_by
from .run import PassList, Refused, apply
from .settings import CheckSettings

TRIED = 24
"""Number of programs of each level on which a pass is tried."""
ENOUGH = TRIED // 4
"""The number of changed programs from which on a level is taken at once."""
TRIAL_LIMIT = 2.0
"""CPU seconds that a pass may take for one of these programs is half of this."""


@dataclass(frozen=True)
class FoundLevel:
    """A level, or a stage between levels, and the reason for choosing it, in words."""

    level: str
    why: str


def level_given(level: Level | str) -> FoundLevel:
    """The level that a user has named. Raises InputError if it is unknown."""
    known = known_levels()
    if str(level) not in known:
        raise InputError(f"level '{level}'; need one of {', '.join(known)}")
    return FoundLevel(str(level), "as given")


def level_for(tested: ModulePass, settings: CheckSettings) -> FoundLevel:
    """The level of the programs for testing a pass.

    It is the level that the pass declares to take; or else the level whose operations its code
    names, if there is only one; or else the level at which the pass changes the most of some trial
    programs. If it changes none, it is the highest level that its code names.

    Args:
        settings: the seed of those programs, and the limits of a check.
    """
    declared = declared_levels(type(tested))
    if declared is not None and declared.takes is not None:
        return FoundLevel(level_before(type(tested)), "declared by the pass")
    named = levels_named_by(tested)
    if len(named) == 1 and named != [NN]:
        return FoundLevel(named[0].name, f"its code names operations of {named[0]}")
    candidates = named or LEVELS
    changed: dict[str, int] = {}
    for each in (*map(str, candidates), *((PLANNED,) if NN in candidates else ())):
        # Planned programs are tried only for passes that change no other programs.
        if each == PLANNED and any(changed.values()):
            break
        changed[each] = changed_of_some(tested, each, settings)
        if changed[each] >= ENOUGH:
            break
    best = max(changed, key=lambda each: changed[each])
    if changed[best]:
        return FoundLevel(best, f"the pass changed {changed[best]} of {TRIED} of its programs")
    tried = ", ".join(changed)
    return FoundLevel(best, f"the pass changed none of {TRIED} programs of each of {tried}")


def levels_named_by(tested: ModulePass) -> list[Level]:
    """The levels whose operations the code of a pass names, the highest first."""
    names = {
        cls.name.partition(".")[0]
        for cls in classes_named_by(tested)
        if issubclass(cls, Operation) and isinstance(getattr(cls, "name", None), str)
    }
    if names & USERS_DIALECTS.keys():
        names.add(NN.name)
    names |= {SOURCE_LEVELS[each].name for each in names if each in SOURCE_LEVELS}
    return [level for level in (*SOURCES, *LEVELS) if level.name in names]


def changed_of_some(tested: ModulePass, level: str, settings: CheckSettings) -> int:
    """The number of generated programs of a level, out of TRIED, that a pass changes."""
    limit, count = min(settings.limit, TRIAL_LIMIT), 0
    judge = Judge(PassList((tested,)), settings, doing="compiling the program")

    def look(program: Program) -> bool:
        nonlocal count
        after = program.clone()
        try:
            with guarded(STUCK * limit, lambda: judge.last_words(program)):
                apply(tested, after, program, limit)
        except Refused:
            return False
        except PassFailed as failed:
            if isinstance(failed.__cause__, TooLong):
                raise _Hangs from None
            return False
        changed = not same_program(after.module, program.module)
        count += changed
        return changed

    try:
        generated(level, TRIED, settings.any_seed(), Aim.of((tested,), level), look)
    except _Hangs:
        return count
    return count


class _Hangs(BaseException):
    """Ends the trials of a level at which the pass hangs."""
