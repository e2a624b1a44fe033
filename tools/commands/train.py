"""abele train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..driver.schedules import SHAPES
from ..driver.trainer import NonFinite
from ..views.user_errors import text_in, user_errors
from .arguments import ModelFile
from .compiling import Compilation, compiles_without
from .showing import show
from .threads import ThreadCount, use_threads
from .training_run import Wanted, prepared, train


@compiles_without("inputs")
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
    health: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="H.csv|H.html",
            help="Write how close the results of each operation come to the limits of their type, "
            "as a table or a report. Each recorded step is run twice. May be repeated.",
        ),
    ] = None,
    health_every: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --health: record each N-th step. Default: a tenth of the steps.",
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
            "linear-warmup:N take a number of steps. Names joined by + multiply. Default: what the "
            "model asks for, as a solver of Caffe does.",
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
        wanted = Wanted(
            model=model,
            data=data,
            steps=steps,
            epochs=epochs,
            curves=tuple(curve or ()),
            health=tuple(health or ()),
            health_every=health_every,
            checkpoint=checkpoint,
            every=every,
            resume=resume,
            seed=seed,
            rates=rates,
            validation=validation,
            validation_data=validation_data,
            report=report,
            non_finite=non_finite,
            save_onnx=save_onnx,
        )
        wanted.check(how)
        ready = prepared(wanted, how, extensions)
        run = train(wanted, ready)
        if ready.model is not None and save_onnx is not None:
            ready.model.write(save_onnx, run.reached.states)
        show(ready.exe, f"{model}, {run.reached.step} steps", None, verbose=how.verbose)
        if run.rows:
            typer.echo(f"loss {run.rows[0].loss:.6g} -> {run.rows[-1].loss:.6g}")
