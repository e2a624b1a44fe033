"""A table of what networks learn from real data.

abele bench learning [--networks digits,mnist] [--target tiny:16] [--json learning.json]
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from threadpoolctl import threadpool_limits

from ....ir.errors import InputError
from ....ir.suggestions import suggestion
from ...driver.files import write_text
from ...views.terminal import wide_enough
from .data import NotInstalled
from .tasks import TASKS, learn, score, typical

SEEDS = (0, 1, 2)
"""Seeds of weights, of the order of samples and of what is held out. The median counts."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def learning(
    networks: Annotated[str | None, typer.Option(help="Names of tasks, by commas.")] = None,
    target: Annotated[str | None, typer.Option(help="A preset machine.")] = None,
    report: Annotated[Path | None, typer.Option("--json", help="Write all figures here.")] = None,
) -> None:
    """Train a network on each real data set that is installed, and print how well it does."""
    names = list(TASKS) if networks is None else networks.split(",")
    for name in names:
        if name not in TASKS:
            raise InputError(f"--networks: no task {name!r}{suggestion(name, TASKS)}")
    table = Table(title=f"median of {len(SEEDS)} seeds", title_justify="left")
    for column in ("data", "learning rate", "steps", "batch", "s a step", "loss"):
        table.add_column(column, justify="left" if column == "data" else "right")
    for column in ("accuracy", "AUC", "each seed", "at least", "published"):
        table.add_column(column, justify="right")
    found: dict[str, Any] = {}
    for name in names:
        task = TASKS[name]
        try:
            with threadpool_limits(1):
                runs = [learn(task, seed, target) for seed in SEEDS]
        except NotInstalled as error:
            typer.echo(f"{name}: left out: {error}")
            continue
        found[name] = [asdict(each) for each in runs]
        middle = sorted(runs, key=lambda each: score(task, each))[len(runs) // 2]
        figures = middle.figures
        table.add_row(
            name,
            f"{task.rate:g}, {task.shape}",
            f"{middle.steps:,}",
            str(task.batch),
            f"{middle.seconds / middle.steps:.3f}",
            f"{middle.first_loss:.3f} -> {middle.last_loss:.3f}",
            "" if figures.accuracy is None else f"{figures.accuracy:.2%}",
            "" if figures.auc is None else f"{figures.auc:.4f}",
            " ".join(f"{score(task, each):.4f}" for each in runs),
            f"{task.bar:g}" + ("" if typical(task, runs) >= task.bar else " (missed)"),
            task.baseline,
        )
    wide_enough(table).print(table)
    for name in found:
        typer.echo(f"{name}: {TASKS[name].source}")
    if report is not None:
        write_text(report, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    app()
