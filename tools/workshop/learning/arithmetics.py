"""A table of what a network learns in several arithmetics: float32, and float16 of five kinds.

python -m abele.tools.workshop.learning.arithmetics [--rates 0.1,0.01,0.001] [--seeds 3]
[--json FILE] [--png FILE]

The network is a small one on scikit-learn's digits. At a small learning rate, most updates are
smaller than half a step of their weight. Float16 that is rounded to nearest then loses them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, sqrt
from pathlib import Path
from statistics import mean, stdev
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import onnx
import typer
from threadpoolctl import threadpool_limits

from ....ir.support.errors import InputError
from ....passes.gradients.loss_scale import Scaling
from ...driver.compile import compile_model
from ...driver.executable import Executable
from ...driver.files import check_files, write_text
from ...driver.request import Precision, Rounding
from ...driver.samples import samples_of
from ...driver.trainer import Trainer
from ...driver.training import Training
from ...driver.validation import Validation
from ...views.figure import new_figure, write_figure
from ...views.script import run_script
from ...views.table import figure_table
from ...views.terminal import console
from .data import digits
from .networks import Network

BATCH = 16
RUN = 16
"""Steps in a run of the program."""

TARGET = "tiny:1"

POINTS = 40
"""Points of a curve: each is the mean loss of the steps since the last one, and an accuracy."""


@dataclass(frozen=True)
class Arithmetic:
    """An arithmetic of training.

    Attributes:
        precision, rounding, partials: as of compile_model.
        loss_scale, scaling: of the training.
    """

    name: str
    precision: Precision | None = None
    rounding: Rounding | None = None
    loss_scale: float = 1.0
    partials: str = ""
    scaling: Scaling = "static"


ARITHMETICS = (
    Arithmetic("float32"),
    Arithmetic("float16, float32 weights, loss scale 128", "float16", None, 128.0),
    Arithmetic("the same, with sums in float16 (fp16.16)", "float16", None, 128.0, "float16"),
    Arithmetic("float16, float32 weights, unit scaling", "float16", scaling="unit"),
    Arithmetic("float16, to nearest", "pure-float16", "nearest"),
    Arithmetic("float16, stochastic", "pure-float16", "stochastic"),
)

EPOCHS = {0.1: 20, 0.01: 60, 0.001: 200}
"""By learning rate, the epochs that float32 needs."""


@dataclass(frozen=True)
class Curve:
    """The training with one seed.

    Attributes:
        steps: the steps after which there is a point.
        losses: the mean loss of the steps since the point before.
        accuracies: on samples held out.
    """

    steps: list[int]
    losses: list[float]
    accuracies: list[float]


@dataclass(frozen=True)
class Learned:
    """What an arithmetic learns at a learning rate, with one curve per seed."""

    arithmetic: str
    rate: float
    curves: list[Curve]
    seconds: float

    @property
    def steps(self) -> int:
        """How many steps a training has."""
        return self.curves[0].steps[-1]

    @property
    def accuracies(self) -> list[float]:
        """The accuracies at the end, one per seed."""
        return [each.accuracies[-1] for each in self.curves]


def network(shape: tuple[int, ...], classes: int, seed: int) -> onnx.ModelProto:
    """A strided convolution and a linear layer."""
    made = Network(shape, seed)
    made.convolution(8, 3, stride=2)
    made.relu()
    made.dense(classes)
    return made.model()


def learn(how: Arithmetic, rate: float, epochs: int, seed: int) -> Curve:
    """The training with a seed."""
    data = digits(seed)
    model = network(data.x.shape[1:], int(data.y.max()) + 1, seed)

    def program(training: Training) -> Executable:
        return compile_model(
            model,
            TARGET,
            batch=BATCH,
            precision=how.precision,
            rounding=how.rounding,
            partials=how.partials,
            train=training,
            cache=False,
        )

    scale, scaling = how.loss_scale, how.scaling
    exe = program(Training(learning_rate=rate, loss_scale=scale, scaling=scaling, steps=RUN))
    judge = program(Training(update=False, outputs=True, reduction="none"))
    samples, held = (
        samples_of({"x": x, "target": y}, judge.inputs, "digits")
        for x, y in ((data.x, data.y), (data.held_x, data.held_y))
    )
    steps = ceil(epochs * samples.count / BATCH / RUN) * RUN
    exe.seed_random(seed)
    run, validation = Trainer(exe, samples, seed), Validation(judge, held)
    found, recent = Curve([], [], []), list[float]()
    for point in range(1, POINTS + 1):
        while run.reached.step < steps * point / POINTS:
            recent.append(run.step())
        if recent:
            accuracy = run.judge(validation).accuracy
            assert accuracy is not None
            found.steps.append(run.reached.step)
            found.losses.append(mean(recent))
            found.accuracies.append(accuracy)
            recent.clear()
    return found


def learned(rates: Sequence[float], seeds: int) -> Iterator[Learned]:
    """What each arithmetic learns at each rate."""
    for rate in rates:
        for how in ARITHMETICS:
            begin = perf_counter()
            curves = [learn(how, rate, EPOCHS[rate], seed) for seed in range(seeds)]
            yield Learned(how.name, rate, curves, perf_counter() - begin)


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean of some values."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0


STYLES = (
    {"color": "black"},
    {"color": "tab:blue", "dashes": (6, 3)},
    {"color": "tab:red"},
    {"color": "tab:green", "dashes": (2, 2)},
    {"color": "tab:orange", "dashes": (4, 1)},
    {"color": "tab:purple"},
)
"""How the lines are drawn: curves that coincide can still be told apart."""


def draw(path: Path, found: Sequence[Learned]) -> None:
    """Draw loss and accuracy over steps: the mean of all seeds, and all between their extremes.

    Raises InputError if the file cannot be written, or if matplotlib is not installed.
    """
    rates = list(dict.fromkeys(each.rate for each in found))
    figure = new_figure(figsize=(1 + 3.7 * len(rates), 6), layout="constrained")
    panels: Any = figure.subplots(2, len(rates), sharex="col", squeeze=False)
    for column, rate in enumerate(rates):
        for each, style in zip((f for f in found if f.rate == rate), STYLES, strict=False):
            steps = each.curves[0].steps
            for axes, values in (
                (panels[0, column], [curve.losses for curve in each.curves]),
                (panels[1, column], [curve.accuracies for curve in each.curves]),
            ):
                rows = np.array(values)
                axes.plot(steps, rows.mean(0), linewidth=1.5, label=each.arithmetic, **style)
                extremes = rows.min(0), rows.max(0)
                axes.fill_between(steps, *extremes, color=style["color"], alpha=0.12, linewidth=0)
        panels[0, column].set_title(f"learning rate {rate:g}")
        panels[0, column].set_yscale("log")
        panels[1, column].set_xlabel("step")
        panels[1, column].locator_params(axis="x", nbins=5)
    panels[0, 0].set_ylabel("loss")
    panels[1, 0].set_ylabel("accuracy on samples held out")
    for axes in panels.ravel():
        axes.grid(visible=True, alpha=0.2)
    panels[1, -1].legend(loc="lower right", fontsize=8)
    write_figure(path, figure)


def arithmetics(
    rates: Annotated[
        str, typer.Option(help=f"Learning rates, of {', '.join(map(str, EPOCHS))}.")
    ] = ",".join(map(str, EPOCHS)),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 3,
    report: Annotated[Path | None, typer.Option("--json", help="Write all figures here.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw loss and accuracy over steps.")] = None,
) -> None:
    """Train a network on scikit-learn's digits in several arithmetics, and print how well it
    does."""
    check_files({}, {"--json": report, "--png": png})
    if png is not None:
        new_figure(figsize=(1, 1))
    wanted = [_rate(each) for each in rates.split(",")]
    table = figure_table(
        f"mean of {seeds} seeds",
        ("learning rate, steps", "arithmetic", "accuracy", "standard error", "each seed", "s"),
        ("learning rate, steps", "arithmetic"),
    )
    found: list[Learned] = []
    with threadpool_limits(1):
        for each in learned(wanted, seeds):
            found.append(each)
            table.add_row(
                f"{each.rate:g}, {each.steps:,}",
                each.arithmetic,
                f"{mean(each.accuracies):.2%}",
                f"{standard_error(each.accuracies):.2%}",
                " ".join(f"{value:.2%}" for value in each.accuracies),
                f"{each.seconds:.0f}",
            )
            typer.echo(f"{each.rate:g} {each.arithmetic}: {mean(each.accuracies):.2%}", err=True)
    console().print(table)
    if report is not None:
        rows = [
            {"steps": each.steps, "accuracies": each.accuracies, **asdict(each)} for each in found
        ]
        write_text(report, json.dumps(rows, indent=2) + "\n")
    if png is not None:
        draw(png, found)


def _rate(text: str) -> float:
    known = {str(each): each for each in EPOCHS}
    if text not in known:
        raise InputError(f"--rates {text!r}; need one of {', '.join(known)}")
    return known[text]


if __name__ == "__main__":
    run_script(arithmetics)
