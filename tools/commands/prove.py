"""abele prove."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ...ir.rules import RuleSet
from ...ir.support.errors import InputError
from ...ir.text import read_module
from ...passes.rules.own import FOLDER, own_rules
from ..driver.shown_text import shown
from ..proving.kept import file_beside, keep, own_file
from ..proving.programs import validate
from ..proving.proof import SECONDS
from ..proving.rules import prove
from ..proving.solver import z3
from ..proving.verdicts import Verdict, counted
from ..testing.rules import rules_of
from ..views.terminal import console
from ..views.user_errors import CHECK_FAILED, text_in, user_errors
from .arguments import Load

ALL = "all"
TIMES = 6
"""Two programs have so many times the seconds of a rule."""


@dataclass(frozen=True)
class _File:
    """A file of rules, and where verdicts on them are kept."""

    name: str
    rules: RuleSet
    kept: Path


def prove_command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A .rw or .py with rules; all for abele's own.")
    ] = "",
    rule: Annotated[
        list[str] | None, typer.Option("--rule", metavar="NAME", help="Only this rule. Repeatable.")
    ] = None,
    before: Annotated[
        str,
        typer.Option(
            "--before", metavar="A.mlir", help="Compare this program of nn with that of --after."
        ),
    ] = "",
    after: Annotated[
        str, typer.Option("--after", metavar="B.mlir", help="The program after a change.")
    ] = "",
    load: Load = None,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1, help="Processor time for each rule, and six times as much for two programs."
        ),
    ] = SECONDS,
    kept: Annotated[
        bool,
        typer.Option("--keep", help="Keep the verdicts beside the rules, in NAME.proofs.json."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Prove rewrite rules, or refute them by a program. Exit with status 1 if one is refuted.

    With --before and --after, prove instead that two programs of nn compute the same.
    """
    if before or after:
        _compare(before, after, file, load or [], seconds)
        return
    with user_errors(text_in(file)):
        if not file:
            raise InputError("nothing to prove: name a file of rules, or --before and --after")
        z3()
        found: list[tuple[str, Verdict]] = []
        for each in _files(file, load or [], rule or []):
            verdicts = [prove(bound, each.rules, seconds) for bound in each.rules.bound]
            found += [(each.name, verdict) for verdict in verdicts]
            if kept:
                keep(each.kept, verdicts, each.rules.bound, each.rules.vocabulary)
        if as_json:
            records = [{"file": name, **verdict.record()} for name, verdict in found]
            sys.stdout.write(f"{json.dumps(records, indent=1)}\n")
        else:
            _show([verdict for _, verdict in found])
    if any(verdict.kind == "refuted" for _, verdict in found):
        raise typer.Exit(1)


def _compare(before: str, after: str, file: str, load: Sequence[str], seconds: float) -> None:
    """Compare two programs. Exit with status 1 if they differ."""
    with user_errors(before) as errors:
        if not (before and after) or file:
            raise InputError("--before and --after compare two programs; give both, and no rules")
        z3()
        context = errors.load(load).context()
        modules = [read_module(path, context) for path in (before, after)]
        found = validate(
            modules[0], modules[1], context, names=(before, after), seconds=seconds * TIMES
        )
        sys.stdout.write(f"{shown(found.text)}\n")
    if not found.passed:
        raise typer.Exit(CHECK_FAILED)


def _files(file: str, load: Sequence[str], names: Sequence[str]) -> Iterator[_File]:
    """The files of rules, each with the rules of some names. Raises InputError for other names."""
    listed = list(_own()) if file == ALL else [_of(file, load)]
    known = [name for each in listed for name in each.rules.names]
    for name in names:
        if name not in known:
            raise InputError(f"no rule {name}; there is {', '.join(known)}")
    for each in listed:
        wanted = [name for name in names or known if name in each.rules.names]
        if wanted:
            yield _File(each.name, each.rules.chosen(only=wanted), each.kept)


def _of(file: str, load: Sequence[str]) -> _File:
    rules, _ = rules_of(file, load)
    if not rules.bound:
        raise InputError(f"{file}: no rules to prove")
    return _File(Path(file).name, rules, file_beside(Path(file)))


def _own() -> Iterator[_File]:
    folder = files("abele.passes").joinpath(FOLDER)
    for path in sorted(each.name for each in folder.iterdir()):
        name = path.removesuffix(".rw")
        if path != name:
            yield _File(path, own_rules(name), own_file(name))


def _show(verdicts: Sequence[Verdict]) -> None:
    table = Table(box=None, header_style="bold")
    for name in ("rule", "verdict", "what is equal, or why not"):
        table.add_column(name, overflow="fold")
    table.add_column("CPU s", justify="right")
    for each in verdicts:
        tests = "" if each.proved or each.kind == "refuted" else each.tests
        why = "; ".join(part for part in (each.equality, each.reason, tests) if part)
        table.add_row(each.rule, each.kind, why, f"{each.seconds:.1f}")
    terminal = console()
    terminal.print(table)
    terminal.print(counted(verdicts))
    for each in verdicts:
        if each.example:
            terminal.print()
            sys.stdout.write(f"{each.example}\n")
