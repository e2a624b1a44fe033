"""The tables of memory: tiles, variables, lives, and bytes over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....backends.lifetimes import PHASES
from ....backends.memory import MemoryReport
from ....backends.prices.overheads import overheads
from ....backends.prices.step_charges import StepCharge
from ....dialects.exchange import VariableOp
from ....ir.support.arrays import Integers
from ....ir.upstream import ModuleOp
from ...driver.shown_text import shown
from .columns import Table, rows_table, table
from .execution import place_of
from .nodes import Nodes, origin_text

BLOCK_BYTES = 1 << 26
"""The memory for the live bytes by moment and tile of one batch of moments."""


@dataclass(frozen=True, eq=False)
class Lives:
    """The lives of all variables that are not always live: arrays of shape (lives,).

    Attributes:
        variable: its number.
        first, last: phases.
        start, stop: tiles.
        bytes: on each tile.
    """

    variable: Integers
    first: Integers
    last: Integers
    start: Integers
    stop: Integers
    bytes: Integers

    @staticmethod
    def of(report: MemoryReport, numbers: Mapping[str, int]) -> Lives:
        """The lives in a report.

        Args:
            numbers: of the variables, by name.
        """
        rows = [
            (
                numbers[v.symbol],
                first,
                last,
                *span,
                v.bytes_per_tile,
            )
            for v, first, last in report.timeline.lives()
            for span in v.placed.tiles.spans
        ]
        return Lives(*np.array(rows, np.int64).reshape(len(rows), 6).T)

    def live(self, first: int, last: int, tiles: int) -> Integers:
        """Live bytes in the phases [first, last): (phases, tiles)."""
        change = np.zeros((last - first + 1, tiles + 1), np.int64)
        begins, ends = np.clip(self.first, first, last), np.clip(self.last + 1, first, last)
        for at, sign in ((begins, 1), (ends, -1)):
            np.add.at(change, (at - first, self.start), sign * self.bytes)
            np.add.at(change, (at - first, self.stop), -sign * self.bytes)
        return change.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]


def moment_table(
    report: MemoryReport, lives: Lives, numbers: Mapping[str, int]
) -> tuple[Table, dict[str, Integers | NDArray[np.float64]]]:
    """The moments, and for each superstep the columns live_bytes and live_mean.

    Args:
        numbers: of the supersteps, by name.
    """
    names = report.timeline.names
    tiles, always = report.tiles, report.always_live_bytes
    each = max(BLOCK_BYTES // (8 * PHASES * max(tiles, 1)), 1)
    rows: list[NDArray[np.float64]] = []
    for start in range(0, len(names), each):
        stop = min(start + each, len(names))
        live = lives.live(PHASES * start, PHASES * stop, tiles)
        most = live.reshape(stop - start, PHASES, tiles).max(axis=1) + always
        figures = (
            most.argmax(axis=1),
            most.max(axis=1),
            most.mean(axis=1),
            most.min(axis=1),
            most[:, report.fullest_tile],
        )
        rows.append(np.stack([f.astype(np.float64) for f in figures]))
    found = np.concatenate(rows, axis=1) if rows else np.zeros((5, 0))
    step = np.array([numbers[name] for name in names], np.int64)
    columns = ("tile", "max_bytes", "mean_bytes", "min_bytes", "peak_tile_bytes")
    moments = table(
        "moments",
        {
            "moment": np.arange(len(names)),
            "superstep": step,
            **dict(zip(columns, found, strict=True)),
        },
    )
    highest = np.full(len(numbers), -1, np.int64)
    np.maximum.at(highest, step, found[1].astype(np.int64))
    mean = np.full(len(numbers), -1.0)
    np.maximum.at(mean, step, found[2])
    return moments, {"live_bytes": highest, "live_mean": np.where(mean < 0, np.nan, mean)}


def tile_table(
    report: MemoryReport,
    module: ModuleOp,
    variables: Mapping[str, VariableOp],
    steps: Sequence[StepCharge],
    of_steps: Mapping[str, Integers],
) -> Table:
    """The memory and the work of every tile."""
    more = overheads(module, variables, report.tiles, report.target)
    reserved = report.target.memory.reserved_bytes
    live = report.always_live_bytes + report.transient_bytes
    used = report.tile_bytes > 0
    variable_bytes = np.where(used, report.tile_bytes - reserved, 0)
    times = np.array([each.price.times for each in steps], np.float64)
    work = {
        name: np.zeros(report.tiles, np.int64) for name in ("compute_cycles", "exchange_cycles")
    }
    for name, values in work.items():
        done = np.minimum(times @ of_steps[name].astype(np.float64), 2.0**62)
        values[: len(done)] = done.astype(np.int64)[: len(values)]
    return table(
        "tiles",
        {
            "tile": np.arange(report.tiles),
            "always_live": report.always_live_bytes,
            "live_now": report.transient_bytes,
            "gaps": np.maximum(variable_bytes - live, 0),
            "code": more.code,
            "vertex_state": more.vertex_state,
            "exchange_code": more.exchange_code,
            "stacks": more.stacks,
            "reserved_unused": np.where(used, np.maximum(reserved - more.total, 0), 0),
            "variable_bytes": variable_bytes,
            "worst_superstep": report.worst_steps,
            **work,
        },
    )


def variable_table(
    report: MemoryReport,
    variables: Mapping[str, VariableOp],
    nodes: Nodes,
    readers: Mapping[str, int],
) -> Table:
    """The variables.

    A weight has a node of its own, and belongs to the operation that reads it.

    Args:
        readers: the first operation that reads each, by name.
    """
    here = {v.name: v for v in report.variables}
    rows: list[dict[str, Any]] = []
    for number, (name, v) in enumerate(variables.items()):
        own = here.get(name)
        kind = "state" if v.state is not None else "constant" if v.is_resident else "value"
        rows.append(
            {
                "variable": number,
                "name": shown(name),
                "operation": _owner(v, nodes, readers),
                "origin": origin_text(v),
                "kind": kind,
                "dtype": v.dtype.name,
                "shape": "x".join(map(str, v.tensor.get_shape())) or "scalar",
                **place_of(v.placed.tiles),
                "address": v.start,
                "bytes_per_tile": v.bytes_per_tile,
                "bytes": v.bytes_per_tile * v.placed.cells,
                "at_peak": own is not None and own.live,
                "waits": own is not None and own.waits,
            }
        )
    return rows_table("variables", rows)


def _owner(v: VariableOp, nodes: Nodes, readers: Mapping[str, int]) -> int:
    own = nodes.known_operation(v)
    return readers.get(v.symbol, -1) if own < 0 else own


def life_table(lives: Lives) -> Table:
    """The lives, in moments."""
    return table(
        "lives",
        {
            "variable": lives.variable,
            "first": lives.first // PHASES,
            "last": lives.last // PHASES,
        },
    )


def layout_table(report: MemoryReport, variables: Mapping[str, VariableOp], lives: Lives) -> Table:
    """The addresses of variables on the fullest tile, and their lives."""
    numbers = {name: k for k, name in enumerate(variables)}
    tile, last = report.fullest_tile, max(len(report.timeline.names) - 1, 0)
    rows = [
        {"variable": numbers[v.name], "first": 0, "last": last}
        for v in report.variables
        if v.resident
    ]
    here = np.flatnonzero((lives.start <= tile) & (tile < lives.stop))
    rows += [
        {
            "variable": int(lives.variable[k]),
            "first": int(lives.first[k]) // PHASES,
            "last": int(lives.last[k]) // PHASES,
        }
        for k in here
    ]
    every = list(variables.values())
    for row in rows:
        v = every[row["variable"]]
        row |= {"address": v.start, "bytes": v.bytes_per_tile}
    return rows_table("layout", rows)
