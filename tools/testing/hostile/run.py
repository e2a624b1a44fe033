"""Runs hostile inputs, counts the verdicts, and saves failures."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, cast

from typer.core import TyperGroup

from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from .case import Case
from .child import POLL, Running, outcome_of, start
from .kinds import case_of
from .outcome import Outcome, Verdict
from .reading import reading
from .shrink import SHRINK_SECONDS, shrink

CASE, FILES, MESSAGE = "case.json", "files", "message.txt"
"""The contents of a saved failure's folder: the record, the files, and the printed text."""

SAVE_EVERY = 5.0
"""Seconds between two writes of the progress."""


@dataclass
class Failure:
    """The failures at one place in the code.

    Attributes:
        count: how many.
        kind, number: those of the first example.
    """

    verdict: Verdict
    site: str
    kind: str
    number: int
    count: int = 0
    folder: str = ""
    message: str = ""


@dataclass
class Tally:
    """The counts of a run so far.

    Attributes:
        seed: the seed of all examples.
        counts: by kind and verdict.
        done: number of examples run by kind, which are the examples 0, 1, ... of that kind.
        slowest, largest: the most CPU seconds and bytes by kind.
        failures: by place.
    """

    seed: int
    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    done: Counter[str] = field(default_factory=Counter[str])
    slowest: dict[str, float] = field(default_factory=dict[str, float])
    largest: dict[str, int] = field(default_factory=dict[str, int])
    failures: list[Failure] = field(default_factory=list[Failure])

    def add(self, kind: str, number: int, outcome: Outcome) -> Failure | None:
        """Count an outcome. Returns its failure if it is the first at its place."""
        self.counts.setdefault(kind, Counter[str]())[outcome.verdict] += 1
        self.done[kind] += 1
        self.slowest[kind] = max(self.slowest.get(kind, 0.0), outcome.seconds)
        self.largest[kind] = max(self.largest.get(kind, 0), outcome.peak)
        if not outcome.failed:
            return None
        for each in self.failures:
            if (each.verdict, each.site) == outcome.group:
                each.count += 1
                return None
        new = Failure(outcome.verdict, outcome.site, kind, number, 1, message=outcome.message)
        self.failures.append(new)
        return new

    def write(self, path: Path) -> None:
        """Save the progress, so that a later run continues after it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "seed": self.seed,
            "counts": self.counts,
            "done": self.done,
            "slowest": self.slowest,
            "largest": self.largest,
            "failures": [vars(each) for each in self.failures],
        }
        with whole_file(path) as stream:
            stream.write((json.dumps(record, indent=1) + "\n").encode())

    @staticmethod
    def read(path: Path) -> Tally:
        """The progress of an earlier run. Raises InputError."""
        try:
            record = cast("dict[str, Any]", json.loads(path.read_text()))
            return Tally(
                record["seed"],
                {kind: Counter(verdicts) for kind, verdicts in record["counts"].items()},
                Counter(record["done"]),
                record["slowest"],
                record["largest"],
                [Failure(**each) for each in record["failures"]],
            )
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise InputError(f"{path}: not the progress of a run: {error!r}") from None


def run_hostile(
    names: Sequence[str],
    tally: Tally,
    commands: TyperGroup,
    folder: Path | None,
    *,
    examples: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    shrinking: float = SHRINK_SECONDS,
    reads_only: bool = False,
) -> Iterator[Failure]:
    """Run examples of each kind in turn, count them in the tally, and yield each new failure.

    Starts after the examples that the tally has.

    Args:
        folder: where failures and the progress are saved; nothing is saved if None.
        examples: of each kind, with those before.
        seconds: of wall-clock time. Without both, it runs until it is interrupted.
        jobs: how many processes at once.
        shrinking: seconds to make one failure small.
        reads_only: whether models are read and led to nn, and no command runs.
    """
    end = None if seconds is None else monotonic() + seconds
    saved = monotonic()
    progress = None if folder is None else folder / progress_file(tally.seed)
    found = _outcomes(names, tally, commands, examples, end, jobs, reads_only)
    for example, outcome in found:
        new = tally.add(example.kind, example.number, outcome)
        if new is not None:
            if folder is not None:
                new.folder = str(_save(new, example.case, outcome, commands, folder, shrinking))
            yield new
        if progress is not None and monotonic() > saved + SAVE_EVERY:
            tally.write(progress)
            saved = monotonic()
    if progress is not None:
        tally.write(progress)


def progress_file(seed: int) -> str:
    """The name of the file with the progress of a seed."""
    return f"progress-{seed}.json"


class _Named(NamedTuple):
    """A case, and its kind and number."""

    kind: str
    number: int
    case: Case


@dataclass
class _Started:
    """Cases that run in one child process.

    Attributes:
        outcomes: of the first ones; None while the child runs.
    """

    cases: list[_Named]
    running: Running
    outcomes: list[Outcome] | None = None


READ_AT_ONCE = 200
"""How many models one process reads."""


def _outcomes(
    names: Sequence[str],
    tally: Tally,
    commands: TyperGroup,
    examples: int | None,
    end: float | None,
    jobs: int,
    reads_only: bool,
) -> Iterator[tuple[_Named, Outcome]]:
    """The outcome of each example, in the order of the examples.

    The order keeps the saved progress without gaps.
    """
    waiting: list[_Started] = []
    planned = _planned(names, dict(tally.done), examples)
    size = READ_AT_ONCE if reads_only else 1

    def begin(cases: list[_Named]) -> _Started:
        return _Started(cases, start([each.case for each in cases], commands))

    try:
        while True:
            while len(waiting) < jobs and (end is None or monotonic() < end):
                cases: list[_Named] = []
                for kind, number in islice(planned, size):
                    made = case_of(kind, tally.seed, number, commands)
                    cases.append(_Named(kind, number, reading(made) if reads_only else made))
                if not cases:
                    break
                waiting.append(begin(cases))
            if not waiting:
                return
            for each in waiting:
                each.outcomes = each.running.poll() if each.outcomes is None else each.outcomes
            first = waiting[0]
            if first.outcomes is None:
                sleep(POLL)
                continue
            yield from zip(first.cases, first.outcomes, strict=False)
            left = first.cases[len(first.outcomes) :]
            waiting[:1] = [begin(left)] if left else []
    finally:
        for each in waiting:
            if each.outcomes is None:
                each.running.kill()
                # An interrupt may come after the child has ended, while its outcomes are read.
                with suppress(ChildProcessError):
                    each.running.finish()


def _planned(
    names: Sequence[str], done: dict[str, int], examples: int | None
) -> Iterator[tuple[str, int]]:
    """The kinds and numbers of the examples to run: one example of each kind in turn."""
    for number in count():
        if examples is not None and number >= examples:
            return
        for name in names:
            if number >= done.get(name, 0):
                yield name, number


# Saved failures


def _save(
    failure: Failure,
    case: Case,
    outcome: Outcome,
    commands: TyperGroup,
    folder: Path,
    shrinking: float,
) -> Path:
    """Shrink a failing case and save it in a folder named after the failure."""
    small = shrink(case, outcome, commands, shrinking) if shrinking else case
    name = re.sub(r"[^\w.]+", "-", f"{failure.verdict} {failure.site}").strip("-")[:100]
    target = folder / name
    for attempt in count(2):
        if not target.exists():
            break
        target = folder / f"{name}-{attempt}"
    small.write(_made(target / FILES))
    record = {"kind": failure.kind, "number": failure.number, "command": small.command}
    record |= {"verdict": failure.verdict, "site": failure.site, **small.record()}
    (target / CASE).write_text(json.dumps(record, indent=1) + "\n")
    (target / MESSAGE).write_text(outcome.message, "utf-8", errors="replace")
    return target


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def replay(folder: Path, commands: TyperGroup) -> Outcome:
    """Run a saved failure again. Raises InputError if the folder holds none."""
    try:
        record = json.loads((folder / CASE).read_text())
        case = Case.read(folder / FILES, record)
    except (OSError, ValueError, LookupError) as error:
        raise InputError(f"{folder}: no saved failure: {error}") from None
    return outcome_of(case, commands)
