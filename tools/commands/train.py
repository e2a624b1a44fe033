"""abele train."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ...ir.errors import InputError
from ...passes.train import LOSS
from ..driver.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from ..driver.executable import Executable
from ..driver.files import PROGRAM_FILE, check_files, write_text
from ..driver.on_step import OnStep
from ..driver.samples import batch_at, read_samples
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import show
from .user_errors import text_in, user_errors


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
    steps: Annotated[int, typer.Option(min=1, help="How many steps to do, earlier ones included.")],
    *,
    how: Compilation,
    curve: Annotated[
        Path | None, typer.Option(metavar="C.csv", help="Write the loss of each step here.")
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
) -> None:
    """Compile a model for training, and train it on samples of a file."""
    with user_errors(text_in(model), model) as context:
        extensions = context.load(how.load)
        if every is not None and checkpoint is None:
            raise InputError("--every without --checkpoint; need both")
        check_files(
            {"the model": Path(model), "--data": data, "--constraints": how.constraints},
            {"--curve": curve, "--checkpoint": checkpoint},
        )
        first = None if resume is None else read_checkpoint(resume)
        if first is not None and first.step >= steps:
            raise InputError(f"{resume}: {first.step} steps are done; need --steps above that")
        is_program = model.endswith(PROGRAM_FILE)
        with how.progress(extensions) as on_step:
            asked = how if is_program else replace(how, train=True)
            exe = asked.compiled(model, extensions, on_step)
            run = _Training(exe, data, seed if first is None else first.seed, on_step)
            if first is not None:
                run.resume(first)
            try:
                run.until(steps, checkpoint, every)
            finally:
                run.write(curve, checkpoint)
        show(exe, f"{model}, {run.done} steps", None)
        if run.losses:
            typer.echo(f"loss {run.losses[0][1]:.6g} -> {run.losses[-1][1]:.6g}")


class _Training:
    """Steps of a program. losses: the number of each step, from 1 on, and its loss."""

    def __init__(self, exe: Executable, data: Path, seed: int, on_step: OnStep) -> None:
        self.exe, self.seed, self.on_step = exe, seed, on_step
        # Only a training program has weights; any other is refused here.
        _ = exe.weights
        self.batch = exe.inputs[0].shape[0] if exe.inputs[0].shape else 1
        self.count, self.samples = read_samples(data, exe.inputs)
        self.done = 0
        self.losses: list[tuple[int, float]] = []
        self.states = exe.states

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint. Raises InputError for one of another program."""
        missing = sorted(set(self.states) - set(checkpoint.states))
        if missing:
            raise InputError(
                f"--resume: no state {missing[0]!r} in the checkpoint; it is of another program, "
                "or of another optimizer"
            )
        self.exe.set_states(checkpoint.states)
        self.done = checkpoint.step
        self.states = self.exe.states

    def until(self, steps: int, path: Path | None, every: int | None) -> None:
        """Do steps up to a number of them."""
        while self.done < steps:
            inputs = batch_at(self.samples, self.count, self.batch, self.done, self.seed)
            loss = float(np.mean(self.exe.step(inputs)[LOSS]))
            if path is not None:
                # A step that is interrupted leaves weights of which some are new and some old.
                self.states = self.exe.states
            self.done += 1
            self.losses.append((self.done, loss))
            self.on_step(f"step {self.done} of {steps}: loss {loss:.6g}")
            if path is not None and every is not None and self.done % every == 0:
                self._save(path)

    def write(self, curve: Path | None, path: Path | None) -> None:
        """Write what was reached, whatever has ended the steps."""
        if path is not None and self.losses:
            self._save(path)
        if curve is not None and self.losses:
            rows = "".join(f"{step},{loss!r}\n" for step, loss in self.losses)
            write_text(curve, "step,loss\n" + rows)

    def _save(self, path: Path) -> None:
        write_checkpoint(path, Checkpoint(self.done, self.seed, self.states))
