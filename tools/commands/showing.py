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


TOLD = 10
"""The most choices of recomputation that are printed, unless all are asked for."""


def tell_recomputed(exe: Executable, *, every: bool = False) -> None:
    """Say on standard error what is computed again, with bytes saved and cycles paid.

    Args:
        every: whether to print all choices, and not only those that save most.
    """
    choices = exe.recomputed
    largest = sorted(choices, key=lambda each: -each.bytes)
    told = set(largest if every else largest[:TOLD])
    for each in choices:
        if each in told:
            narrow = each.narrow and not (each.nodes or each.apart or each.anew)
            print_error_line(f"{'keeps narrow' if narrow else 'computes again'} {each}")
    rest = [each for each in choices if each not in told]
    if rest:
        size, cycles = sum(each.bytes for each in rest), sum(each.cycles for each in rest)
        print_error_line(
            f"and {len(rest):,} smaller choices: {size:,} bytes for {cycles:,} cycles; --verbose "
            "prints them"
        )


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


def show(
    exe: Executable,
    title: str,
    verdict: Verdict | None,
    values: Iterable[str] = (),
    *,
    verbose: bool = False,
) -> None:
    """Print the summary table, and warn about relaxed limits, what is not priced, and a program
    that computes nothing; exit with 1 if the check failed.

    Args:
        values: the names of inputs with which the program was compiled.
        verbose: whether to print all choices of recomputation.
    """
    figure(exe)
    warn(exe.relaxed)
    tell_recomputed(exe, every=verbose)
    warn_of_constants(exe, values)
    warn_of_unpriced(exe.target)
    console().print(summary(exe, title, verdict.rows if verdict else ()))
    if verdict is not None and not verdict.passed:
        print_error_line(f"check failed: {verdict.problem}")
        raise typer.Exit(CHECK_FAILED)
