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
from ..generators.levels import level_before
from .check import check_pass, check_pipeline
from .failures import Miscompiled, PassFailed
from .report import Report

Check = Callable[..., Report]
"""A check with the keywords seconds, seed and folder, as of check_pass."""


@dataclass(frozen=True)
class Fuzzed:
    """The result of a job. failure: the message of its failure, or ""."""

    name: str
    report: Report
    failure: str = ""


def jobs(
    passes: Sequence[str] = (), registry: Mapping[str, PassEntry] = PASSES
) -> dict[str, Check]:
    """The checks of some passes, by name; of everything in abele if none are given.

    passes: pipelines, each checked by itself. Raises InputError for an unknown pass.
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
    each = parse_pipeline(spec, pipeline_passes(registry))
    if not each:
        raise InputError(f"{spec!r}: need a pass, as abele opt -p takes it")
    return partial(check_pass, each, level_before(type(each[0])))


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
    try:
        return Fuzzed(name, _CHECKS[name](seconds=seconds, seed=seed, folder=folder))
    except (Miscompiled, PassFailed, InputError) as failure:
        return Fuzzed(name, Report(), str(failure))


def _file_name(name: str) -> str:
    """A job's name with only letters, digits, - and _."""
    kept = (each if each.isalnum() or each in "-_" else " " for each in name)
    return "-".join("".join(kept).split())
