"""A table of what a network learns in several arithmetics: float32, and float16 of four kinds.

python -m abele.tools.workshop.learning.arithmetics [--rates 0.1,0.01,0.001] [--seeds 3]
[--json FILE]

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
from typing import Annotated

import onnx
import typer
from threadpoolctl import threadpool_limits

from ....ir.support.errors import InputError
from ...driver.compile import compile_model
from ...driver.executable import Executable
from ...driver.files import check_files, write_text
from ...driver.request import Precision, Rounding
from ...driver.samples import samples_of
from ...driver.trainer import Trainer
from ...driver.training import Training
from ...driver.validation import Validation
from ...views.script import run_script
from ...views.table import figure_table
from ...views.terminal import console
from .data import digits
from .networks import Network

BATCH = 16
RUN = 16
"""Steps in a run of the program."""

TARGET = "tiny:1"


@dataclass(frozen=True)
class Arithmetic:
    """An arithmetic of training.

    Attributes:
        precision, rounding, partials: as of compile_model.
        loss_scale: of the training.
    """

    name: str
    precision: Precision | None = None
    rounding: Rounding | None = None
    loss_scale: float = 1.0
    partials: str = ""


ARITHMETICS = (
    Arithmetic("float32"),
    Arithmetic("float16, float32 weights, loss scale 128", "float16", None, 128.0),
    Arithmetic("the same, with sums in float16 (fp16.16)", "float16", None, 128.0, "float16"),
    Arithmetic("float16, to nearest", "pure-float16", "nearest"),
    Arithmetic("float16, stochastic", "pure-float16", "stochastic"),
)

EPOCHS = {0.1: 20, 0.01: 60, 0.001: 200}
"""By learning rate, the epochs that float32 needs."""


@dataclass(frozen=True)
class Learned:
    """The accuracies of an arithmetic at a learning rate, one per seed, on samples held out."""

    arithmetic: str
    rate: float
    steps: int
    accuracies: list[float]
    seconds: float


def network(shape: tuple[int, ...], classes: int, seed: int) -> onnx.ModelProto:
    """A strided convolution and a linear layer."""
    made = Network(shape, seed)
    made.convolution(8, 3, stride=2)
    made.relu()
    made.dense(classes)
    return made.model()


def learn(how: Arithmetic, rate: float, epochs: int, seed: int) -> tuple[float, int]:
    """The accuracy on samples held out after training with a seed, and the number of steps."""
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

    exe = program(Training(learning_rate=rate, loss_scale=how.loss_scale, steps=RUN))
    judge = program(Training(update=False, outputs=True, reduction="none"))
    samples, held = (
        samples_of({"x": x, "target": y}, judge.inputs, "digits")
        for x, y in ((data.x, data.y), (data.held_x, data.held_y))
    )
    steps = ceil(epochs * samples.count / BATCH / RUN) * RUN
    exe.seed_random(seed)
    run = Trainer(exe, samples, seed)
    while run.reached.step < steps:
        run.step()
    found = run.judge(Validation(judge, held)).accuracy
    assert found is not None
    return found, steps


def learned(rates: Sequence[float], seeds: int) -> Iterator[Learned]:
    """What each arithmetic learns at each rate."""
    for rate in rates:
        for how in ARITHMETICS:
            begin = perf_counter()
            runs = [learn(how, rate, EPOCHS[rate], seed) for seed in range(seeds)]
            found = [accuracy for accuracy, _ in runs]
            yield Learned(how.name, rate, runs[0][1], found, perf_counter() - begin)


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean of some values."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0


def arithmetics(
    rates: Annotated[
        str, typer.Option(help=f"Learning rates, of {', '.join(map(str, EPOCHS))}.")
    ] = ",".join(map(str, EPOCHS)),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 3,
    report: Annotated[Path | None, typer.Option("--json", help="Write all figures here.")] = None,
) -> None:
    """Train a network on scikit-learn's digits in several arithmetics, and print how well it
    does."""
    check_files({}, {"--json": report})
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
        write_text(report, json.dumps([asdict(each) for each in found], indent=2) + "\n")


def _rate(text: str) -> float:
    known = {str(each): each for each in EPOCHS}
    if text not in known:
        raise InputError(f"--rates {text!r}; need one of {', '.join(known)}")
    return known[text]


if __name__ == "__main__":
    run_script(arithmetics)
