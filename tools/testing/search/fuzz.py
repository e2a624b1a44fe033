"""Long runs: every pass, every level and every reader, on programs that nobody has seen.

Each job is a check with a seed and a time of its own. It ends at its first failure, which is made
small and saved; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from ....dialects.levels import LEVELS, PLANNED
from ....ir.errors import InputError
from ....ir.pass_manager import PassEntry, parse_pipeline
from ....passes.pipelines import PASSES
from ..generators.decisions import LowerAtRandom
from ..generators.levels import level_before
from .check import check_pass, check_pipeline
from .failures import Miscompiled, PassFailed
from .report import Report

Check = Callable[..., Report]
"""Takes seconds, seed and folder, as check_pass does."""


@dataclass(frozen=True)
class Fuzzed:
    """What a job has come to. failure: what went wrong, with the command that shows it; or ""."""

    name: str
    report: Report
    failure: str = ""


def jobs(
    passes: Sequence[str] = (), registry: Mapping[str, PassEntry] = PASSES
) -> dict[str, Check]:
    """The jobs for some passes, each a pipeline of its own; for all there is of abele if none.

    Raises InputError for a pass that there is not.
    """
    if passes:
        return {spec: _of_pass(spec, registry) for spec in passes}
    found = {name: _of_pass(name, registry) for name in PASSES if name != "plan-splits"}
    found["nn -> partition, as planned"] = partial(check_pipeline, "decompose,partition")
    found["nn -> exchange, as planned"] = check_pipeline
    for level in LEVELS[1:]:
        found[f"nn -> {level}, at random"] = partial(check_pass, LowerAtRandom(level.name), PLANNED)
    return found


def _of_pass(spec: str, registry: Mapping[str, PassEntry]) -> Check:
    each = parse_pipeline(spec, registry)
    if not each:
        raise InputError(f"{spec!r}: need a pass, as abele opt -p takes it")
    return partial(check_pass, each, level_before(type(each[0])))


def fuzz(
    checks: Mapping[str, Check], seconds: float, seed: int, folder: Path, processes: int = 1
) -> Iterator[Fuzzed]:
    """Run each check for so many seconds; yield what came of each, as they end.

    seed: of all of them. folder: failures are saved below it, each in a folder named like its job.
    processes: how many run at once; each is forked, so that it has loaded what this one has.
    """
    with ProcessPoolExecutor(processes, get_context("fork")) as pool:
        running = [
            pool.submit(_run, name, check, seconds, seed, folder / _file_name(name))
            for name, check in checks.items()
        ]
        for each in as_completed(running):
            yield each.result()


def _run(name: str, check: Check, seconds: float, seed: int, folder: Path) -> Fuzzed:
    try:
        return Fuzzed(name, check(seconds=seconds, seed=seed, folder=folder))
    except (Miscompiled, PassFailed, InputError) as failure:
        return Fuzzed(name, Report(), str(failure))


def _file_name(name: str) -> str:
    """A job's name, of letters, digits, - and _ alone."""
    kept = (each if each.isalnum() or each in "-_" else " " for each in name)
    return "-".join("".join(kept).split())
