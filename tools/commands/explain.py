"""abele explain."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from ...ir.rules import RuleSet
from ..debug.explain import explain_rule, rule_sets
from ..driver.shown_text import shown
from ..proving.kept import verdict_on
from ..views.user_errors import text_in, user_errors
from .compiling import Compilation, compiles_with


@compiles_with("load", "lenient", "recompute", "stash")
def explain_command(
    rule: Annotated[
        str, typer.Argument(help="The name of a rule, or FILE:NAME if several files have it.")
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="An .onnx or .mlir of any level.")],
    *,
    how: Compilation,
    after: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="Passes to run on the program first, such as nn or decompose. Default: none; nn "
            "with --recompute or --stash.",
        ),
    ] = "",
    target: Annotated[str, typer.Option(help="The target for passes that need one.")] = "",
) -> None:
    """Explain for each operation why a rule matches or does not match."""
    with user_errors(text_in(file)) as context:
        changes = bool(how.recompute or how.stash)
        asked = replace(how, passes=after or "nn" * changes, target=target or None)
        found = explain_rule(rule, asked.request(file, context.load(how.load)))
        sys.stdout.write(f"{shown(found.text.rstrip())}\n")
        for known in _verdicts(rule, rule_sets(context.load(how.load))):
            sys.stdout.write(f"{known}\n")


def _verdicts(name: str, sets: Sequence[RuleSet]) -> list[str]:
    """The kept verdicts on the rules of a name."""
    _, _, short = name.rpartition(":")
    bound = [(rule, own) for own in sets for rule in own.bound if rule.name == short]
    kept = [verdict_on(rule, own.vocabulary) for rule, own in bound]
    return list(dict.fromkeys(each.text for each in kept if each is not None))
