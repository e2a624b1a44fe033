"""Compile a program with smaller plans, if its variables do not fit otherwise.

Plans are chosen by an estimate of memory. The addresses of the variables may need more: gaps remain
between them, and copies may live longer than is estimated. So a program that lacks a few bytes is
planned again, with plans that need that many bytes less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...ir.support.errors import DoesNotFit, InputError
from .executable import Executable

ROUNDS = 4
"""The most compiles after the first one.

Chosen by judgement: each one takes as long as the first, unless there are no such plans, which
ends the search after planning.
"""


def fitting(
    compile_with: Callable[[int], Executable],
    tell: Callable[[Iterable[str]], None],
    *,
    unbounded: bool,
) -> Executable:
    """The first program that fits: as it is planned first, or with plans of fewer bytes each time.

    If none fits, the first program, or the error of compiling it.

    Args:
        compile_with: compiles the program with plans that need so many bytes of a tile less.
        tell: takes the note about such plans, which the program also gets.
        unbounded: whether that also gives a program that does not fit.
    """
    first: Executable | DoesNotFit | None = None
    spare = 0
    for _ in range(1 + ROUNDS):
        try:
            made = compile_with(spare)
        except DoesNotFit as error:
            made = problem = error
        except InputError:
            # Such as: no pass plans, or plans cannot need so few bytes.
            if first is None:
                raise
            break
        else:
            problem = made.memory.problem() if unbounded else None
            if problem is None:
                if spare:
                    tell(_noted(made, spare))
                return made
        first = first or made
        # Other plans only help a program that is planned, and for which a tile is too small.
        if problem.tile is None:
            break
        spare += problem.needed - problem.available
    assert first is not None
    if isinstance(first, DoesNotFit):
        raise first
    return first


def _noted(exe: Executable, spare: int) -> tuple[str, ...]:
    """The note about smaller plans, which is written on the program."""
    note = (
        f"planned for {spare:,} bytes of each tile less, because the variables of the first plans "
        "did not fit"
    )
    exe.note(note)
    return (note,)
