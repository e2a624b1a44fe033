"""Whether the testing kit blames the right pass and rule, measured on rules with mistakes.

python -m abele.tools.workshop.blame [--mutants 8]

The mistakes are those of `abele mutate`. Each is in one rule of one pass of a pipeline whose other
passes are right, and the programs contain the left side of that rule. Not every mistake changes a
result. If a mistake is found, the message has to name the pass and the rule with the mistake.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Annotated

import typer
from hypothesis.strategies import sampled_from
from rich.table import Table

from ...dialects.levels import NN
from ...ir.pass_manager import parse_pipeline
from ...ir.rules import RulesPass
from ...ir.rules.evaluate import CallFailed
from ...ir.support.errors import InputError
from ...ir.upstream import ModulePass
from ...passes.pipelines import DOWN, PASSES
from ..testing.generators.build import default_operators
from ..testing.generators.program import Program
from ..testing.mutation.compare import Budget
from ..testing.mutation.mutant import Mutant
from ..testing.mutation.rule_classes import RULE_CLASSES
from ..testing.mutation.study import chosen_mutants, plant
from ..testing.search import shrink
from ..testing.search.failures import AtFault, Miscompiled
from ..testing.search.focus import programs_of_rules
from ..testing.search.pass_check import check_pass
from ..testing.search.report import Report
from ..testing.search.settings import LIMIT
from ..views.script import run_script
from ..views.terminal import console

RULED = ("fold-scales", "canonicalize")
"""The passes of nn that consist of rules."""

RULE = re.compile(r"\brule (\w+)")


@dataclass(frozen=True)
class Blamed:
    """What the kit reports for one mistake.

    Attributes:
        how: Wrong.kind, "raised", or "" if nothing was found.
        at: the blamed pass.
        rewrite: the blamed rewrite, or the error raised in one, or "".
        examples: programs until it was found.
        seconds: CPU time until it was found.
        total: CPU time including shrinking the program and finding the rewrite.
    """

    mutant: Mutant
    how: str = ""
    at: str = ""
    rewrite: str = ""
    examples: int = 0
    seconds: float = 0.0
    total: float = 0.0

    @property
    def rule(self) -> str:
        """The name of the rule with the mistake."""
        named = RULE.search(self.mutant.before)
        assert named is not None
        return named[1]

    @property
    def names_pass(self) -> bool:
        """Whether the right pass is blamed."""
        return self.at == self.mutant.subject

    @property
    def names_rewrite(self) -> bool:
        """Whether a rewrite of the right rule is blamed."""
        return re.search(rf"\b{self.rule}\b", self.rewrite) is not None


def blamed(mutant: Mutant, budget: Budget) -> Blamed | None:
    """The report on the passes of nn with a mistake in one pass; None if the rules cannot be
    read."""
    try:
        wrong = mutant.make()
    except InputError:
        return None
    found = RULE.search(mutant.before)
    assert found is not None
    (right,) = parse_pipeline(mutant.subject, PASSES)
    assert isinstance(wrong, RulesPass)
    fitting = [*_fitting(wrong, found[1], budget), *_fitting(right, found[1], budget)]
    if not fitting:
        return Blamed(mutant)
    report, begin = Report(), process_time()
    at = how = rewrite = ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check_pass(
                _with(wrong),
                programs=sampled_from(fitting),
                examples=budget.examples,
                seed=budget.seed,
                expect_changes=False,
                folder=Path(folder),
                report=report,
            )
        except Miscompiled as found:
            at, how, rewrite = found.blamed, found.wrong.kind, found.rewrite
        except AtFault as found:
            at, how, rewrite = found.name, "raised", found.rewrite or found.problem
    total = process_time() - begin
    return Blamed(mutant, how, at, rewrite, report.examples, report.cpu_seconds, total)


def _fitting(each: ModulePass, rule: str, budget: Budget) -> list[Program]:
    """Programs that contain the left side of a rule of a pass."""
    assert isinstance(each, RulesPass)
    made = programs_of_rules([replace(each, only=(rule,))], default_operators(), budget.seed, LIMIT)
    fitting: list[Program] = []
    # A guard with a mistake may raise.
    with suppress(CallFailed):
        fitting.extend(islice(made, budget.examples // 2))
    return fitting


def _with(wrong: ModulePass) -> Sequence[ModulePass]:
    passes = parse_pipeline(",".join(DOWN[NN]), PASSES)
    return [wrong if each.name == wrong.name else each for each in passes]


def mutants(names: Sequence[str], limit: int, budget: Budget) -> Iterator[Mutant]:
    """Mistakes in the rules of passes: at most `limit` per pass, of each class in turn."""
    for name in names:
        (right,) = parse_pipeline(name, PASSES)
        planted = plant(right, "nn", budget)
        yield from chosen_mutants(planted, [each.name for each in RULE_CLASSES], limit, budget.seed)


def blame(
    limit: Annotated[int, typer.Option("--mutants", min=1, help="Mistakes per pass.")] = 8,
    examples: Annotated[int, typer.Option(min=1, help="Programs per mistake.")] = 100,
    shrinking: Annotated[
        float, typer.Option(min=0, help="CPU seconds for shrinking a failing program.")
    ] = 5.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of programs and mistakes.")] = 0,
) -> None:
    """Print what is blamed. Exit with status 1 if a pass, or every tenth rewrite, is wrong."""
    shrink.SHRINKING = shrinking
    budget = Budget(examples, seed=seed)
    table = Table(title="mistakes in rules, and what is blamed", title_justify="left")
    for name in ("mistake", "in rule", "found", "pass", "rewrite", "programs", "CPU s", "total"):
        right = name in ("programs", "CPU s", "total")
        table.add_column(name, justify="right" if right else "left")
    found: list[Blamed] = []
    planted = refused = 0
    for mutant in mutants(RULED, limit, budget):
        each = blamed(mutant, budget)
        planted += 1
        if each is None:
            refused += 1
            continue
        found += [each] if each.how else []
        table.add_row(
            mutant.name,
            each.rule,
            each.how or "no",
            each.at,
            "right" if each.names_rewrite else each.rewrite or ("none" if each.how else ""),
            f"{each.examples:,}",
            f"{each.seconds:.1f}",
            f"{each.total:.1f}",
        )
    terminal = console()
    terminal.print(table)
    count = len(found)
    passes, rewrites = sum(f.names_pass for f in found), sum(f.names_rewrite for f in found)
    terminal.print(
        f"{planted} mistakes, {refused} of them not readable, {count} found; the right pass blamed "
        f"for {passes}, the right rewrite for {rewrites}",
    )
    if passes < count or rewrites < 0.9 * count:
        raise typer.Exit(1)


if __name__ == "__main__":
    run_script(blame)
