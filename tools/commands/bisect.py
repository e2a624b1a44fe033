"""abele bisect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..debug.bisect.bisect import bisect
from ..driver.shown_text import shown
from ..views.progress import progress
from ..views.user_errors import CHECK_FAILED, text_in, user_errors
from .arguments import (
    Dims,
    Lenient,
    Load,
    Pipeline,
    Samples,
    TargetName,
    Values,
    Verbose,
    given_values,
    sizes,
)
from .threads import ThreadCount, use_threads


def bisect_command(
    model: Annotated[str, typer.Argument(help="An .onnx or .mlir (any level) file.")],
    passes: Pipeline = "",
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="X.npz", help="Inputs by name. Missing ones get seeded values."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for missing inputs.")] = 0,
    target: TargetName = None,
    dim: Dims = None,
    value: Values = None,
    batch: Samples = None,
    load: Load = None,
    lenient: Lenient = False,
    threads: ThreadCount = None,
    verbose: Verbose = False,
) -> None:
    """Run a model after every pass, and name the first pass, rewrite and value that are wrong.

    Exits with 0 if nothing is wrong, and with 1 otherwise.
    """
    with user_errors(text_in(model)) as context:
        use_threads(threads)
        extensions = context.load(load)
        with progress(verbose=verbose, passes=extensions.passes) as on_step:
            verdict = bisect(
                model,
                target,
                passes=passes,
                inputs=inputs,
                seed=seed,
                dims=sizes(dim),
                values=given_values(value),
                batch=batch,
                load=extensions,
                lenient=lenient,
                watch=on_step,
            )
        sys.stdout.write(f"{shown(verdict.text)}\n")
        if not verdict.passed:
            raise typer.Exit(CHECK_FAILED)
