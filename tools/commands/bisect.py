"""abele bisect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..debug.bisect import bisect
from ..views.progress import progress
from .answers import CHECK_FAILED, answers, text_in
from .arguments import Dims, Load, Pipeline, TargetName, sizes


def bisect_command(
    model: Annotated[str, typer.Argument(help="An .onnx or .mlir (any level) file.")],
    passes: Pipeline = "",
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="X.npz", help="Inputs by name; those missing get seeded values."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the values of missing inputs.")] = 0,
    target: TargetName = None,
    dim: Dims = None,
    load: Load = None,
) -> None:
    """Run a model after every pass, and name the pass, the rewrite and the value that went wrong.

    Exits 0 if nothing is wrong, 1 if something is.
    """
    with answers(text_in(model)) as about:
        extensions = about.load(load)
        with progress() as tell:
            verdict = bisect(
                model,
                target,
                passes=passes,
                inputs=inputs,
                seed=seed,
                dims=sizes(dim),
                load=extensions,
                watch=tell,
            )
        sys.stdout.write(f"{verdict.text}\n")
        if not verdict.passed:
            raise typer.Exit(CHECK_FAILED)
