"""Run a sweep: the points that its folder lacks, on an executor."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from ...ir.support.errors import InputError
from ..driver.files import write_text
from ..executors.executor import Executor
from ..executors.named import DEFAULT, executor_of
from ..executors.task import End, Result, Task
from ..views.figure import new_figure
from .choice import CONSTRAINT, read_condition, read_goal
from .folder import PAGE, PICTURE, ROWS, SECONDS, SUMMARY, Folder, Record, locked_folder
from .front import drawn
from .picture import draw, write_page
from .plans import numbers_in_rounds
from .points import Prepared, Preparing, point_at
from .remaining import counted
from .side_by_side import check_tables
from .spec import Spec, read_spec, spec_of
from .summary import summary_text
from .tables import Rows, check_figures, failed_row, frame_of, needs_arrow, rows_of, write_rows

FOLDER = ".sweep"
"""The end of the name of the folder of a sweep, by default."""

AGAIN = (End.LOST, End.LATE)
"""Ends that another run may not see."""


@dataclass(frozen=True)
class Progress:
    """How far a sweep is.

    Attributes:
        done, points: points of this round with rows, and all of them.
        kept: how many of these an earlier run has computed.
        computed: tasks that are done.
        words: the time that is left, as far as it is known.
    """

    done: int
    points: int
    kept: int
    computed: int
    words: str


Watch = Callable[[Progress], None]


@dataclass(frozen=True)
class Swept:
    """A sweep that is done.

    Attributes:
        spec: with the choice that counts.
        rows: of all points of the plan.
        kept: how many of these an earlier run has computed.
        programs: how many programs were compiled now.
    """

    spec: Spec
    rows: Rows
    kept: int
    programs: int


def sweep(
    spec: str | os.PathLike[str] | Mapping[str, object],
    folder: str | os.PathLike[str] | None = None,
    executor: str = DEFAULT,
) -> Any:
    """Run a sweep, and return its rows as a pandas frame.

    A point that fails is a row with its reason. A sweep that was interrupted goes on with what its
    folder has. Raises InputError.

    Args:
        spec: a TOML file, or its contents as nested dictionaries.
        folder: where the rows are kept; by default beside the file, with its name and `.sweep`.
        executor: what computes: "local", one process per core; "local:N"; "here";
            "dask://HOST:PORT"; or "dask-local:N".
    """
    if isinstance(spec, Mapping):
        if folder is None:
            raise InputError("sweep: a spec without a file; need folder, where rows are kept")
        read, place = spec_of(spec, "<spec>", Path.cwd()), Path(folder)
    else:
        read = read_spec(Path(spec))
        place = default_folder(Path(spec)) if folder is None else Path(folder)
    with executor_of(executor) as made:
        return frame_of(run_sweep(read, place, made).rows)


def default_folder(spec: Path) -> Path:
    """The folder of the sweep of a file."""
    return spec.with_suffix(FOLDER)


def with_choice(spec: Spec, best: str | None, constraints: Sequence[str]) -> Spec:
    """The spec with another goal and further constraints. Raises InputError."""
    choice = spec.choice
    if best is not None:
        choice = replace(choice, best=read_goal(best, "--best"))
    more = tuple(read_condition(each, CONSTRAINT) for each in constraints)
    return replace(spec, choice=replace(choice, constraints=(*choice.constraints, *more)))


def run_sweep(spec: Spec, place: Path, executor: Executor, watch: Watch = lambda _: None) -> Swept:
    """Compute the points of a spec that a folder lacks, and write the tables there.

    On KeyboardInterrupt, the folder keeps all rows that came. Raises InputError.
    """
    check_tables(spec)
    check_figures(spec)
    needs_arrow()
    # The picture at the end needs it.
    _ = new_figure()
    with locked_folder(place) as folder:
        return _Sweep(spec, folder, executor, watch).run()


class _Sweep:
    """One run of a sweep."""

    def __init__(self, spec: Spec, folder: Folder, executor: Executor, watch: Watch) -> None:
        self._spec = spec
        self._folder = folder
        self._executor = executor
        self._watch = watch
        self._preparing = Preparing(spec)
        self._seen: dict[int, Prepared] = {}
        self._kept = self._programs = 0

    def run(self) -> Swept:
        """Compute all rounds of the plan."""
        rounds = numbers_in_rounds(self._spec, self._rows)
        for numbers in rounds:
            self._compute([self._prepared(number) for number in numbers])
        rows = self._rows()
        points = drawn(self._spec, rows)
        title, path = Path(self._spec.file).stem, self._folder.path
        summary = summary_text(self._spec, rows, points, title)
        write_rows(rows, path / ROWS, path / SECONDS)
        write_page(points, rows, title, path / PAGE)
        draw(points, title, path / PICTURE)
        write_text(path / SUMMARY, summary)
        return Swept(self._spec, rows, self._kept, self._programs)

    def _rows(self) -> Rows:
        return rows_of(self._spec, self._seen.values(), self._folder.records)

    def _prepared(self, number: int) -> Prepared:
        if number not in self._seen:
            self._seen[number] = self._preparing.prepared(point_at(self._spec, number))
        return self._seen[number]

    def _compute(self, some: Sequence[Prepared]) -> None:
        """Compute the points of a round that have no final record."""
        records = self._folder.records
        programs: dict[str, dict[str, Prepared]] = {}
        for each in some:
            record = records.get(each.digest)
            if each.machine is not None and (record is None or not record.final):
                # Equal points are one.
                programs.setdefault(each.program, {})[each.digest] = each
        waiting = {each for one in programs.values() for each in one}
        alike = Counter(each.digest for each in some)
        done = kept = sum(each.digest not in waiting for each in some)
        self._kept += sum(each.machine is not None and each.digest not in waiting for each in some)
        made: dict[str, tuple[Prepared, ...]] = {}
        order: list[Task] = []
        for one in programs.values():
            task = self._preparing.task(tuple(one.values()))
            order.append(task)
            made[task.digest] = tuple(one.values())
        remaining = counted((each.group for each in order), self._executor.workers)
        self._watch(Progress(done, len(some), kept, 0, ""))
        for computed, result in enumerate(self._executor.run(order), 1):
            answered = made[result.task.digest]
            self._keep(result, answered)
            remaining.finish(result.task.group, result.lasted)
            done += sum(alike[each.digest] for each in answered)
            self._programs += 1
            self._watch(Progress(done, len(some), kept, computed, remaining.text()))

    def _keep(self, result: Result, some: Sequence[Prepared]) -> None:
        """Keep the rows of a task."""
        for each, record in zip(some, _records(result, len(some)), strict=True):
            self._folder.add(replace(record, digest=each.digest))


def _records(result: Result, count: int) -> Iterator[Record]:
    """The records of a task's points, without their digests."""
    if result.end is not End.DONE:
        reason = result.problem.partition("\n")[0]
        if result.end is End.FAILED and result.error not in reason:
            reason = f"{result.error}: {reason}"
        is_final = result.end is End.FAILED and result.error != MemoryError.__name__
        for _ in range(count):
            yield Record("", failed_row(reason), is_final, _seconds(result, {}, count))
        return
    value = cast("dict[str, Any]", result.value)
    for row in value["rows"]:
        yield Record("", row, True, _seconds(result, value, count))


def _seconds(result: Result, value: Mapping[str, Any], count: int) -> dict[str, Any]:
    return {
        "compile_seconds": value.get("compile_seconds", result.seconds),
        "price_seconds": value.get("price_seconds", 0.0),
        "points": count,
        "worker": result.worker,
    }
