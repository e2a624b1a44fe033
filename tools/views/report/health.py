"""The health of the numbers of a training run: as a table, and as data of the report's page."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.support.number_formats import format_of
from ....ir.upstream import LocationAttr
from ...driver.executable import Executable
from ...driver.files import write_text
from ...driver.health.recorder import HealthRecorder, Recorded
from ...driver.health.tally import Tally
from ...driver.trainer import Row
from ..layer_names import names_in, source_lines
from .collect import collect
from .nodes import Nodes
from .page import page_text

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".html")
"""The suffixes of the files that the health of a run can be written to."""

COLUMNS = (
    *("step", "operation", "phase", "line", "type", "elements", "largest"),
    *("zeros", "subnormals", "near_limit", "clipped", "infinities", "nans"),
)
"""The columns of the table. Zeros, subnormals and numbers near the limit are shares of elements.
The last three columns are numbers of elements."""

NOWHERE = "(no operation)"
"""The name for what belongs to no operation of the model."""


@dataclass(frozen=True)
class OperationHealth:
    """The counts of the results of one type that an operation has in one step.

    Attributes:
        operation: its number; -1 if there is none.
        dtype: their type.
    """

    step: int
    operation: int
    dtype: np.dtype[Any]
    tally: Tally


def check_health_file(path: Path) -> None:
    """Raise InputError unless the health of a run can be written to a file of this name."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: unknown kind of table of health; need {' or '.join(SUFFIXES)}")


def write_health(
    path: Path, exe: Executable, records: Sequence[Recorded], rows: Sequence[Row]
) -> None:
    """Write the health of a run, in the format of the path's suffix. Raises InputError.

    Args:
        exe: the program that was trained.
        rows: the record of each step.
    """
    if path.suffix == ".html":
        write_text(path, health_page(exe, records, rows))
        return
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(zip(*health_columns(exe, records).values(), strict=True))
    write_text(path, stream.getvalue())


def health_columns(exe: Executable, records: Sequence[Recorded]) -> dict[str, list[Any]]:
    """The table of what was recorded, in the order in which it was computed."""
    modules = [exe.module_at(level) for level in exe.levels]
    nodes = Nodes.in_modules(modules, names_in(exe.path))
    found = by_operation(records, nodes.operation)
    names, phases = nodes.names(), nodes.phase_names()
    rows: list[tuple[Any, ...]] = []
    for each in found:
        at, counts = each.operation, each.tally
        known = (names[at], phases[at], nodes.line(at)) if at >= 0 else (NOWHERE, "", "")
        shares = (counts.zeros, counts.subnormals, counts.near)
        rows.append(
            (
                *(each.step, *known, each.dtype.name, counts.elements, counts.largest),
                *(count / max(counts.elements, 1) for count in shares),
                *(counts.clipped, counts.infinities, counts.nans),
            )
        )
    return {name: [row[k] for row in rows] for k, name in enumerate(COLUMNS)}


def overflow_line(exe: Executable, records: Sequence[Recorded]) -> str:
    """The first operation of the first step that has overflows, in words; "" if none has any."""
    found = health_columns(exe, [each for each in records if each.tally.overflows][:1])
    steps = {each.step for each in records if each.tally.overflows}
    kinds = ("clipped", "infinities", "nans")
    for step, name, dtype, *counts in zip(
        *(found[each] for each in ("step", "operation", "type", *kinds)), strict=True
    ):
        said = ", ".join(f"{n:,} {kind}" for n, kind in zip(counts, kinds, strict=True) if n)
        recorded = len({each.step for each in records})
        return (
            f"overflows in {len(steps)} of {recorded} recorded steps: first in step {step}, in the "
            f"{dtype} results of {name}: {said}"
        )
    return ""


def health_frame(exe: Executable, inputs: Mapping[str, Array]) -> pd.DataFrame:
    """The table of a run on inputs from the present states, as a pandas frame.

    Raises InputError if pandas is not installed, or if this host has too little memory.
    """
    try:
        import pandas as pd  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InputError("frames need pandas: pip install pandas") from None
    recorder = HealthRecorder(exe)
    with exe.runners.turns:
        steps = range(1, recorder.watched.steps + 1)
        recorder.record(inputs, exe.runners.states(), steps)
    return pd.DataFrame(health_columns(exe, recorder.records))


def by_operation(
    records: Iterable[Recorded], number: Callable[[LocationAttr], int]
) -> list[OperationHealth]:
    """The counts of each operation, type and step, in the order in which they were recorded.

    Args:
        number: the function from a location to the number of its operation.
    """
    found: dict[tuple[int, int, np.dtype[Any]], Tally] = {}
    for each in records:
        key = each.step, number(each.location), each.dtype
        found[key] = found.get(key, Tally()) | each.tally
    return [OperationHealth(*key, counts) for key, counts in found.items()]


def health_page(exe: Executable, records: Sequence[Recorded], rows: Sequence[Row]) -> str:
    """The page of the report of a program, with a view of the health of a run.

    A program of the cache is compiled again, because only compiling knows all that a report shows.
    """
    made = exe if exe.anew is None else exe.anew()
    report = collect(made, names_in(exe.path), source_lines(exe.path))
    assert report.nodes is not None
    found = by_operation(records, report.nodes.known_operation)
    counts = [astuple(each.tally) for each in found]
    health = {
        "step": [each.step for each in found],
        "operation": [each.operation for each in found],
        "type": [each.dtype.name for each in found],
        **{name: [row[k] for row in counts] for k, name in enumerate(Tally.__dataclass_fields__)},
    }
    gradients = sum(array.size for array in exe.weights.values())
    scaled = [row for row in rows if row.scale is not None or row.large is not None]
    scale = {
        "step": [row.step for row in scaled],
        "scale": [row.scale for row in scaled],
        "large": [row.large for row in scaled],
        "gradients": gradients,
    }
    limits = {each.dtype.name: format_of(each.dtype).largest for each in found}
    return page_text(report, health={"counts": health, "limits": limits, "scale": scale})
