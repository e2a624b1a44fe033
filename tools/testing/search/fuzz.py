"""Long runs of checks of every pass, every level and every reader, on new programs.

Each job is a check. It ends when its time is over or at its first failure, which is made small and
saved. The other jobs continue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

from ....dialects.levels import LEVELS, NN, PLANNED, STABLEHLO
from ....ir.pass_manager import PassEntry, parse_pipeline
from ....ir.support.errors import InputError
from ....passes.names import pipeline_passes
from ....passes.pipelines import FROM_SOURCES, PASSES, shorthand_from, users_passes
from ....passes.train import Train
from ..generators.decisions import LowerAtRandom
from ..generators.levels import known_levels
from ..generators.stablehlo_programs.table import TABLE
from .aim import Aim
from .failures import Miscompiled, PassFailed, Untested
from .pass_check import check_pass, check_pipeline
from .pass_level import level_given
from .report import Report
from .run import PassList

Check = Callable[..., Report]
"""A check with the keywords seconds, seed, folder and report, as of check_pass."""


def _advice() -> str:
    """The advice for a pass that changed hardly any program."""
    return (
        f"give --level, one of {', '.join(known_levels())}; or --operator for each operator that "
        "the pass looks for; or more --seconds"
    )


@dataclass(frozen=True)
class Fuzzed:
    """The result of a job.

    Attributes:
        failure: the message of its failure, or "".
    """

    name: str
    report: Report
    failure: str = ""


def jobs(
    passes: Sequence[str] = (),
    registry: Mapping[str, PassEntry] = PASSES,
    level: str | None = None,
    operators: Sequence[str] = (),
    decisions: Sequence[str] = (),
) -> dict[str, Check]:
    """The checks of some passes, by name; of everything in abele if none are given.

    Everything includes the levels that extensions add, and the conversions there and away. Each
    check then gets the operators that its programs may have.

    Raises InputError for an unknown pass, level, operator or decision.

    Args:
        passes: pipelines, each checked by itself. A pipeline that names levels, such as
            "nn,partition", is checked as check_pipeline does.
        level: the level of their programs; if None, each check finds it as check_pass does.
        operators, decisions: names for the programs to contain, as check_pass takes them.
    """
    if level is not None:
        level_given(level)
    own = tuple(each for each in operators if each in TABLE)
    others = tuple(each for each in operators if each not in TABLE)
    Aim.of((), NN.name, others, decisions)
    found = _jobs(passes, {**registry, **users_passes()}, level)
    about: dict[str, tuple[str, ...]] = dict.fromkeys(found, tuple(operators))
    if not passes and level is None:
        about = {name: own if _is_from_stablehlo(name) else others for name in found}
    return {
        name: partial(check, operators=about[name], decisions=tuple(decisions))
        for name, check in found.items()
    }


def _is_from_stablehlo(job: str) -> bool:
    """Whether one of all jobs tests programs of stablehlo."""
    return job in FROM_SOURCES[STABLEHLO] or job.startswith(STABLEHLO.name)


def _jobs(
    passes: Sequence[str], registry: Mapping[str, PassEntry], level: str | None
) -> dict[str, Check]:
    if passes:
        return {spec: _of_pass(spec, registry, level) for spec in passes}
    own = [name for name in (*PASSES, *users_passes()) if name != "plan-splits"]
    found = {name: _of_pass(name, registry, level) for name in own}
    if level is not None:
        return found
    found["nn -> partition, as planned"] = partial(check_pipeline, "decompose,partition")
    found["nn -> exchange, as planned"] = check_pipeline
    down = (*FROM_SOURCES[STABLEHLO], shorthand_from(NN))
    found["stablehlo -> exchange, as planned"] = partial(check_pipeline, down, STABLEHLO)
    for to in LEVELS[1:]:
        found[f"nn -> {to}, at random"] = partial(check_pass, LowerAtRandom(to.name), PLANNED)
    return found


def _of_pass(spec: str, registry: Mapping[str, PassEntry], level: str | None) -> Check:
    if set(spec.split(",")) & set(map(str, LEVELS)):
        PassList.of(spec)
        return partial(check_pipeline, spec, level)
    each = parse_pipeline(spec, pipeline_passes(registry))
    if not each:
        raise InputError(f"{spec!r}: need a pass, as abele opt -p takes it")
    if any(isinstance(one, Train) for one in each):
        if each != (Train(),):
            raise InputError(
                f"{spec!r}: a step of training returns something else than its program, so "
                "results cannot be compared; need train alone and without options, for steps with "
                "random options, compiled by all passes"
            )
        if level == STABLEHLO.name:
            raise InputError(f"{spec!r}: steps of training are programs of nn, not of {level}")
        return partial(check_pipeline, None, level, training=True)
    return partial(check_pass, each, level)


def fuzz(
    checks: Mapping[str, Check],
    seconds: float,
    seed: int,
    folder: Path,
    processes: int = 1,
    reduce_seconds: float | None = None,
) -> Iterator[Fuzzed]:
    """Run each check for a number of seconds, and yield the result of each as it ends.

    A KeyboardInterrupt, which all forks get too, ends the running checks: a check that is shrinking
    a program returns the smallest one so far.

    Args:
        seed: the seed of every check.
        folder: each failure is saved in a folder below it, named after its job.
        processes: how many checks run at once, in forks of this process, so that modules are loaded
            once.
        reduce_seconds: CPU seconds for shrinking each failing program.
    """
    fork = get_context("fork")
    stop = fork.Event()
    # Forks inherit the checks. Passes made of a user's rules could not be sent to them.
    with ProcessPoolExecutor(processes, fork, _begin, (checks, stop)) as pool:
        running = [
            pool.submit(_run, name, seconds, seed, folder / _file_name(name), reduce_seconds)
            for name in checks
        ]
        left = set(running)
        try:
            for each in as_completed(running):
                left.discard(each)
                yield each.result()
        except KeyboardInterrupt:
            # A fork may have received its next check already.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            # A fork that was between two checks has ended by itself.
            with suppress(BrokenProcessPool):
                for each in as_completed(each for each in left if not each.cancelled()):
                    yield each.result()
            raise


_CHECKS: dict[str, Check] = {}
"""The checks by name, in the processes that run them."""
_STOP: list[Event] = []
"""The event that ends all checks, in these processes."""


def _begin(checks: Mapping[str, Check], stop: Event) -> None:
    _CHECKS.update(checks)
    _STOP[:] = [stop]


def _run(
    name: str, seconds: float, seed: int, folder: Path, reduce_seconds: float | None
) -> Fuzzed:
    report = Report()
    if any(each.is_set() for each in _STOP):
        return Fuzzed(name, report)
    try:
        check = _CHECKS[name]
        check(
            seconds=seconds,
            seed=seed,
            folder=folder,
            report=report,
            reduce_seconds=reduce_seconds,
        )
        return Fuzzed(name, report)
    except KeyboardInterrupt:
        return Fuzzed(name, report)
    except Untested as untested:
        return Fuzzed(name, report, f"{untested.problem}\n{_advice()}")
    except (Miscompiled, PassFailed, InputError) as failure:
        return Fuzzed(name, report, str(failure))


def _file_name(name: str) -> str:
    """A job's name with all characters replaced that are not letters, digits, - or _."""
    kept = (each if each.isalnum() or each in "-_" else " " for each in name)
    return "-".join("".join(kept).split())
