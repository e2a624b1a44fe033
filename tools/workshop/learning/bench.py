"""A table of the scores of networks trained on real data.

abele bench learning [--networks digits,mnist] [--target tiny:16] [--json learning.json]

python -m abele.tools.workshop.learning.bench --choose compares learning rates on a part of the
training samples, so that no choice depends on the samples that are held out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer
from threadpoolctl import threadpool_limits

from ...bench.named import names_in
from ...driver.files import check_files, write_text
from ...views.script import run_script
from ...views.table import figure_table
from ...views.terminal import console
from .data import NotInstalled
from .tasks import TASKS, learn, score, typical

TIMES = (0.4, 1.0, 2.0)
"""The learning rates that are compared, as multiples of the task's learning rate."""

SEEDS = (0, 1, 2)
"""Seeds of weights, of the order of samples and of the choice of held-out samples. The median
counts.
"""


def learning(
    networks: Annotated[str | None, typer.Option(help="Names of tasks, by commas.")] = None,
    target: Annotated[str | None, typer.Option(help="A preset machine.")] = None,
    report: Annotated[Path | None, typer.Option("--json", help="Write all figures here.")] = None,
    choose: Annotated[
        bool,
        typer.Option("--choose", help="Compare learning rates, without the samples held out."),
    ] = False,
) -> None:
    """Train a network on each real data set that is installed, and print how well it does."""
    names = list(TASKS) if networks is None else names_in("--networks", networks, TASKS)
    check_files({}, {"--json": report})
    if choose:
        _choose(names, target)
        return
    columns = ("learning rate", "steps", "batch", "s a step", "loss", "accuracy", "AUC")
    table = figure_table(
        f"median of {len(SEEDS)} seeds",
        ("data", *columns, "each seed", "at least", "published"),
        ("data",),
    )
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
    console().print(table)
    for name in found:
        typer.echo(f"{name}: {TASKS[name].source}")
    if report is not None:
        write_text(report, json.dumps(found, indent=2) + "\n")


def _choose(names: Sequence[str], target: str | None) -> None:
    """Print the mean loss and score of some learning rates, on a part of the training data."""
    table = figure_table(
        f"learning rates, mean of {len(SEEDS)} seeds", ("data", "rate", "loss", "score"), ("data",)
    )
    for name in names:
        task = TASKS[name]
        for times in TIMES:
            rate = task.rate * times
            with threadpool_limits(1):
                runs = [learn(task.within(rate), seed, target) for seed in SEEDS]
            losses, scores = [r.figures.loss for r in runs], [score(task, r) for r in runs]
            table.add_row(name, f"{rate:g}", f"{mean(losses):.4f}", f"{mean(scores):.4f}")
        table.add_section()
    console().print(table)


if __name__ == "__main__":
    run_script(learning)
