"""What a command prints when it is done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from ..driver.executable import Executable
from ..views.table import summary
from ..views.terminal import console
from ..views.user_errors import CHECK_FAILED, print_error_line
from .wall import WALL

if TYPE_CHECKING:
    from ...backends.target import Target
    from ...passes.planner.relaxed import Relaxed
    from ..debug.run_check import Verdict


def warn(relaxed: Iterable[Relaxed]) -> None:
    """Warn on standard error about each memory limit that no plan keeps."""
    for each in relaxed:
        print_error_line(f"warning: no plan keeps the memory proportion of {each}")


def tell_recomputed(exe: Executable) -> None:
    """Say on standard error what is computed again, with bytes saved and cycles paid."""
    for each in exe.recomputed:
        print_error_line(f"computes again {each}")


def warn_of_unpriced(target: Target) -> None:
    """Warn on standard error about costs that prices on this target leave out."""
    if target.unpriced:
        print_error_line(f"warning: {target.unpriced}")


def warn_of_constants(exe: Executable, values: Iterable[str]) -> None:
    """Warn on standard error if nothing is left to compute, because of values that are given."""
    names = ", ".join(values)
    if names and not exe.inputs and not exe.profile["vertices"]:
        print_error_line(
            f"warning: the values of {names} decide every output, so the program computes nothing"
        )


def figure(exe: Executable) -> None:
    """Compute the figures of a program, and let its stages add up to the time of the command."""
    with exe.stages.timed("figures"):
        _ = exe.profile
    WALL.settle(exe.stages)


def show(exe: Executable, title: str, verdict: Verdict | None, values: Iterable[str] = ()) -> None:
    """Print the summary table, and warn about relaxed limits, what is not priced, and a program
    that computes nothing; exit with 1 if the check failed.

    Args:
        values: the names of inputs with which the program was compiled.
    """
    figure(exe)
    warn(exe.relaxed)
    tell_recomputed(exe)
    warn_of_constants(exe, values)
    warn_of_unpriced(exe.target)
    console().print(summary(exe, title, verdict.rows if verdict else ()))
    if verdict is not None and not verdict.passed:
        print_error_line(f"check failed: {verdict.problem}")
        raise typer.Exit(CHECK_FAILED)
