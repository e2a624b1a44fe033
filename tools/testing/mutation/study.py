"""All trials of some passes: what was planted, and what the kit has found of it."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from selectors import EVENT_READ, DefaultSelector
from statistics import median
from time import monotonic

from ....ir.errors import InputError
from ....ir.garbage import heap_frozen
from ....ir.upstream import ModulePass
from ..generators.levels import KNOWN, level_before
from .compare import Budget, Case, cases
from .mutant import Mutant, some
from .python_classes import PYTHON_CLASSES
from .python_mutants import python_mutants
from .result_mutants import RESULT_CLASSES, result_mutants
from .rule_classes import RULE_CLASSES
from .rule_mutants import rule_mutants
from .trial import Running, Trial, start

TRACED = 200
"""Programs that say which lines of a pass are reached."""


@dataclass(frozen=True)
class Planted:
    """The mistakes of one pass, and what is known of it without any.

    lines, rules: how many are reached, and how many are not.
    """

    right: ModulePass
    level: str
    mutants: tuple[Mutant, ...]
    cases: tuple[Case, ...] = field(repr=False)
    lines: tuple[int, int]
    rules: tuple[int, int]


KINDS = tuple(each.name for each in (*PYTHON_CLASSES, *RULE_CLASSES, *RESULT_CLASSES))
"""The classes of mistakes, in the order in which they are planted."""


def plant(right: ModulePass, level: str, budget: Budget) -> Planted:
    """Find out where in a pass mistakes can be planted.

    level: the kind of programs; "": what the pass declares, else nn. budget: the programs that say
    which of its lines are reached. Raises InputError where the pass takes none of the programs.
    """
    chosen = level or level_before(type(right))
    if chosen not in KNOWN:
        raise InputError(f"level '{chosen}': need one of {', '.join(KNOWN)}")
    known = tuple(cases(right, chosen, budget))

    def run(count: int | None = None) -> None:
        for each in known[:count]:
            if not each.outcome:
                right.apply(each.context, each.given.clone())

    python = python_mutants(right, lambda: run(TRACED))
    rules = rule_mutants(right, run)
    others = result_mutants(right, known)
    return Planted(
        right,
        chosen,
        (*python.mutants, *rules.mutants, *others),
        known,
        (python.reached, python.not_reached),
        (rules.reached, rules.not_reached),
    )


def clean(planted: Planted, budget: Budget) -> Trial:
    """What the kit says of the pass without a mistake: it has to survive."""
    unchanged = Mutant(planted.right.name, "none", 0, "", "", "", lambda: planted.right)
    return next(_trials([unchanged], (), planted.level, budget, 1))[1]


def trials(
    planted: Planted, chosen: Sequence[Mutant], budget: Budget, jobs: int
) -> Iterator[tuple[Mutant, Trial]]:
    """Try mutants, so many at once; each with what came of it, as they end."""
    return _trials(chosen, planted.cases, planted.level, budget, jobs)


def chosen(planted: Planted, only: Sequence[str], limit: int | None, seed: int) -> list[Mutant]:
    """The mutants of some classes or names, all if none, at most so many.

    Raises InputError for what is neither.
    """
    for each in only:
        if set(KINDS).isdisjoint(each.split("/")):
            raise InputError(f"--only {each}: no class of mutants; need one of {', '.join(KINDS)}")
    found = [m for m in planted.mutants if not only or any(m.is_called(each) for each in only)]
    return some(found, limit, seed)


def _trials(
    mutants: Sequence[Mutant], known: Sequence[Case], level: str, budget: Budget, jobs: int
) -> Iterator[tuple[Mutant, Trial]]:
    pending = list(reversed(mutants))
    going: dict[int, Running] = {}
    # What is there by now need not be looked at, and so copied, by every process.
    gc.collect()
    try:
        with heap_frozen(), DefaultSelector() as selector:
            while pending or going:
                while pending and len(going) < jobs:
                    new = start(pending.pop(), known, level, budget)
                    going[new.reads] = new
                    selector.register(new.reads, EVENT_READ)
                first = min(each.end for each in going.values())
                ready = selector.select(max(0.0, first - monotonic()))
                late = [each for each in going.values() if monotonic() > each.end]
                for each in late:
                    each.kill()
                done = [going[key.fd] for key, _ in ready if going[key.fd].feed()]
                for each in done:
                    selector.unregister(each.reads)
                    del going[each.reads]
                    yield each.mutant, each.result()
    finally:
        for each in going.values():
            each.kill()
            each.result()


# What came of them


@dataclass(frozen=True)
class Row:
    """The trials of a class. planted: those that could be found: neither the same nor refused.

    examples: the median; seconds, operators: median and worst, of those found.
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
"""Operators of a small program."""


def row(name: str, of: Sequence[Trial]) -> Row:
    """The figures of some trials."""
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
"""What any run of the pass would have shown."""


def rows(done: Sequence[tuple[Mutant, Trial]]) -> list[Row]:
    """The figures by class, in the order of the first of each, then of all."""
    by_kind: dict[str, list[Trial]] = {}
    for mutant, trial in done:
        by_kind.setdefault(mutant.kind, []).append(trial)
    return [
        *(row(kind, of) for kind, of in by_kind.items()),
        row("all", [trial for _, trial in done]),
    ]
