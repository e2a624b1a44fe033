"""The work of `abele train`: read files, compile, do steps, and write the results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from ...dialects import nn
from ...dialects.random_states import SEED, STEP
from ...ir.support.errors import InputError
from ...passes.train import RATE, Train
from ..driver.arrays import Array, read_arrays
from ..driver.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from ..driver.compile import compiled
from ..driver.example import Example
from ..driver.executable import Executable
from ..driver.extensions.loaded import Extensions
from ..driver.files import PROGRAM_FILE, check_files
from ..driver.health.recorder import HealthRecorder
from ..driver.program import ReadProgram
from ..driver.samples import Samples, samples_of
from ..driver.schedules import SHAPES, Schedule, schedule
from ..driver.trainer import NonFinite, Trainer
from ..driver.training import asked_training
from ..driver.validation import Validation
from ..importers.front_ends import ONNX, front_end_at, listed
from ..views.loss_curve import check_curve, write_curve
from ..views.report.health import check_health_file, overflow_line, write_health
from ..views.terminal import Bar, counting_bar
from ..views.user_errors import print_error_line
from .compiling import Compilation
from .signals import delayed

if TYPE_CHECKING:
    from ..importers.onnx.trained import TrainedModel

REPORTS = 10
"""How many lines of progress are printed, unless --report says after how many steps."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The options of `abele train`, which its help explains."""

    model: str
    data: Path
    steps: int | None
    epochs: int | None
    curves: Sequence[Path]
    health: Sequence[Path]
    health_every: int | None
    checkpoint: Path | None
    every: int | None
    resume: Path | None
    seed: int
    rates: str | None
    validation: float | None
    validation_data: Path | None
    report: int | None
    non_finite: NonFinite
    save_onnx: Path | None

    def check(self, how: Compilation) -> None:
        """Raise InputError for options that contradict each other, for missing files, and for files
        that cannot be written."""
        if self.every is not None and self.checkpoint is None:
            raise InputError("--every without --checkpoint; need both")
        if (self.steps is None) == (self.epochs is None):
            raise InputError("need --steps or --epochs, one of the two")
        if self.validation is not None and self.validation_data is not None:
            raise InputError("--validation and --validation-data; need one of the two")
        if self.health_every is not None and not self.health:
            raise InputError("--health-every without --health; need both")
        for each in self.curves:
            check_curve(each)
        for each in self.health:
            check_health_file(each)
        if self.save_onnx is not None and self.save_onnx.suffix not in ONNX.suffixes:
            ends = listed(ONNX.suffixes)
            raise InputError(f"{self.save_onnx}: --save-onnx; need a file that ends in {ends}")
        check_files(
            {
                "the model": Path(self.model),
                "--data": self.data,
                "--validation-data": self.validation_data,
                **how.files,
            },
            {
                **{f"--curve {each}": each for each in self.curves},
                **{f"--health {each}": each for each in self.health},
                "--checkpoint": self.checkpoint,
                "--save-onnx": self.save_onnx,
            },
        )

    def total(self, samples: Samples, of_run: int, done: int) -> int:
        """The number of steps in all, including those that are done.

        Raises InputError if no run is left, or not a whole number of runs.

        Args:
            of_run: how many steps a run of the program does.
        """
        total = self.steps or ceil((self.epochs or 0) * samples.count / samples.batch)
        if (total - done) % of_run:
            given = f"--steps {total}" if self.steps else f"--epochs {self.epochs}: {total} steps,"
            raise InputError(
                f"{given} with {of_run} steps in a run; need a multiple of {of_run}"
                + ("" if self.resume is None else f" after the {done} steps of {self.resume}")
            )
        if self.resume is not None and done >= total:
            raise InputError(f"{self.resume}: {done} steps are done; need --steps above that")
        return total


@dataclass(frozen=True)
class Prepared:
    """Compiled programs and samples, ready to train.

    Attributes:
        total: the number of steps, earlier ones included.
        first: the checkpoint to continue from.
        judge: the validation, if there is one.
        model: the model that --save-onnx writes with the trained weights, if that is asked for.
    """

    exe: Executable
    samples: Samples
    total: int
    first: Checkpoint | None
    rate: Schedule | None
    judge: Validation | None
    model: TrainedModel | None


def prepared(wanted: Wanted, how: Compilation, extensions: Extensions) -> Prepared:
    """Read the files and compile the programs. Raises InputError for what does not fit."""
    # Files are read before the model is compiled, which may take long.
    first = None if wanted.resume is None else read_checkpoint(wanted.resume)
    arrays = read_arrays(wanted.data)
    held_arrays = None if wanted.validation_data is None else read_arrays(wanted.validation_data)
    example = Example(
        {name: (how.batch, *array.shape[1:]) for name, array in arrays.items() if array.ndim},
        str(wanted.data),
    )
    sources = Sources(wanted.model, how, extensions, example)
    exe = sources.training(wanted.rates is not None)
    samples, held = _samples(wanted, exe, arrays, held_arrays, first)
    total = wanted.total(samples, exe.training.steps, 0 if first is None else first.step)
    rate = None
    if any(each.name == RATE for each in exe.inputs):
        own = exe.training.rates or SHAPES[0]
        shape = own if wanted.rates is None else wanted.rates
        rate = schedule(shape, exe.training.learning_rate, total)
    judge = None if held is None else Validation(sources.judging(), held)
    model = None if wanted.save_onnx is None else sources.trained(exe)
    return Prepared(exe, samples, total, first, rate, judge, model)


