"""What proofs of rules say: of abele's own rules, of rules in files, and of rules with mistakes.

python -m abele.tools.workshop.proofs [--rules FILE.rw] [--mutants 12]

The mistakes are those of `abele mutate`. Most change what a rule computes, and are to be refuted.
Some do not, such as a condition that only saves work; these are proved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import process_time
from typing import Annotated

import typer
from rich.table import Table

from ...ir.pass_manager import parse_pipeline
from ...ir.rules import RuleSet, RulesPass
from ...ir.rules.bound_rule import BoundRule
from ...ir.support.errors import InputError
from ...passes.pipelines import PASSES
from ..proving.proof import SECONDS
from ..proving.rules import prove
from ..proving.verdicts import Verdict, counted
from ..testing.mutation.compare import Budget
from ..testing.mutation.mutant import Mutant
from ..testing.rules import rules_of
from ..views.script import run_script
from ..views.terminal import console
from .blame import RULE, RULED, mutants

EXAMPLES = 20
"""Programs that show which rules of a pass fire; rules that do not fire get no mistakes."""


def proved(rules: Iterable[BoundRule], of: RuleSet, seconds: float) -> list[Verdict]:
    """The verdicts on some rules of a set."""
    return [prove(rule, of, seconds) for rule in rules]


def verdict_on(mutant: Mutant, seconds: float) -> Verdict | InputError:
    """The verdict on a rule with a mistake, or why the rule language refuses it."""
    try:
        wrong = mutant.make()
    except InputError as refused:
        return refused
    assert isinstance(wrong, RulesPass)
    named = RULE.search(mutant.before)
    assert named is not None
    rules = wrong.rule_set()
    (rule,) = (each for each in rules.bound if each.name == named[1])
    return prove(rule, rules, seconds)


def _table(title: str, names: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, justify="right" if name == "CPU s" else "left")
    return table


def _row(table: Table, name: str, verdict: Verdict) -> None:
    why = verdict.equality if verdict.proved else verdict.reason
    table.add_row(name, verdict.kind, f"{verdict.seconds:.1f}", " ".join(why.split()))


def _summary(verdicts: Sequence[Verdict]) -> str:
    return f"{counted(verdicts)}; {sum(v.seconds for v in verdicts):.0f} CPU s"


def _print_rules(title: str, verdicts: Sequence[Verdict]) -> None:
    table = _table(title, ("rule", "verdict", "CPU s", "what is equal, or why not"))
    for each in verdicts:
        _row(table, each.rule, each)
    console().print(table)
    console().print(_summary(verdicts))


def proofs(
    rules: Annotated[
        list[Path] | None, typer.Option(metavar="FILE.rw", help="Prove the rules of this file too.")
    ] = None,
    limit: Annotated[int, typer.Option("--mutants", min=0, help="Mistakes per pass.")] = 12,
    seconds: Annotated[float, typer.Option(min=0.1, help="CPU seconds for one rule.")] = SECONDS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of mistakes.")] = 0,
) -> None:
    """Print verdicts. Exit with status 1 if one of abele's own rules is refuted."""
    refuted = False
    for name in RULED:
        (own,) = parse_pipeline(name, PASSES)
        assert isinstance(own, RulesPass)
        of = own.rule_set()
        verdicts = proved(of.bound, of, seconds)
        refuted |= any(each.kind == "refuted" for each in verdicts)
        _print_rules(name, verdicts)
    for file in rules or ():
        of = rules_of(file)[0]
        _print_rules(str(file), proved(of.bound, of, seconds))
    _print_mistakes(limit, seconds, seed)
    if refuted:
        raise typer.Exit(1)


def _print_mistakes(limit: int, seconds: float, seed: int) -> None:
    if not limit:
        return
    table = _table(
        "mistakes in rules", ("mistake", "verdict", "CPU s", "what is equal, or why not")
    )
    begin = process_time()
    counts: Counter[str] = Counter()
    for mutant in mutants(RULED, limit, Budget(EXAMPLES, seed=seed)):
        found = verdict_on(mutant, seconds)
        if isinstance(found, InputError):
            counts["refused when read"] += 1
            table.add_row(mutant.name, "refused when read", "", str(found).partition("\n")[0])
            continue
        counts[found.kind if not found.proved else "proved"] += 1
        _row(table, f"{mutant.name}: {mutant.after}", found)
    console().print(table)
    found_text = ", ".join(f"{count} {what}" for what, count in counts.items())
    total = process_time() - begin
    console().print(f"{sum(counts.values())} mistakes: {found_text}; {total:.0f} CPU s")


if __name__ == "__main__":
    run_script(proofs)
