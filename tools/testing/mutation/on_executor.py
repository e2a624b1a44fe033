"""Trials of mutants on an executor.

A mutant is code that only the process that has planted it can run. So each worker plants the bugs
of a pass once, and a task names one of them. The trial itself still has a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, cast

from ....ir.pass_manager import PassEntry, parse_pipeline
from ....ir.support.errors import InputError
from ....ir.upstream import ModulePass
from ....passes.names import pipeline_passes
from ....passes.pipelines import PASSES
from ...driver.extensions.load import load_extensions
from ...executors.executor import Executor
from ...executors.task import End, Json, Task, Tell, task_function
from . import study
from .compare import Budget
from .mutant import Mutant
from .trial import Trial

ALL = "all"

UNTESTED = ("plan-splits",)
"""Passes that only decide. All their decisions are right, so no program finds a bug in them."""


@dataclass(frozen=True)
class Asked:
    """A pass whose bugs are planted, as text.

    Attributes:
        passes: a pipeline, or "all".
        number: counts the passes of the pipeline from 0.
        load: files of extensions.
        level, budget: as for study.plant.
    """

    passes: str
    number: int
    load: tuple[str, ...]
    level: str
    budget: Budget

    def to_record(self) -> dict[str, Json]:
        """The fields, for JSON, with paths that hold in any folder."""
        paths = [os.path.abspath(each) for each in self.load]
        return {**vars(self), "load": paths, "budget": vars(self.budget)}

    @staticmethod
    def of(record: Mapping[str, Any]) -> Asked:
        """The request of which to_record has made a record."""
        lists: dict[str, Any] = {"load": tuple(record["load"])}
        fields: dict[str, Any] = {**record, **lists, "budget": Budget(**record["budget"])}
        return Asked(**fields)


def passes_of(spec: str, registry: Mapping[str, PassEntry]) -> tuple[ModulePass, ...]:
    """The passes of a pipeline; for "all", every pass of abele's that acts. Raises InputError.

    Args:
        registry: passes of extensions and abele's.
    """
    if spec.strip() == ALL:
        spec = ",".join(name for name in PASSES if name not in UNTESTED)
    found = parse_pipeline(spec, pipeline_passes(registry))
    if not found:
        raise InputError("no pass; need passes as for abele opt -p, or all")
    for each in found:
        if each.name in UNTESTED:
            raise InputError(f"pass '{each.name}' only decides; name a pass that applies it")
    return found


def planted_of(asked: Asked) -> study.Planted:
    """The mutants of a pass. Raises InputError as passes_of and study.plant do."""
    return _planted(replace(asked, load=tuple(map(os.path.abspath, asked.load))))


@lru_cache(maxsize=1)
def _planted(asked: Asked) -> study.Planted:
    passes = passes_of(asked.passes, load_extensions(asked.load).passes)
    return study.plant(passes[asked.number], asked.level, asked.budget)


def trials(
    asked: Asked, chosen: Sequence[Mutant], executor: Executor
) -> Iterator[tuple[Mutant, Trial]]:
    """Run the trials of mutants on an executor. Yields each mutant and its result as it ends.

    Raises InputError for a trial that a worker cannot do.
    """
    mutants = {each.name: each for each in chosen}
    shared = asked.to_record()
    function = f"{__name__}:{run_trial.__name__}"
    group = f"{asked.passes} {asked.number}"
    tasks = (Task(function, {"asked": shared, "name": n}, group=group) for n in mutants)
    for result in executor.run(tasks):
        name = str(result.task.arguments["name"])
        if result.end is End.DONE:
            yield mutants[name], Trial(**cast("dict[str, Any]", result.value))
        elif result.end is not End.STOPPED:
            raise InputError(f"{name}: {result.problem}\n{result.details}".rstrip())


@task_function
def run_trial(tell: Tell, asked: Mapping[str, Any], name: str) -> Json:
    """The trial of the mutant with a name."""
    del tell
    whole = Asked.of(asked)
    planted = planted_of(whole)
    (mutant,) = (each for each in planted.mutants if each.name == name)
    ((_, trial),) = study.trials(planted, [mutant], whole.budget)
    return asdict(trial)
