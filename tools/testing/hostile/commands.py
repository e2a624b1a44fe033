"""What `abele fuzz` does about hostile inputs and interrupted commands, and what it prints."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import cast

import typer
from rich.table import Table
from typer.core import TyperGroup

from ...views.terminal import console
from ...views.user_errors import CHECK_FAILED
from . import interrupted, kinds, run
from .outcome import VERDICTS
from .preload import preload
from .reading import prepare

DEFAULT_SECONDS = 60.0
"""Seconds for all kinds, if neither seconds nor a number of inputs is given."""


def replay_failure(context: typer.Context, folder: Path) -> None:
    """Run the hostile input of a saved failure again. Exits with 1 if it fails again."""
    terminal = console()
    outcome = run.replay(folder, _preloaded(context))
    terminal.print(f"{outcome.verdict} {outcome.site}", highlight=False)
    terminal.print(outcome.message, highlight=False)
    raise typer.Exit(CHECK_FAILED if outcome.failed else 0)


def damage_inputs(
    context: typer.Context,
    names: tuple[str, ...],
    seed: int | None,
    output: Path,
    examples: int | None,
    seconds: float | None,
    jobs: int,
    *,
    reads_only: bool,
) -> None:
    """Give commands damaged inputs of some kinds. Exits with 1 if any is neither accepted nor
    refused with a message.

    Args:
        reads_only: whether models are read and led to nn, and no command runs.
    """
    terminal = console()
    chosen = list(kinds.kinds(names, reads_only))
    commands = _preloaded(context)
    if reads_only:
        prepare()
    number = Random().randrange(1 << 32) if seed is None else seed
    progress = output / run.progress_file(number)
    tally = run.Tally.read(progress) if progress.exists() else run.Tally(number)
    if examples is None and seconds is None:
        seconds = DEFAULT_SECONDS
    done = sum(tally.done.values())
    after = f" after {done:,} earlier ones" if done else ""
    terminal.print(f"seed {number}: hostile inputs of {len(chosen)} kinds{after}")
    found = run.run_hostile(
        chosen,
        tally,
        commands,
        output,
        examples=examples,
        seconds=seconds,
        jobs=jobs,
        reads_only=reads_only,
    )
    for each in found:
        line = f"{each.verdict} {each.site}: {each.kind} {each.number}: {each.folder}"
        terminal.print(line, highlight=False, soft_wrap=True)
    terminal.print(_table_of(tally))
    for each in sorted(tally.failures, key=lambda failure: -failure.count):
        line = f"{each.count:5} {each.verdict} {each.site}: {each.folder}"
        terminal.print(line, highlight=False, soft_wrap=True)
    if tally.failures:
        raise typer.Exit(CHECK_FAILED)


def interrupt_commands(context: typer.Context, number: int, seed: int | None) -> None:
    """Stop writing commands at random moments. Exits with 1 if one leaves neither its old outputs
    nor its new ones."""
    terminal = console()
    seed = Random().randrange(1 << 32) if seed is None else seed
    commands = _preloaded(context)
    terminal.print(f"seed {seed}: {number:,} interruptions")
    found = interrupted.interrupt(commands, number, seed)
    table = Table(title=f"interruptions, seed {seed}", title_justify="left")
    table.add_column("")
    for way in (*interrupted.WAYS, "lost"):
        table.add_column(way, justify="right")
    for name, counts in sorted(found.counts.items()):
        lost = sum(each.partition(" ")[0] == name for each in found.problems)
        figures = (*(counts[way] for way in interrupted.WAYS), lost)
        table.add_row(name, *(f"{figure:,}" if figure else "-" for figure in figures))
    terminal.print(table)
    for each in found.problems:
        terminal.print(each, highlight=False, soft_wrap=True)
    if found.problems:
        raise typer.Exit(CHECK_FAILED)


def _preloaded(context: typer.Context) -> TyperGroup:
    """The group of all commands, with everything loaded that they need."""
    commands = cast(TyperGroup, context.find_root().command)
    preload(commands)
    return commands


def _table_of(tally: run.Tally) -> Table:
    table = Table(title=f"hostile inputs, seed {tally.seed}", title_justify="left")
    table.add_column("")
    for name in ("inputs", *VERDICTS, "slowest", "largest"):
        table.add_column(name, justify="right")
    for kind, counts in tally.counts.items():
        figures = [sum(counts.values()), *(counts[each] for each in VERDICTS)]
        shown = [f"{figure:,}" if figure else "-" for figure in figures]
        worst = f"{tally.slowest[kind]:.1f} s", f"{tally.largest[kind] >> 20:,} MB"
        table.add_row(kind, *shown, *worst)
    total = [sum(c[each] for c in tally.counts.values()) for each in VERDICTS]
    shown = [f"{figure:,}" if figure else "-" for figure in (sum(total), *total)]
    table.add_section()
    table.add_row("all", *shown, "", "")
    return table
