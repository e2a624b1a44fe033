"""How small the reproducers of planted bugs are, and which pass the testing kit blames for them.

python -m abele.tools.workshop.planted [--mutants 20] [--seconds 10] [--stop-after 600]

The bugs are those of `abele mutate`. Each is in one pass of the default pipeline, or in one of
TRIED, which run before it. The other passes are right. A reproducer is clean if the passes without
the bug compile it correctly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Annotated, cast

import typer
from rich.table import Table

from ...ir.pass_manager import parse_pipeline
from ...ir.support.errors import InputError
from ...passes.pipelines import PASSES, STAGE
from ..bench.named import names_in
from ..driver.files import check_files
from ..testing.generators.program import Program
from ..testing.mutation.compare import Budget
from ..testing.mutation.mutant import Mutant
from ..testing.mutation.study import chosen_mutants, plant, trials_among
from ..testing.mutation.trial import Trial
from ..testing.search.failures import AtFault, StrategyFailed
from ..testing.search.judge import Judge
from ..testing.search.run import PassList, Refused
from ..testing.search.settings import CheckSettings
from ..views.script import run_script
from ..views.terminal import console

PLANTING = Budget(examples=60, seconds=8.0)
"""The programs that show which parts of a pass are reached."""

LARGEST_MEDIAN, LARGEST_OF_MOST, MOST = 2, 6, 0.95
"""The median of the sizes of reproducers, and the size of this share of them, in operators."""

UNTESTED = ("plan-splits",)
"""Passes that only decide. All their decisions are right."""

TRIED = ("differentiate", "recompute", "unfuse")
"""Passes that the default pipeline does not run, and that keep what a program computes. Bugs in
them are planted too. (train turns a program into another one, so nothing says what is right.)"""

NAMES = (*(each for each in STAGE if each not in UNTESTED), *TRIED)
"""The passes that bugs are planted in."""


def trouble_on_clean_passes(folder: Path) -> str:
    """The problem of a saved reproducer on the recorded passes without a bug; "" if there is none.

    The recorded passes are found by name among abele's own.
    """
    try:
        program, record = Program.load(folder)
        written = cast("list[dict[str, str]]", record.get("passes", []))
        passes = [
            each["pipeline"] if "pipeline" in each else parse_pipeline(each["spec"], PASSES)[0]
            for each in written
        ]
        first = cast("int | None", record.get("first"))
        wrong = Judge(PassList(tuple(passes), first), CheckSettings()).wrong(program)
    except Refused as refused:
        return f"refused: {refused}"
    except (InputError, AtFault, StrategyFailed) as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return "" if wrong is None else f"{wrong.kind}: {wrong.text}"


def share_within(sizes: Sequence[int], size: int) -> float:
    """The share of reproducers of at most this size."""
    return sum(each <= size for each in sizes) / len(sizes) if sizes else 1.0


def size_of_most(sizes: Sequence[int]) -> int:
    """The size that MOST of the reproducers do not exceed; 0 if there are none."""
    ordered = sorted(sizes)
    return ordered[min(len(ordered) - 1, int(MOST * len(ordered)))] if ordered else 0


Done = tuple[Mutant, Trial]


def cells(done: Sequence[Done]) -> list[str]:
    """The figures of some trials, as the columns of the table."""
    found = [(m, t) for m, t in done if t.verdict == "found"]
    sized = [t for _, t in found if t.operators is not None]
    sizes = [t.operators for t in sized if t.operators is not None]
    named = [m.subject == t.blamed for m, t in found if t.operators is not None]
    return [
        f"{len(done)}",
        f"{len(found)}",
        f"{median(sizes):g}" if sizes else "-",
        f"{size_of_most(sizes)}" if sizes else "-",
        f"{max(sizes)}" if sizes else "-",
        f"{sum(named)} of {len(named)}",
        f"{sum(not t.clean for t in sized)} of {len(sized)}",
        f"{median(t.seconds for _, t in found):.1f}" if found else "-",
        f"{median(t.total - t.seconds for _, t in found):.1f}" if found else "-",
    ]


COLUMNS = (
    "planted",
    "found",
    "median",
    "95 %",
    "largest",
    "pass named",
    "clean",
    "CPU s to find",
    "after",
)


def table_of(done: Sequence[Done]) -> Table:
    """A table with one row per pass."""
    table = Table(title="bugs in passes, and their reproducers", title_justify="left")
    table.add_column("pass")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for subject in dict.fromkeys(m.subject for m, _ in done):
        table.add_row(subject, *cells([each for each in done if each[0].subject == subject]))
    table.add_section()
    table.add_row("all", *cells(done))
    return table


def line_of(name: str, done: Sequence[Done]) -> str:
    """The figures of a pass in one line."""
    figures = ", ".join(f"{what} {cell}" for what, cell in zip(COLUMNS, cells(done), strict=True))
    return f"{name}: {figures}"


def share_of_rest(end: float, passes: int) -> float:
    """The end of the first pass's even share of the time until `end`.

    Both are in seconds of monotonic(). Time that a pass does not use goes to the others.
    """
    now = monotonic()
    return now + (end - now) / passes


def trials_until(
    end: float, name: str, classes: Sequence[str], limit: int, budget: Budget
) -> Iterator[Done]:
    """Try bugs of a pass one after the other. No trial begins after the end, and none is cut."""
    if monotonic() >= end:
        return
    (right,) = parse_pipeline(name, PASSES)
    places = plant(right, "", PLANTING)
    chosen = chosen_mutants(places, classes, limit, budget.seed)
    for each in trials_among(places, chosen, budget, trouble_on_clean_passes):
        yield each
        if monotonic() >= end:
            return


def planted(
    limit: Annotated[int, typer.Option("--mutants", min=1, help="Bugs per pass.")] = 20,
    seconds: Annotated[float, typer.Option(min=0.1, help="CPU seconds to find a bug.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of programs and bugs.")] = 0,
    only: Annotated[str, typer.Option(help="Only these passes, by name.")] = "",
    classes: Annotated[
        str, typer.Option(help="Only bugs of these classes, as `abele mutate --only` takes them.")
    ] = "",
    stop_after: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            help="Clock seconds after which no further bug is tried. Each pass gets an even share "
            "of what is left.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--json", help="Write each result here, one per line.")
    ] = None,
) -> None:
    """Print sizes and blame. Exit with status 1 if a reproducer is not clean or too many are large.

    A bug that no program shows in the time is not counted as found. A pass's figures are printed
    as soon as its bugs are tried, and the table at the end. Ctrl-C ends the trials, and prints the
    table of those that are done.
    """
    budget = Budget(seconds=seconds, seed=seed)
    names = names_in("--only", only, NAMES) if only else NAMES
    check_files({}, {"--json": output})
    wanted = tuple(filter(None, classes.split(",")))
    end = inf if stop_after is None else monotonic() + stop_after
    done: list[Done] = []
    terminal = console()
    try:
        for at, name in enumerate(names):
            of_pass: list[Done] = []
            for each in trials_until(
                share_of_rest(end, len(names) - at), name, wanted, limit, budget
            ):
                of_pass.append(each)
                done.append(each)
                if output is not None:
                    with output.open("a") as stream:
                        line = {"mutant": each[0].name, **asdict(each[1])}
                        stream.write(json.dumps(line) + "\n")
            if of_pass:
                typer.echo(line_of(name, of_pass))
    except KeyboardInterrupt:
        typer.echo("interrupted; the table holds what is done", err=True)
    terminal.print(table_of(done))
    sizes = [t.operators for _, t in done if t.operators is not None]
    large = share_within(sizes, LARGEST_OF_MOST) < MOST
    large = large or (bool(sizes) and median(sizes) > LARGEST_MEDIAN)
    if large or any(trial.clean for _, trial in done):
        raise typer.Exit(1)


if __name__ == "__main__":
    run_script(planted)
