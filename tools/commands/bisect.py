"""abele bisect."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..debug.bisect.bisect import bisect
from ..driver.shown_text import shown
from ..views.user_errors import CHECK_FAILED, text_in, user_errors
from .compiling import Compilation, compiles_with
from .threads import ThreadCount, use_threads


@compiles_with(
    *(
        "passes",
        "precision",
        "sparsity",
        "calibrate",
        "rounding",
        "recompute",
        "replicas",
        "remote",
        "stash",
        "partials",
        "target",
        "chips",
        "io_tiles",
        "dim",
        "inputs",
        "value",
        "batch",
        "load",
    ),
    *("lenient", "weights", "partial_weights", "verbose"),
)
def bisect_command(
    model: Annotated[str, typer.Argument(help="An .onnx or .mlir (any level) file.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed for missing inputs.")] = 0,
    *,
    how: Compilation,
    threads: ThreadCount = None,
) -> None:
    """Run a model after every pass, and name the first pass, rewrite and value that are wrong.

    Exits with 0 if nothing is wrong, and with 1 otherwise.
    """
    with user_errors(text_in(model)) as context:
        use_threads(threads)
        extensions = context.load(how.load)
        with how.progress(extensions) as on_step:
            verdict = bisect(how.request(model, extensions, on_step), how.inputs, seed)
        sys.stdout.write(f"{shown(verdict.text)}\n")
        if not verdict.passed:
            raise typer.Exit(CHECK_FAILED)
