"""What a command shows while it works, and when it is done."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from ...passes.planner.relaxed import Relaxed
from ..debug.check import Verdict
from ..driver.executable import Executable
from ..views.table import console, summary
from .answers import CHECK_FAILED, say


def warn(relaxed: Iterable[Relaxed]) -> None:
    """Say which limits on memory no plan keeps, on standard error."""
    for each in relaxed:
        say(f"warning: no plan keeps the memory proportion of {each}")


def show(exe: Executable, title: str, verdict: Verdict | None) -> None:
    """Print the table, and which limits were relaxed; exit when the check has failed."""
    warn(exe.relaxed)
    console().print(summary(exe, title, verdict.text if verdict else ""))
    if verdict is not None and not verdict.passed:
        say(f"check failed: {verdict.problem}")
        raise typer.Exit(CHECK_FAILED)
