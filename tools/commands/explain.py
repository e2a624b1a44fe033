"""abele explain."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..debug.explain import explain_rule
from ..driver.shown_text import shown
from ..views.user_errors import text_in, user_errors
from .arguments import Lenient, Load


def explain_command(
    rule: Annotated[
        str, typer.Argument(help="The name of a rule, or FILE:NAME if several files have it.")
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="An .onnx or .mlir of any level.")],
    load: Load = None,
    after: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="Passes to run on the program first, such as nn or decompose.",
        ),
    ] = "",
    target: Annotated[str, typer.Option(help="The target for passes that need one.")] = "",
    lenient: Lenient = False,
) -> None:
    """Explain for each operation why a rule matches or does not match."""
    with user_errors(text_in(file)) as context:
        found = explain_rule(
            rule, file, load=context.load(load), after=after, target=target, lenient=lenient
        )
        sys.stdout.write(f"{shown(found.text.rstrip())}\n")
