"""Long runs of checks of every pass, every level and every reader, on new programs.

Each job is a check. It ends when its time is over or at its first failure, which is made small and
saved. The other jobs continue.
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
from ....passes.names import pipeline_passes
from ....passes.pipelines import PASSES
from ..generators.decisions import LowerAtRandom
from ..generators.levels import KNOWN
from .check import check_pass, check_pipeline
from .failures import Miscompiled, PassFailed, Untested
from .pass_level import level_given
from .report import Report

Check = Callable[..., Report]
"""A check with the keywords seconds, seed, folder and report, as of check_pass."""

ADVICE = (
    f"give --level, one of {', '.join(KNOWN)}, or more --seconds; in a test, check_pass takes "
    "programs of the operations that a pass looks for"
)
"""What to do if a pass changed hardly any program."""


@dataclass(frozen=True)
class Fuzzed:
    """The result of a job. failure: the message of its failure, or ""."""

    name: str
    report: Report
    failure: str = ""


def jobs(
    passes: Sequence[str] = (),
    registry: Mapping[str, PassEntry] = PASSES,
    level: str | None = None,
) -> dict[str, Check]:
    """The checks of some passes, by name; of everything in abele if none are given.

    passes: pipelines, each checked by itself. level: the level of their programs; if None, each
    check finds it as check_pass does. Raises InputError for an unknown pass or level.
    """
    if level is not None:
        level_given(level)
    if passes:
        return {spec: _of_pass(spec, registry, level) for spec in passes}
    own = [name for name in PASSES if name != "plan-splits"]
    found = {name: _of_pass(name, registry, level) for name in own}
    if level is not None:
        return found
    found["nn -> partition, as planned"] = partial(check_pipeline, "decompose,partition")
    found["nn -> exchange, as planned"] = check_pipeline
    for to in LEVELS[1:]:
        found[f"nn -> {to}, at random"] = partial(check_pass, LowerAtRandom(to.name), PLANNED)
    return found


def _of_pass(spec: str, registry: Mapping[str, PassEntry], level: str | None) -> Check:
    each = parse_pipeline(spec, pipeline_passes(registry))
    if not each:
        raise InputError(f"{spec!r}: need a pass, as abele opt -p takes it")
    return partial(check_pass, each, level)


def fuzz(
    checks: Mapping[str, Check], seconds: float, seed: int, folder: Path, processes: int = 1
) -> Iterator[Fuzzed]:
    """Run each check for so many seconds, and yield the result of each as it ends.

    seed: the seed of every check. folder: each failure is saved in a folder below it, named after
    its job. processes: how many checks run at once, in forks of this process, so that modules are
    loaded once.
    """
    fork = get_context("fork")
    # Forks inherit the checks. Passes made of a user's rules could not be sent to them.
    with ProcessPoolExecutor(processes, fork, _CHECKS.update, (checks,)) as pool:
        running = [
            pool.submit(_run, name, seconds, seed, folder / _file_name(name)) for name in checks
        ]
        for each in as_completed(running):
            yield each.result()


_CHECKS: dict[str, Check] = {}
"""The checks by name, in the processes that run them."""


def _run(name: str, seconds: float, seed: int, folder: Path) -> Fuzzed:
    report = Report()
    try:
        check = _CHECKS[name]
        return Fuzzed(name, check(seconds=seconds, seed=seed, folder=folder, report=report))
    except Untested as untested:
        return Fuzzed(name, report, f"{untested.problem}\n{ADVICE}")
    except (Miscompiled, PassFailed, InputError) as failure:
        return Fuzzed(name, report, str(failure))


def _file_name(name: str) -> str:
    """A job's name with only letters, digits, - and _."""
    kept = (each if each.isalnum() or each in "-_" else " " for each in name)
    return "-".join("".join(kept).split())
