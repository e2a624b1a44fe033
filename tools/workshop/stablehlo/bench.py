"""`make conformance`: the cases of JAX, and of StableHLO's interpreter, on abele.

python -m abele.tools.workshop.stablehlo.bench [--every 10] [--only REGEX] [--kept FILE]
python -m abele.tools.workshop.stablehlo.bench --folder stablehlo/tests/interpret

The first takes JAX's own cases of its primitives (internal_test_util), in the element types that
abele shares with JAX. Each is lowered by JAX, compiled by abele for a few tiles, run on the machine
at `exchange`, and compared with JAX on the CPU within JAX's own tolerance of the element type. The
second takes the tests of StableHLO's interpreter.

A case that abele refuses by name counts as refused. The table has a row for each group; below it
are refusals by operation, and every case that is wrong or crashes. The exit code is 1 if there is
one. With --kept, results are appended to a file, and cases whose results it has are not run again.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from ....ir.support.errors import InputError
from ...views.script import run_script
from ...views.table import figure_table
from ...views.terminal import console
from . import harnesses, interpreter
from .cases import MOST_WHY, PASSED, VERDICTS, Refused, Verdict, judge

CASES_OF_A_PROCESS = 200
"""The cases after which a process ends and another one takes its place."""

SHOWN = 60
"""The most cases of a kind that are listed."""


def judge_harness(number: int) -> Verdict:
    """Run one case of JAX."""
    return _judged(harnesses.label(number), partial(harnesses.case, number))


def judge_test(folder: Path, number: int) -> Verdict:
    """Run one test of StableHLO's interpreter."""
    source = interpreter.sources(folder)[number]
    return _judged((source.name, source.group), partial(interpreter.case, source))


def _judged(label: tuple[str, str], make: Any) -> Verdict:
    try:
        case = make()
    except Refused as error:
        return Verdict(*label, "refused", str(error)[:MOST_WHY])
    return judge(case)


def conformance(
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run the tests of stablehlo/tests/interpret of github.com/openxla/stablehlo.",
        ),
    ] = None,
    every: Annotated[int, typer.Option(min=1, metavar="N", help="Run one case in N.")] = 1,
    only: Annotated[str, typer.Option(help="A regular expression that names of cases match.")] = "",
    jobs: Annotated[int, typer.Option(min=1, help="The number of processes.")] = 1,
    kept: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append results to a file; skip cases that it has."),
    ] = None,
    again: Annotated[
        str, typer.Option(metavar="VERDICTS", help="Do these kept results again: wrong,crashed.")
    ] = "",
    more_types: Annotated[
        bool, typer.Option(help="Also take JAX's cases of other integers than int32.")
    ] = False,
) -> None:
    """Run JAX's own cases, or the tests of a folder, and print what passes, group by group."""
    if folder is None:
        types = harnesses.TYPES + (harnesses.MORE_TYPES if more_types else ())
        labels = {number: harnesses.label(number) for number in harnesses.numbers(types)}
        title, judged = "JAX's harnesses", judge_harness
    else:
        sources = interpreter.sources(folder)
        labels = {number: (each.name, each.group) for number, each in enumerate(sources)}
        title, judged = "StableHLO's interpreter tests", partial(judge_test, folder)
    try:
        wanted = re.compile(only)
    except re.error as error:
        raise InputError(f"--only {only}: no regular expression: {error}") from None
    chosen = [n for n, (name, _) in labels.items() if wanted.search(name)][::every]
    if not chosen:
        raise InputError(f"--only {only}: matches no case")
    start, known = perf_counter(), _read(kept, again)
    verdicts = [known[labels[n][0]] for n in chosen if labels[n][0] in known]
    rest = [n for n in chosen if labels[n][0] not in known]
    for verdict in _results(judged, rest, jobs):
        verdicts.append(verdict)
        if kept is not None:
            with kept.open("a") as file:
                file.write(json.dumps(vars(verdict)) + "\n")
        if sys.stderr.isatty():
            print(f"\r{len(verdicts)} of {len(chosen)}", end="", file=sys.stderr)
    _print(title, verdicts, perf_counter() - start)
    raise typer.Exit(int(any(each.verdict in ("wrong", "crashed") for each in verdicts)))


def _results(judged: Any, numbers: Sequence[int], jobs: int) -> Iterator[Verdict]:
    """The results of cases, in their order. Fresh processes run them: jaxlib's threads make a fork
    of this one unsafe."""
    # max_tasks_per_child would do the same, but lets a pool wait forever in Python 3.11.
    for first in range(0, len(numbers), CASES_OF_A_PROCESS * jobs):
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            yield from pool.map(judged, numbers[first : first + CASES_OF_A_PROCESS * jobs])


def _read(kept: Path | None, again: str) -> dict[str, Verdict]:
    """The results of a file by the name of the case, without those that are to be done again."""
    if kept is None or not kept.exists():
        return {}
    lines = (Verdict(**json.loads(line)) for line in kept.read_text().splitlines())
    return {each.name: each for each in lines if each.verdict not in again.split(",")}


def _print(title: str, verdicts: Sequence[Verdict], seconds: float) -> None:
    by_group: dict[str, Counter[str]] = defaultdict(Counter)
    for each in verdicts:
        by_group[each.group][each.verdict] += 1
    table = figure_table(title, ["group", *VERDICTS], ["group"])
    for name, counts in sorted(by_group.items()):
        table.add_row(name, *(str(counts[v] or "") for v in VERDICTS))
    total = Counter(each.verdict for each in verdicts)
    table.add_section()
    table.add_row(f"all {len(verdicts)}", *(str(total[v]) for v in VERDICTS))
    out = console()
    out.print(table)
    refused = Counter(each.operation for each in verdicts if each.verdict == "refused")
    if refused:
        refusals = figure_table("refused", ["operation", "cases", "such as"], ["operation"])
        example = {each.operation: each.why for each in verdicts if each.verdict == "refused"}
        for operation, count in refused.most_common():
            refusals.add_row(operation, str(count), example[operation])
        out.print(refusals)
    for kind in ("wrong", "crashed"):
        for each in [v for v in verdicts if v.verdict == kind][:SHOWN]:
            out.print(f"{kind}: {each.name}: {each.why}", markup=False)
    passed = sum(total[v] for v in PASSED)
    spent = sum(each.seconds for each in verdicts)
    out.print(
        f"{passed:,} of {len(verdicts):,} passed, {total['refused']:,} refused, "
        f"{total['wrong'] + total['crashed']:,} wrong or crashed; {seconds:,.0f} s, of which cases "
        f"took {spent:,.0f} s",
        markup=False,
    )


if __name__ == "__main__":
    run_script(conformance)
