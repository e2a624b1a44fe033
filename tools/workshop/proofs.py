"""What proofs of rules say: of abele's own rules, of rules in files, and of rules with mistakes.

python -m abele.tools.workshop.proofs [--rules FILE.rw] [--wrong FILE.rw]
    [--mutants 12] [--markdown]

The mistakes are those of `abele mutate`. Most change what a rule computes, and are to be refuted.
Some do not, such as a condition that only saves work; these are proved, and programs test them too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
from ..proving.proof import SECONDS, prove_rule
from ..proving.refuting import tested
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
    return [prove_rule(rule, of, seconds) for rule in rules]


NOTHING = "no program was found that the rule matches"
"""Why a rule that matches nothing is not decided. The rule language warns of it."""
COUNTED = (
    *("refused when read", "refuted", "harmless", "matches nothing", "not decided"),
    "proved, and a program differs",
)
"""The verdicts on mistakes. The last one is more than proofs see: they do not bound roundings."""


@dataclass(frozen=True)
class Judged:
    """The verdict on a mistake.

    Attributes:
        what: one of COUNTED.
        why: what is equal, or why not, in words.
        seconds: of processor time of the proof.
    """

    mutant: Mutant
    what: str
    why: str
    seconds: float = 0.0


def judged(mutant: Mutant, seconds: float, testing: float) -> Judged:
    """The verdict on a mistake. One that is proved harmless is tested on programs too.

    Args:
        seconds: of processor time for the proof.
        testing: seconds for the tests.
    """
    found = verdict_on(mutant, seconds)
    if isinstance(found, InputError):
        return Judged(mutant, "refused when read", str(found).partition("\n")[0])
    why = found.equality if found.proved else found.reason
    if not found.proved:
        known = "refuted" if found.kind == "refuted" else "not decided"
        return Judged(mutant, "matches nothing" if why == NOTHING else known, why, found.seconds)
    rule, rules = _rule_of(mutant)
    _, wrong = tested(rule, rules, testing)
    if wrong is not None:
        return Judged(mutant, COUNTED[-1], wrong.reason, found.seconds)
    return Judged(mutant, "harmless", f"{found.kind}: {why}", found.seconds)


def verdict_on(mutant: Mutant, seconds: float) -> Verdict | InputError:
    """The verdict on a rule with a mistake, or why the rule language refuses it."""
    try:
        rule, rules = _rule_of(mutant)
    except InputError as refused:
        return refused
    return prove_rule(rule, rules, seconds)


def _rule_of(mutant: Mutant) -> tuple[BoundRule, RuleSet]:
    """The rule with a mistake, and its set. Raises InputError if the language refuses it."""
    wrong = mutant.make()
    assert isinstance(wrong, RulesPass)
    named = RULE.search(mutant.before)
    assert named is not None
    rules = wrong.rule_set()
    (rule,) = (each for each in rules.bound if each.name == named[1])
    return rule, rules


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
    wrong: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.rw", help="The same, for rules that are known to be wrong."),
    ] = None,
    limit: Annotated[int, typer.Option("--mutants", min=0, help="Mistakes per pass.")] = 12,
    seconds: Annotated[float, typer.Option(min=0.1, help="CPU seconds for one rule.")] = SECONDS,
    testing: Annotated[
        float,
        typer.Option(min=0, help="Seconds of tests for each mistake that is proved harmless."),
    ] = 3.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of mistakes.")] = 0,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables of docs/proofs.md only.")
    ] = False,
) -> None:
    """Print verdicts. Exit with status 1 if an own rule is refuted, or a wrong one is proved."""
    if markdown:
        _print_markdown(rules or (), wrong or (), limit, seconds, testing, seed)
        return
    refuted = False
    for name in RULED:
        (own,) = parse_pipeline(name, PASSES)
        assert isinstance(own, RulesPass)
        of = own.rule_set()
        verdicts = proved(of.bound, of, seconds)
        refuted |= any(each.kind == "refuted" for each in verdicts)
        _print_rules(name, verdicts)
    for file in (*(rules or ()), *(wrong or ())):
        of = rules_of(file)[0]
        verdicts = proved(of.bound, of, seconds)
        refuted |= any(each.proved for each in verdicts) and file in (wrong or ())
        _print_rules(str(file), verdicts)
    refuted |= limit > 0 and _print_mistakes(limit, seconds, testing, seed)
    if refuted:
        raise typer.Exit(1)


def _all_judged(limit: int, seconds: float, testing: float, seed: int) -> Iterator[Judged]:
    for mutant in mutants(RULED, limit, Budget(EXAMPLES, seed=seed)):
        yield judged(mutant, seconds, testing)


def _print_mistakes(limit: int, seconds: float, testing: float, seed: int) -> bool:
    """Print the verdicts on mistakes. Returns whether a program differs for one that is proved."""
    table = _table(
        "mistakes in rules", ("mistake", "verdict", "CPU s", "what is equal, or why not")
    )
    begin = process_time()
    counts: Counter[str] = Counter()
    for each in _all_judged(limit, seconds, testing, seed):
        counts[each.what] += 1
        refused = each.what == COUNTED[0]
        name = each.mutant.name if refused else f"{each.mutant.name}: {each.mutant.after}"
        shown = "" if refused else f"{each.seconds:.1f}"
        table.add_row(name, each.what, shown, " ".join(each.why.split()))
    console().print(table)
    found_text = ", ".join(f"{counts[what]} {what}" for what in COUNTED if counts[what])
    total = process_time() - begin
    console().print(f"{sum(counts.values())} mistakes: {found_text}; {total:.0f} CPU s")
    return counts[COUNTED[-1]] > 0


# The tables of docs/proofs.md


def _print_markdown(
    right: Sequence[Path],
    wrong: Sequence[Path],
    limit: int,
    seconds: float,
    testing: float,
    seed: int,
) -> None:
    """Print the tables, line by line as far as they are known.

    Exits with status 1 if a wrong rule is proved.
    """
    files = [*((each, "right") for each in right), *((each, "wrong") for each in wrong)]
    sets = [(rules_of(file)[0], said) for file, said in files]
    misjudged = False
    if sets:
        typer.echo("| rule | after | it is | verdict | CPU s |\n|---|---|---|---|---|")
    for of, said in sets:
        for rule in of.bound:
            found = prove_rule(rule, of, seconds)
            misjudged |= found.proved and said == "wrong"
            after = " ".join(rule.document.split()).replace("|", "\\|")
            cells = (f"`{rule.name}`", after, said, found.kind, f"{found.seconds:.1f}")
            typer.echo(f"| {' | '.join(cells)} |")
    if limit:
        listed = list(_all_judged(limit, seconds, testing, seed))
        misjudged |= any(each.what == COUNTED[-1] for each in listed)
        typer.echo("\n".join(_of_mistakes(listed)))
    if misjudged:
        raise typer.Exit(1)


def _of_mistakes(listed: Sequence[Judged]) -> Iterator[str]:
    """The lines of a table: for the rules of each pass, how many mistakes have which verdict."""
    yield f"\n| rules of | mistakes | {' | '.join(COUNTED)} | CPU s of proofs |"
    yield "|---" * (len(COUNTED) + 3) + "|"
    for name in RULED:
        own = [each for each in listed if each.mutant.subject == name]
        counts = Counter(each.what for each in own)
        shown = " | ".join(str(counts[what]) for what in COUNTED)
        yield f"| {name} | {len(own)} | {shown} | {sum(each.seconds for each in own):.0f} |"


if __name__ == "__main__":
    run_script(proofs)
