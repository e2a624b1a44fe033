"""abele sweep."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..executors.limits import Limits
from ..executors.named import DEFAULT, executor_of
from ..sweeps.columns import FITS
from ..sweeps.folder import PAGE, SUMMARY
from ..sweeps.spec import read_spec
from ..sweeps.summary import best_rows, shown_figure
from ..sweeps.sweep import Progress, Swept, default_folder, run_sweep, with_choice
from ..views.terminal import changing_line, console
from ..views.user_errors import print_error_line, user_errors

STOPPED = 130
"""The exit code after Ctrl-C, as shells have it: 128, and the number of the signal."""


def sweep_command(
    spec: Annotated[
        Path,
        typer.Argument(metavar="SPEC.toml", help="Models, targets and options; docs/sweeps.md."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="The folder of the rows. Default: beside SPEC, with its name and .sweep. A folder "
            "that has rows already goes on with them.",
        ),
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What computes: local, one process per core; local:N, N processes; here, this "
            "process; dask://HOST:PORT; or dask-local:N.",
        ),
    ] = DEFAULT,
    best: Annotated[
        str | None,
        typer.Option(
            "--best",
            metavar="GOAL",
            help="Show the best point of each model, such as 'max items_per_s / tiles' or "
            "'min cycles'. Replaces that of the spec.",
        ),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint",
            metavar="CONDITION",
            help="Choose only among points for which this holds, such as 'chips <= 4 and "
            "memory_share < 0.9'. May be repeated.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, help="Give up a program after so many seconds. Default: never."),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory",
            min=64,
            metavar="MIB",
            help="The most memory of a process. Default: no limit.",
        ),
    ] = None,
) -> None:
    """Compile models for many machines, and compare them: a row of figures for each point.

    Writes Parquet files, a Pareto picture as a page and as PNG, and sweep.md. A point that fails is
    a row with its reason. Ctrl-C keeps all rows so far, and the same command goes on with them.
    """
    with user_errors():
        read = with_choice(read_spec(spec), best, constraint or ())
        place = default_folder(spec) if output is None else output
        limits = Limits(seconds, None if memory is None else memory << 20)
        with changing_line() as show:
            shower = _Shower(show)
            try:
                with executor_of(executor, limits) as made:
                    swept = run_sweep(read, place, made, shower.tell)
            except KeyboardInterrupt:
                done = shower.last
                rows = (
                    "" if done is None else f"{done.done:,} of {done.points:,} points have rows; "
                )
                print_error_line(f"stopped: {rows}the same command goes on with them")
                raise typer.Exit(STOPPED) from None
        _show(swept, place)


class _Shower:
    """Shows progress: a changing line on a terminal, else a line now and then."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._tenth = 0
        self.last: Progress | None = None

    def tell(self, progress: Progress) -> None:
        """Show how far the sweep is."""
        self.last = progress
        words = f", {progress.words}" if progress.words else ""
        line = f"{progress.done:,} of {progress.points:,} points{words}"
        self._show(line)
        tenth = 10 * progress.done // max(progress.points, 1)
        if tenth > self._tenth and not sys.stderr.isatty():
            # Whoever reads a pipe sees that it works.
            self._tenth = tenth
            sys.stderr.write(f"{line}\n")


def _show(swept: Swept, place: Path) -> None:
    """Print the best points, and where everything is."""
    rows, out = swept.rows, console()
    figures = sum(row["status"] == FITS for row in rows.rows)
    kept = f", {swept.kept:,} of them from before" if swept.kept else ""
    out.print(
        f"{len(rows.rows):,} points{kept}; {figures:,} fit; {swept.programs:,} programs compiled",
        highlight=False,
    )
    best = swept.spec.choice.best
    if best is not None:
        out.print(_best_table(swept, best.text))
        for model, row in best_rows(swept.spec, rows):
            if row is None:
                out.print(f"{model}: no point keeps the constraints", highlight=False)
    out.print(f"{place / SUMMARY}; {place / PAGE}", highlight=False, soft_wrap=True)


def _best_table(swept: Swept, goal: str) -> Table:
    rows = swept.rows
    names = ("model", "target", "chips", "tiles", *rows.keys, "items_per_s", "cycles", "binds")
    table = Table(title=f"the best of each model: {goal}", title_justify="left")
    for name in names:
        justify = "left" if rows.kinds[name] == "text" else "right"
        table.add_column(name.replace("_", " "), justify=justify)
    for _, row in best_rows(swept.spec, rows):
        if row is not None:
            table.add_row(*(shown_figure(row[name]) for name in names))
    return table
