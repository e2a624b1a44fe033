"""abele fuzz."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..views.table import console
from .arguments import Load
from .user_errors import CHECK_FAILED, user_errors

if TYPE_CHECKING:
    from ..testing.search.fuzz import Fuzzed


def fuzz_command(
    passes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PASS]...", help="Passes, each with its options. Default: all."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds for each pass.")] = 60.0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed for the programs. Default: a new one.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="The level of the programs. Default: what each pass declares, or what its code "
            "names operations of, or where it changes programs.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", metavar="DIR", help="Save failing programs here.")
    ] = Path("fuzz"),
    jobs: Annotated[int, typer.Option(min=1, help="How many passes to test at once.")] = 1,
    load: Load = None,
) -> None:
    """Run generated programs before and after each pass, for as long as you like.

    Exits with 0 if all results agree. Otherwise reduces, saves and prints each failing program, and
    exits with 1. Also exits with 1 if a pass changed hardly any program, because then nothing was
    tested.
    """
    # The kit takes a second to import; other commands need not wait for it.
    from ..testing.search import fuzz as fuzzing  # noqa: PLC0415

    with user_errors() as context:
        checks = fuzzing.jobs(passes or (), context.load(load).passes, level)
        number = Random().randrange(1 << 32) if seed is None else seed
        terminal = console()
        terminal.print(f"seed {number}; {len(checks)} jobs of {seconds:g} s, {jobs} at once")
        done: list[Fuzzed] = []
        for each in fuzzing.fuzz(checks, seconds, number, output, jobs):
            done.append(each)
            terminal.print(f"{each.name}: {_short(each)}", highlight=False)
        terminal.print(_table(done))
        failed = [each for each in done if each.failure]
        for each in failed:
            terminal.print(f"\n{each.name}: {each.failure}", highlight=False, markup=False)
        if failed:
            raise typer.Exit(CHECK_FAILED)


def _short(each: Fuzzed) -> str:
    return each.failure.partition("\n")[0] if each.failure else str(each.report)


COUNTS = {
    "examples": "programs",
    "changed": "changed",
    "refused": "refused",
    "unfit": "did not fit",
    "undecided": "undecided",
}
"""The columns of the table, by the counts of a report."""


def _table(done: list[Fuzzed]) -> Table:
    table = Table(title="programs, before and after", title_justify="left")
    table.add_column("")
    for name in (*COUNTS.values(), "a second", "failed"):
        table.add_column(name, justify="right")
    for each in sorted(done, key=lambda fuzzed: fuzzed.name):
        report = each.report
        rate = report.examples / report.seconds if report.seconds else 0
        figures = (*(getattr(report, name) for name in COUNTS), round(rate))
        failed = "yes" if each.failure else "-"
        table.add_row(each.name, *(f"{figure:,}" for figure in figures), failed)
    return table