def _samples(
    wanted: Wanted,
    exe: Executable,
    arrays: Mapping[str, Array],
    held: Mapping[str, Array] | None,
    first: Checkpoint | None,
) -> tuple[Samples, Samples | None]:
    """The samples to learn from, and those for validation, if there are any."""
    inputs = [each for each in exe.inputs if each.name != RATE]
    if exe.training.steps > 1:
        inputs = [replace(each, shape=each.shape[1:]) for each in inputs]
    samples = samples_of(arrays, inputs, str(wanted.data))
    if held is not None:
        return samples, samples_of(held, inputs, str(wanted.validation_data))
    if wanted.validation is not None:
        return samples.split(wanted.validation, wanted.seed if first is None else first.seed)
    return samples, None


def train(wanted: Wanted, ready: Prepared) -> Trainer:
    """Do the steps, and write checkpoints and curves, also if training is interrupted."""
    with counting_bar(ready.total) as bar:
        health = None
        if wanted.health:
            every = wanted.health_every or ceil(ready.total / REPORTS)
            health = HealthRecorder(ready.exe, every)
        run = Trainer(
            ready.exe,
            ready.samples,
            wanted.seed,
            rate=ready.rate,
            non_finite=wanted.non_finite,
            warn=bar.line,
            health=health,
        )
        if ready.first is not None:
            run.resume(ready.first, str(wanted.resume))

        def write() -> None:
            if wanted.checkpoint is not None and run.rows:
                write_checkpoint(wanted.checkpoint, run.checkpoint)

        try:
            with _timed_run(ready.exe):
                _do_steps(wanted, ready, run, bar, write)
        except (KeyboardInterrupt, SystemExit):
            saved = wanted.checkpoint if run.rows else None
            goes_on = f"; --resume {saved} goes on" if saved else ""
            print_error_line(f"stopped after step {run.reached.step}{goes_on}")
            raise
        finally:
            with delayed():
                write()
                for each in wanted.curves if run.rows else ():
                    write_curve(each, run.rows)
                records = [] if health is None else health.records
                for each in wanted.health if records else ():
                    write_health(each, ready.exe, records, run.rows)
        if line := overflow_line(ready.exe, records):
            bar.line(line)
    return run


@contextmanager
def _timed_run(exe: Executable) -> Generator[None]:
    """Let the stage of running be that of all steps, not of the last one."""
    start = perf_counter()
    loaded = exe.stages.seconds.get("load", 0.0)
    try:
        yield
    finally:
        load = exe.stages.seconds.get("load", 0.0) - loaded
        exe.stages.seconds["run"] = perf_counter() - start - load


def _do_steps(
    wanted: Wanted, ready: Prepared, run: Trainer, bar: Bar, write: Callable[[], None]
) -> None:
    """Do steps up to the last one, and print lines of progress."""
    total, every, judge = ready.total, wanted.every, ready.judge
    report = wanted.report or ceil(total / REPORTS)
    recent: list[float] = []
    while run.reached.step < total:
        before = run.reached.step
        recent.append(run.step())
        done = run.reached.step
        bar.advance(done, f"loss {recent[-1]:.6g}")
        if every is not None and done // every > before // every:
            write()
        if done // report > before // report or done == total:
            text = f"step {done} of {total}: loss {sum(recent) / len(recent):.6g}"
            if judge is not None:
                text += f"; validation {run.judge(judge)}"
            bar.line(text)
            recent.clear()


@dataclass
class Sources:
    """Compiles the programs that training needs from one model.

    Attributes:
        example: gives sizes to free dimensions.
        given: the training options, as given.
        asked: the same options, completed for this model.
        states: the states of the model itself, before training adds its own.
    """

    model: str
    how: Compilation
    extensions: Extensions
    example: Example | None = None
    given: Train | None = None
    asked: Train | None = None
    states: list[str] = field(default_factory=list[str])

    @property
    def _is_program(self) -> bool:
        return self.model.endswith(PROGRAM_FILE)

    def training(self, scheduled: bool) -> Executable:
        """The program that trains."""
        if self._is_program:
            if scheduled:
                raise InputError(f"{self.model}: --schedule; need the model, to compile it again")
            return self._compiled(None)
        self.given = replace(self.how, train=True).asked
        assert self.given is not None
        if scheduled:
            self.given = replace(self.given, schedule=True)
        return self._compiled(self.given)

    def judging(self) -> Executable:
        """The program that computes the losses of validation with the same weights."""
        if self._is_program:
            raise InputError(f"{self.model}: validation: need the model, to compile it again")
        assert self.asked is not None
        return self._compiled(
            replace(
                self.asked,
                update=False,
                outputs=True,
                reduction="none",
                schedule=False,
                steps=1,
            )
        )

    def trained(self, exe: Executable) -> TrainedModel:
        """The model, to be written with other weights."""
        if front_end_at(self.model) is not ONNX:
            raise InputError(f"{self.model}: --save-onnx; need an {listed(ONNX.suffixes)} model")
        # Training reads no ONNX model if it goes on from a program.
        from ..importers.onnx.trained import TrainedModel  # noqa: PLC0415

        # The states of the optimiser and of dropout do not belong to the model.
        own = set(self.states) - {SEED, STEP}
        states = {name: array for name, array in exe.states.items() if name in own}
        return TrainedModel(self.model, states)

    def _compiled(self, train: Train | None) -> Executable:
        plain = replace(self.how, train=False, loss=None, optimizer=None, training=None)
        with self.how.progress(self.extensions) as on_step:
            request = plain.request(self.model, self.extensions, on_step)
            asked = replace(request, train=train, example=self.example, on_read=self._read)
            return compiled(asked)

    def _read(self, program: ReadProgram) -> None:
        self.states = [
            op.sym_name.data for op in program.module.body.block.ops if isinstance(op, nn.StateOp)
        ]
        if self.asked is None:
            self.asked = asked_training(self.given, program)
