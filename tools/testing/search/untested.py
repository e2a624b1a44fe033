"""Refuses a check in which the passes under test changed hardly any program."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.upstream import ModulePass
from ..generators.levels import known_levels
from .failures import Untested
from .pass_level import FoundLevel
from .report import Report
from .run import is_abeles
from .settings import CheckSettings

MANY = 100
"""The number of programs from which on the passes must change at least one in a hundred."""
RIGHT = "expect_changes=False if it is right to change nothing here"


def refuse_untested(
    passes: Sequence[ModulePass], report: Report, settings: CheckSettings, found: FoundLevel
) -> None:
    """Raise Untested if passes changed no program of a check, or fewer than 1 % of at least MANY.

    Each user's pass of a pipeline must change programs, however many the others change.
    """
    if not report.examples:
        raise Untested(f"no program ran in {report.seconds:.1f} s", "give the check more seconds")
    problem = _idle(passes, report)
    if problem is None:
        return
    if settings.programs is not None:
        raise Untested(
            f"{problem}, so hardly anything was tested",
            f"give programs that contain what it looks for, or {RIGHT}",
        )
    raise Untested(
        f"{problem} of {found.level}, so hardly anything was tested\nthe level: {found.why}",
        f"give level=..., one of {', '.join(known_levels())}; or the operators that it looks for, "
        f"operators=[nn.ReluOp, ...]; or {RIGHT}",
    )


def _idle(passes: Sequence[ModulePass], report: Report) -> str | None:
    """The names of passes that changed hardly any program, in words; None if there are none."""
    names = ", ".join(f"'{each.name}'" for each in passes)
    which = "pass" if len(passes) == 1 else "passes"
    counts = {f"{which} {names}": report.changed}
    if len(passes) > 1:
        counts |= {
            f"pass '{p.name}'": report.changed_by[p.name] for p in passes if not is_abeles(p)
        }
    for who, count in counts.items():
        if is_hardly_any(count, report.examples):
            return f"{who} changed {_count(count)} of {report.examples} programs"
    return None


def is_hardly_any(changed: int, examples: int) -> bool:
    """Whether so few programs were changed that a check tested nothing."""
    return not changed or (examples >= MANY and changed * MANY < examples)


def _count(changed: int) -> str:
    return str(changed) if changed else "none"
