"""abele train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Annotated

import typer

from ...dialects import nn
from ...dialects.random_states import SEED, STEP
from ...ir.errors import InputError
from ...passes.train import RATE, Train
from ..driver.arrays import read_arrays
from ..driver.checkpoints import read_checkpoint, write_checkpoint
from ..driver.executable import Executable
from ..driver.extensions.loaded import Extensions
from ..driver.files import PROGRAM_FILE, check_files
from ..driver.program import Program
from ..driver.samples import samples_of
from ..driver.schedules import SHAPES, schedule
from ..driver.trainer import NonFinite, Trainer
from ..driver.training import asked_training
from ..driver.validation import Validation
from ..importers.onnx.trained import TrainedModel
from ..views.loss_curve import check_curve, write_curve
from ..views.terminal import Bar, counting_bar
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import show
from .signals import delayed
from .threads import ThreadCount, use_threads
from .user_errors import print_error_line, text_in, user_errors

REPORTS = 10
"""How many lines tell how training goes on, if no number of steps is given for them."""


@compiles
def train_command(
    model: ModelFile,
    data: Annotated[
        Path,
        typer.Option(
            metavar="X.npz",
            help="The samples: an array for each input and for target, samples along axis 0.",
        ),
    ],
    steps: Annotated[
        int | None, typer.Option(min=1, help="How many steps to do, earlier ones included.")
    ] = None,
    *,
    how: Compilation,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Instead of --steps: how often to go through all samples."),
    ] = None,
    curve: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="C.csv|C.png",
            help="Write the loss of each step here, as a table or a picture. May be repeated.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="W.safetensors",
            help="Write weights and what the optimiser keeps here, also if training is stopped.",
        ),
    ] = None,
    every: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Also write them after each N steps.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="W.safetensors", help="Go on from a checkpoint, to the same bits."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of the samples.")] = 0,
    rates: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="NAME",
            help=f"How the learning rate changes: {', '.join(SHAPES)}. step:N[:FACTOR] and "
            "linear-warmup:N take a number of steps. Names joined by + multiply.",
        ),
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION", help="Keep this share of the samples out, and judge by them."
        ),
    ] = None,
    validation_data: Annotated[
        Path | None, typer.Option(metavar="X.npz", help="Judge by the samples of this file.")
    ] = None,
    report: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Print a line, and judge, after each N steps. Default: a tenth of the steps.",
        ),
    ] = None,
    non_finite: Annotated[
        NonFinite,
        typer.Option(
            help="What to do about a step after which the loss or a weight is not finite: stop, or "
            "skip it and keep the weights."
        ),
    ] = "stop",
    threads: ThreadCount = None,
    save_onnx: Annotated[
        Path | None,
        typer.Option(metavar="OUT.onnx", help="Write the model with its trained weights here."),
    ] = None,
) -> None:
    """Compile a model for training, and train it on samples of a file."""
    with user_errors(text_in(model), model) as context:
        use_threads(threads)
        extensions = context.load(how.load)
        if every is not None and checkpoint is None:
            raise InputError("--every without --checkpoint; need both")
        if (steps is None) == (epochs is None):
            raise InputError("need --steps or --epochs, one of the two")
        if validation is not None and validation_data is not None:
            raise InputError("--validation and --validation-data; need one of the two")
        curves = curve or []
        for each in curves:
            check_curve(each)
        if save_onnx is not None and save_onnx.suffix != ".onnx":
            raise InputError(f"{save_onnx}: --save-onnx; need a file that ends in .onnx")
        check_files(
            {
                "the model": Path(model),
                "--data": data,
                "--validation-data": validation_data,
                "--constraints": how.constraints,
            },
            {
                **{f"--curve {each}": each for each in curves},
                "--checkpoint": checkpoint,
                "--save-onnx": save_onnx,
            },
        )
        # Files are read before the model is compiled, which may take long.
        first = None if resume is None else read_checkpoint(resume)
        arrays = read_arrays(data)
        held_arrays = None if validation_data is None else read_arrays(validation_data)
        sources = _Sources(model, how, extensions)
        exe = sources.training(rates is not None)
        of_run = exe.training.steps
        inputs = [each for each in exe.inputs if each.name != RATE]
        if of_run > 1:
            inputs = [replace(each, shape=each.shape[1:]) for each in inputs]
        samples, held = samples_of(arrays, inputs, str(data)), None
        if held_arrays is not None:
            held = samples_of(held_arrays, inputs, str(validation_data))
        if validation is not None:
            samples, held = samples.split(validation, seed if first is None else first.seed)
        total = steps or ceil((epochs or 0) * samples.count / samples.batch)
        if (total - (0 if first is None else first.step)) % of_run:
            raise InputError(
                f"--steps {total} with {of_run} steps in a run; need a multiple of {of_run}"
                + ("" if first is None else f" after the {first.step} steps of {resume}")
            )
        if first is not None and first.step >= total:
            raise InputError(f"{resume}: {first.step} steps are done; need --steps above that")
        rate = None
        if any(each.name == RATE for each in exe.inputs):
            rate = schedule(
                SHAPES[0] if rates is None else rates, exe.training.learning_rate, total
            )
        judge = None if held is None else Validation(sources.judging(), held)
        trained = None if save_onnx is None else sources.trained(exe)
        with counting_bar(total) as bar:
            run = Trainer(exe, samples, seed, rate=rate, non_finite=non_finite, warn=bar.line)
            if first is not None:
                run.resume(first, str(resume))

            def write() -> None:
                if checkpoint is not None and run.rows:
                    write_checkpoint(checkpoint, run.checkpoint)

            try:
                _until(run, total, bar, report or ceil(total / REPORTS), judge, every, write)
            except (KeyboardInterrupt, SystemExit):
                goes_on = f"; --resume {checkpoint} goes on" if checkpoint and run.rows else ""
                print_error_line(f"stopped after step {run.reached.step}{goes_on}")
                raise
            finally:
                with delayed():
                    write()
                    for each in curves if run.rows else ():
                        write_curve(each, run.rows)
        if trained is not None and save_onnx is not None:
            trained.write(save_onnx, run.reached.states)
        show(exe, f"{model}, {run.reached.step} steps", None)
        if run.rows:
            typer.echo(f"loss {run.rows[0].loss:.6g} -> {run.rows[-1].loss:.6g}")


def _until(
    run: Trainer,
    total: int,
    bar: Bar,
    report: int,
    judge: Validation | None,
    every: int | None,
    write: Callable[[], None],
) -> None:
    """Do steps up to a number of them, and tell how it goes."""
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
class _Sources:
    """What is compiled from one model. states: those of the model, before it is made to train."""

    model: str
    how: Compilation
    extensions: Extensions
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
        """The program of the same weights that is used after training."""
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
        if not self.model.endswith(".onnx"):
            raise InputError(f"{self.model}: --save-onnx; need an .onnx model")
        # What an optimiser keeps is none of the model's, and neither is what dropout draws by.
        own = set(self.states) - {SEED, STEP}
        states = {name: array for name, array in exe.states.items() if name in own}
        return TrainedModel(self.model, states)

    def _compiled(self, train: Train | None) -> Executable:
        with self.how.progress(self.extensions) as on_step:
            return replace(
                self.how, train=False, loss=None, optimizer=None, training=None
            ).compiled(self.model, self.extensions, on_step, on_read=self._read, train=train)

    def _read(self, program: Program) -> None:
        self.states = [
            op.sym_name.data for op in program.module.body.block.ops if isinstance(op, nn.StateOp)
        ]
        if self.asked is None:
            self.asked = asked_training(self.given, program)
