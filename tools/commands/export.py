"""abele export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...ir.support.errors import InputError
from ..driver.export import DIALECTS, PASSES, export
from ..driver.files import PROGRAM_FILE, check_files
from ..driver.request import Request
from ..importers.front_ends import TEXT, front_end_at
from ..views.user_errors import text_in, user_errors
from .arguments import Load, ModelFile, given_values, sizes


def export_command(
    model: ModelFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.mlir", help="The file to write.")
    ],
    to: Annotated[
        str, typer.Option("--to", help=f"What it is written in: {' or '.join(DIALECTS)}.")
    ] = DIALECTS[0],
    passes: Annotated[
        str,
        typer.Option(
            "--passes",
            metavar="SPEC",
            help="The passes on nn that run before; nn stands for those of the default pipeline.",
        ),
    ] = PASSES,
    arguments: Annotated[
        bool,
        typer.Option(
            "--arguments",
            help="Let weights be arguments of the function, instead of constants in the text.",
        ),
    ] = False,
    dim: Annotated[
        list[str] | None,
        typer.Option("--dim", metavar="NAME=N", help="A free dimension of the model."),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs",
            metavar="X.npz",
            help="Inputs by name, which must fit the model; they give sizes to free dimensions.",
        ),
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option("--value", metavar="NAME=V", help="An input that is known now."),
    ] = None,
    load: Load = None,
) -> None:
    """Write a model for other compilers, in StableHLO or in linalg.

    States that the program changes are arguments and results, after the others. Their first values
    go to OUT.npz.
    """
    with user_errors(text_in(model), model) as context:
        extensions = context.load(load)
        if front_end_at(str(output)) is not TEXT:
            raise InputError(f"{output}: need a file that ends in .mlir")
        if model.endswith(PROGRAM_FILE):
            raise InputError(f"{model}: compiled already, so it cannot be written; need the model")
        check_files({"the model": Path(model), "--inputs": inputs}, {"-o": output})
        request = Request(model, dims=sizes(dim), values=given_values(value), example=inputs)
        made = export(request, extensions, to, passes, arguments=arguments)
        files = made.write(output)
        sys.stdout.write(f"{model} -> {' and '.join(map(str, files))}\n")
        sys.stdout.write(f"takes {', '.join(made.inputs)}; gives {', '.join(made.outputs)}\n")
