"""All trials of a pass: the planted bugs, and the ones that the kit has found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from ....ir.support.errors import InputError
from ....ir.support.garbage import collect_if_grown, heap_frozen
from ....ir.upstream import ModulePass
from ..generators.levels import known_levels, level_before
from .compare import Budget, Case, cases
from .mutant import Mutant, sample_of
from .python_classes import PYTHON_CLASSES
from .python_mutants import python_mutants
from .result_mutants import RESULT_CLASSES, result_mutants
from .rule_classes import RULE_CLASSES
from .rule_mutants import rule_mutants
from .timetable_classes import TIMETABLE_CLASSES, timetable_mutants
from .trial import Inspect, Running, Trial, check_among, start

TRACED = 200
"""The largest number of programs that run under the tracer, which finds the reached lines."""


COMPARED = 60
"""The number of programs on which a mutant and the original pass are compared before a trial in
the pipeline."""


@dataclass(frozen=True)
class Planted:
    """The mutants of one pass, and the results of the original pass.

    Attributes:
        original: the pass.
        level: the level of the programs.
        cases: programs, with the results of the original.
        lines, rules: number of the pass's lines and rules that programs reach, and do not reach.
    """

    original: ModulePass
    level: str
    mutants: tuple[Mutant, ...]
    cases: tuple[Case, ...] = field(repr=False)
    lines: tuple[int, int]
    rules: tuple[int, int]


KINDS = tuple(
    each.name for each in (*PYTHON_CLASSES, *RULE_CLASSES, *RESULT_CLASSES, *TIMETABLE_CLASSES)
)
"""The classes of mistakes, in the order in which they are planted."""


def plant(original: ModulePass, level: str, budget: Budget) -> Planted:
    """Find all mutants of a pass.

    Raises InputError for an unknown level.

    Args:
        level: the level of the programs; if "", the level that the pass declares, or nn.
        budget: the limits for the programs that show which parts of the pass are reached.
    """
    of_programs = level or level_before(type(original))
    known = known_levels()
    if of_programs not in known:
        raise InputError(f"level '{of_programs}': need one of {', '.join(known)}")
    known = tuple(cases(original, of_programs, budget))

    def run(count: int | None = None) -> None:
        for each in known[:count]:
            if not each.outcome:
                original.apply(each.context, each.given.clone())

    python = python_mutants(original, lambda: run(TRACED))
    rules = rule_mutants(original, run)
    others = (*result_mutants(original, known), *timetable_mutants(original, known))
    return Planted(
        original,
        of_programs,
        (*python.mutants, *rules.mutants, *others),
        known,
        (python.reached, python.not_reached),
        (rules.reached, rules.not_reached),
    )


def check_original(planted: Planted, budget: Budget) -> Trial:
    """A trial of the pass without a planted bug. It should survive."""
    unchanged = Mutant(planted.original.name, "none", 0, "", "", "", lambda: planted.original)
    return next(_trials([unchanged], lambda each: start(each, (), planted.level, budget)))[1]


def trials(
    planted: Planted, chosen: Sequence[Mutant], budget: Budget
) -> Iterator[tuple[Mutant, Trial]]:
    """Run the trials of mutants. Yields each mutant and its result as it ends."""
    known = planted.cases
    return _trials(
        chosen, lambda each: start(each, known if each.is_in_output else (), planted.level, budget)
    )


def trials_among(
    planted: Planted, chosen: Sequence[Mutant], budget: Budget, inspect: Inspect
) -> Iterator[tuple[Mutant, Trial]]:
    """Run the trials of mutants in their place in the default pipeline, among correct passes.

    A few programs show whether a mutant differs from the original pass at all.

    Args:
        inspect: returns the failure of a saved reproducer on the passes without the bug, in words.
    """
    some = planted.cases[:COMPARED]
    return _trials(
        chosen,
        lambda each: start(
            *(each, some if each.is_in_output else ()),
            *(planted.level, budget, check_among, inspect),
        ),
    )


def chosen_mutants(
    planted: Planted, only: Sequence[str], limit: int | None, seed: int
) -> list[Mutant]:
    """The mutants with the given classes or names; all if none are given.

    Raises InputError for an unknown class.

    Args:
        limit: choose at most this many of them at random.
    """
    for each in only:
        if set(KINDS).isdisjoint(each.split("/")):
            raise InputError(f"--only {each}: no class of mutants; need one of {', '.join(KINDS)}")
    found = [m for m in planted.mutants if not only or any(m.matches(each) for each in only)]
    return sample_of(found, limit, seed)


def _trials(
    mutants: Sequence[Mutant], begin: Callable[[Mutant], Running]
) -> Iterator[tuple[Mutant, Trial]]:
    # Freeze the heap, so that garbage collection in a child does not copy the parent's pages.
    collect_if_grown()
    with heap_frozen():
        for each in mutants:
            yield each, begin(each).finished()


# Figures


@dataclass(frozen=True)
class Row:
    """The figures of the trials of one class, or of all trials.

    The fields from `examples` on count found mutants only.

    Attributes:
        planted: number of mutants that can be found, so neither the same nor refused.
        found: number of found mutants.
        raised: number of found mutants that any run of the pass would have shown.
        same, refused: number with these verdicts.
        examples: median number of programs.
        seconds, operators: median and worst.
        small: the share with at most SMALL operators.
    """

    name: str
    planted: int
    found: int
    raised: int
    same: int
    refused: int
    examples: float | None
    seconds: tuple[float, float] | None
    operators: tuple[float, int] | None
    small: float | None


SMALL = 4
"""A small program has at most this many operators."""


def row(name: str, of: Sequence[Trial]) -> Row:
    """The figures of trials."""
    found = [each for each in of if each.verdict == "found"]
    survived = sum(each.verdict == "survived" for each in of)
    sizes = [each.operators for each in found if each.operators is not None]
    times = [each.seconds for each in found]
    return Row(
        name,
        len(found) + survived,
        len(found),
        sum(each.how in LOUD for each in found),
        sum(each.verdict == "same" for each in of),
        sum(each.verdict == "refused" for each in of),
        median(each.examples for each in found) if found else None,
        (median(times), max(times)) if times else None,
        (median(sizes), max(sizes)) if sizes else None,
        sum(size <= SMALL for size in sizes) / len(sizes) if sizes else None,
    )


LOUD = ("raised", "killed", "memory", "kit")
"""Failures that any run of the pass would have shown, without the kit's oracles."""


def rows(done: Sequence[tuple[Mutant, Trial]]) -> list[Row]:
    """The figures of each class, in order of first appearance, and then those of all trials."""
    by_kind: dict[str, list[Trial]] = {}
    for mutant, trial in done:
        by_kind.setdefault(mutant.kind, []).append(trial)
    return [
        *(row(kind, of) for kind, of in by_kind.items()),
        row("all", [trial for _, trial in done]),
    ]
