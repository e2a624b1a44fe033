"""abele explain."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..debug.explain import explain_rule
from .answers import answers, text_in
from .arguments import Load


def explain_command(
    rule: Annotated[
        str, typer.Argument(help="A rule's name, or FILE:NAME where several files have it.")
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="An .onnx or .mlir of any level.")],
    load: Load = None,
    after: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="Passes that the program goes through first, such as nn or decompose.",
        ),
    ] = "",
    target: Annotated[str, typer.Option(help="For passes that want one.")] = "",
) -> None:
    """Say why a rule fires, or does not, operation by operation."""
    with answers(text_in(file)) as about:
        found = explain_rule(rule, file, load=about.load(load), after=after, target=target)
        sys.stdout.write(f"{found.text.rstrip()}\n")
