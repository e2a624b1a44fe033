"""Reports of a study: text lines and tables, and a JSON record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.table import Table

from .mutant import Mutant
from .study import SMALL, Planted, Row, rows
from .trial import Trial

Done = tuple[Mutant, Trial]

COLUMNS = (
    "planted",
    "found",
    "silent",
    "same",
    "refused",
    "examples",
    "seconds",
    "worst",
    "operators",
    "worst",
    f"of {SMALL} or less",
)


def planted_line(planted: Planted) -> str:
    """A text line with the number of possible bugs in a pass, and its unreached code."""
    lines, rules = planted.lines, planted.rules
    parts = [f"{len(planted.mutants)} mutants, {len(planted.cases)} programs of {planted.level}"]
    if sum(lines):
        parts.append(f"{lines[0]} statements reached, {lines[1]} not reached")
    if sum(rules):
        parts.append(f"{rules[0]} rules reached, {rules[1]} not reached")
    return f"{planted.original.name}: {'; '.join(parts)}"


def done_line(mutant: Mutant, trial: Trial) -> str:
    """The result of one trial, in one line."""
    text = f"{mutant.name}: {trial.verdict}"
    if trial.verdict == "found":
        size = "" if trial.operators is None else f", {trial.operators} operators"
        text += f" ({trial.how}) after {trial.examples} programs, {trial.seconds:.1f} s{size}"
    return text


def mutant_table(mutants: Sequence[Mutant]) -> Table:
    """A table of mutants."""
    table = Table(title_justify="left")
    for name in ("mutant", "place", "before", "after"):
        table.add_column(name, overflow="fold")
    for each in mutants:
        table.add_row(each.name, each.place, each.before, each.after)
    return table


def summary(done: Sequence[Done], title: str) -> Table:
    """A table of the results by class of mistakes."""
    table = Table(title=title, title_justify="left")
    table.add_column("class")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    found = rows(done)
    for each in found[:-1]:
        table.add_row(each.name, *_cells(each))
    table.add_section()
    table.add_row(found[-1].name, *_cells(found[-1]))
    return table


def _cells(each: Row) -> Iterator[str]:
    yield from map(str, (each.planted, each.found, each.found - each.raised))
    yield from map(str, (each.same, each.refused))
    yield "-" if each.examples is None else f"{each.examples:g}"
    yield from ("-", "-") if each.seconds is None else (f"{s:.1f}" for s in each.seconds)
    yield from ("-", "-") if each.operators is None else (f"{n:g}" for n in each.operators)
    yield "-" if each.small is None else f"{each.small:.0%}"


def survivors(done: Sequence[Done]) -> Iterator[str]:
    """A description of each mutant that changes some program and was not found."""
    for mutant, trial in done:
        if trial.verdict == "survived":
            first = "" if trial.how in ("", "differs") else f" (the first: {trial.how})"
            yield (
                f"{mutant.name}: {trial.differing} of {trial.compared} programs differ{first}\n"
                f"    {mutant.place}: {mutant.before}\n"
                f"    -> {mutant.after}"
            )


def percent_found(done: Sequence[Done]) -> float:
    """The percentage of planted bugs that were found; 100 if none were planted."""
    total = rows(done)[-1]
    return 100.0 * total.found / total.planted if total.planted else 100.0


def totals_line(done: Sequence[Done]) -> str:
    """A text line with the number of bugs planted and found, and of mutants that are not bugs."""
    total = rows(done)[-1]
    return (
        f"{total.found} of {total.planted} planted bugs found ({percent_found(done):.1f} %). Not "
        f"counted: {total.same} mutants that compile all programs to the same result, and "
        f"{total.refused} that the rule language rejects"
    )


def record(done: Sequence[Done], seed: int, examples: int, seconds: float) -> dict[str, object]:
    """All results, to be written as JSON: one entry per mutant, and the figures by class."""
    trials: list[dict[str, object]] = [
        {
            "name": mutant.name,
            "pass": mutant.subject,
            "class": mutant.kind,
            "place": mutant.place,
            "before": mutant.before,
            "after": mutant.after,
            **asdict(trial),
        }
        for mutant, trial in done
    ]
    return {
        "seed": seed,
        "examples": examples,
        "seconds": seconds,
        "trials": trials,
        "classes": [asdict(each) for each in rows(done)],
    }
