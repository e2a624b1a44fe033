"""Long runs of checks of every pass, every level and every reader, on new programs.

Each job is a check. It ends when its time is over or at its first failure, which is made small and
saved. The other jobs continue.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from ....backends.host.threads import THREADS
from ....dialects.levels import LEVELS, NN, PLANNED, STABLEHLO
from ....ir.pass_manager import PassEntry, parse_pipeline
from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from ....passes.names import pipeline_passes
from ....passes.pipelines import FROM_SOURCES, PASSES, shorthand_from, users_passes
from ....passes.train import Train
from ...driver.extensions.load import load_extensions
from ...executors.executor import Executor
from ...executors.task import End, Json, Task, Tell, task_function
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


@dataclass(frozen=True)
class Asked:
    """What is fuzzed, as text, so that another process can make the same jobs of it.

    Attributes:
        passes, level, operators, decisions: as for jobs.
        load: files of extensions.
        threads: how many threads run each program.
    """

    passes: tuple[str, ...] = ()
    level: str | None = None
    operators: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    threads: int = 1

    @staticmethod
    def of(record: Mapping[str, Any]) -> Asked:
        """The request whose fields, as JSON, are a record."""
        lists = ("passes", "operators", "decisions", "load")
        fields: dict[str, Any] = {**record, **{name: tuple(record[name]) for name in lists}}
        return Asked(**fields)

    def jobs(self) -> dict[str, Check]:
        """The checks by name. Raises InputError, as jobs and load_extensions do."""
        registry = load_extensions(self.load).passes
        return jobs(self.passes, registry, self.level, self.operators, self.decisions)


def fuzz(
    asked: Asked,
    seconds: float,
    seed: int,
    folder: Path,
    executor: Executor,
    reduce_seconds: float | None = None,
) -> Iterator[Fuzzed]:
    """Run each check for a number of seconds, and yield the result of each as it ends.

    A KeyboardInterrupt ends the running checks: a check that is shrinking a program returns the
    smallest one so far. Raises InputError as jobs and executors do.

    Args:
        seed: the seed of every check.
        folder: each failure is saved in a folder below it, named after its job.
        executor: where the checks run. Files of extensions must be there too.
        reduce_seconds: CPU seconds for shrinking each failing program.
    """
    whole = replace(asked, load=tuple(os.path.abspath(each) for each in asked.load))
    shared: dict[str, Json] = {
        **vars(whole),
        "seconds": seconds,
        "seed": seed,
        "folder": str(folder.absolute()),
        "reduce_seconds": reduce_seconds,
    }
    tasks = [Task(f"{__name__}:{run_job.__name__}", {**shared, "name": n}) for n in asked.jobs()]
    for result in executor.run(tasks):
        name = str(result.task.arguments["name"])
        if result.end is End.DONE:
            value = cast("dict[str, Any]", result.value)
            _save(folder, value["saved"])
            # A path below the user's folder reads better as it was given.
            failure = value["failure"].replace(str(folder.absolute()), str(folder))
            yield Fuzzed(name, Report.from_record(value["report"]), failure)
        elif result.end is not End.STOPPED:
            yield Fuzzed(name, Report(), f"{result.problem}\n{result.details}".rstrip())


@task_function
def run_job(
    _: Tell,
    name: str,
    seconds: float,
    seed: int,
    folder: str,
    reduce_seconds: float | None,
    threads: int,
    **asked: Any,
) -> Json:
    """Run one job. Returns its report and failure, and the files of the program that it has saved.

    Args:
        asked: the other fields of an Asked.
    """
    THREADS.count = threads
    report, failure, saved = Report(), "", None
    try:
        Asked.of(asked).jobs()[name](
            seconds=seconds,
            seed=seed,
            folder=Path(folder, _file_name(name)),
            report=report,
            reduce_seconds=reduce_seconds,
        )
    except KeyboardInterrupt:
        pass
    except Untested as untested:
        failure = f"{untested.problem}\n{_advice()}"
    except (Miscompiled, PassFailed, InputError) as error:
        failure, saved = str(error), getattr(error, "folder", None)
    return {"report": report.to_record(), "failure": failure, "saved": _files(Path(folder), saved)}


def _files(folder: Path, saved: Path | None) -> Json:
    """The contents of the files of a saved program, by their paths below the folder of all."""
    files = [path for path in saved.rglob("*") if path.is_file()] if saved is not None else []
    return {
        path.relative_to(folder).as_posix(): b64encode(path.read_bytes()).decode() for path in files
    }


def _save(folder: Path, files: Mapping[str, str]) -> None:
    """Write files that were saved on another host. Raises InputError for one outside the folder."""
    for place, text in files.items():
        path = folder / place
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{place}: a worker names a file outside {folder}")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as stream:
                stream.write(b64decode(text))


def _file_name(name: str) -> str:
    """A job's name with all characters replaced that are not letters, digits, - or _."""
    kept = (each if each.isalnum() or each in "-_" else " " for each in name)
    return "-".join("".join(kept).split())
