"""The tables of execution: supersteps, their tiles, their traffic, and their times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....backends.clocks.zones import zones_of
from ....backends.fabrics.traffic import Carried
from ....backends.graph.graph import codelet_name
from ....backends.graph.parts import vertex_count
from ....backends.prices.step_charges import Charged, StepCharge
from ....backends.target import Target
from ....backends.timeline import Skipped, timeline
from ....dialects.steps import Vertices
from ....dialects.variable import Variable
from ....ir.geometry.tiles import Tiles
from ....ir.provenance import line_of
from ....ir.support.arrays import Integers
from ....ir.upstream import ModuleOp
from ...driver.shown_text import shown
from .columns import Table, rows_table, table
from .nodes import Nodes, origin_text

GROUPS = 32
"""The most groups of tiles in the table of traffic. Assumed: as many as a small picture shows."""

MOST_EXECUTIONS = 10_000
"""The most executions of supersteps in a report. The last iterations of longer loops are one row
each.
"""

MOST_CHIP_EXECUTIONS = 200_000
"""The most executions in a report, counted on each chip. Assumed: a table that opens quickly."""

MOST_PAIRS = 1 << 20
"""The most listed pairs of tiles of one copy. For more, tiles are assumed to share evenly."""


def superstep_table(
    steps: Sequence[StepCharge], nodes: Nodes, target: Target, more: Mapping[str, Any]
) -> Table:
    """The supersteps.

    Args:
        more: the columns live_bytes, live_mean and crossing_bytes.
    """
    compute = [_compute_where_chips_work(each, target) for each in steps]
    columns: dict[str, Sequence[Any] | NDArray[Any]] = {
        "superstep": np.arange(len(steps)),
        "name": [shown(each.price.name) for each in steps],
        "operation": [dearest(each, nodes) for each in steps],
        "origin": [origin_text(each.step) for each in steps],
        "line": [shown(each.price.line) for each in steps],
        "critical_tile": [each.price.busiest_tile for each in steps],
        "median_compute": [float(np.median(each)) for each in compute],
        "balance": [float(each.mean() / max(each.max(), 1)) for each in compute],
        "busy_tiles": [int(np.count_nonzero(each)) for each in compute],
        **more,
    }
    for name in ("times", "cycles", "sync_cycles", "exchange_cycles", "compute_cycles"):
        columns[name] = [getattr(each.price, name) for each in steps]
    columns["chips"] = [each.price.chips for each in steps]
    columns["critical_cycles"] = [each.price.critical.total for each in steps]
    for name in ("sync", "exchange", "compute"):
        columns[f"critical_{name}"] = [getattr(each.price.critical, name) for each in steps]
    columns["exchange_bytes"] = [each.price.exchange_bytes for each in steps]
    return table("supersteps", columns)


def _compute_where_chips_work(step: StepCharge, target: Target) -> Integers:
    """The cycles of compute of each tile on the chips that take part in a superstep."""
    cycles = step.charge.compute
    return cycles[step.advance.takes_part[zones_of(target, len(cycles)).of_tile]]


def dearest(step: StepCharge, nodes: Nodes) -> int:
    """The operation with the most cycles of a superstep; -1 if it has no operation."""
    if not step.operations:
        return nodes.operation(step.step)
    cycles: dict[int, float] = {}
    for each in step.operations:
        own = nodes.operation(each.op)
        cycles[own] = cycles.get(own, 0.0) + each.compute_cycles + each.exchange_cycles
    return max(cycles, key=lambda own: cycles[own], default=-1)


def tiles_of_steps(steps: Sequence[StepCharge]) -> dict[str, Integers]:
    """The work of each tile in one execution of each superstep: (supersteps, tiles) each."""
    found = {
        "compute_cycles": [each.charge.compute for each in steps],
        "exchange_cycles": [each.exchange for each in steps],
        "received_bytes": [each.charge.traffic.received for each in steps],
        "sent_bytes": [each.charge.traffic.sent for each in steps],
    }
    width = max((len(each.exchange) for each in steps), default=0)
    return {
        name: np.array([np.pad(row, (0, width - len(row))) for row in rows], np.int64).reshape(
            len(steps), width
        )
        for name, rows in found.items()
    }


def superstep_tile_table(of_steps: Mapping[str, Integers]) -> Table:
    """The work of tiles as a table, with a row for each superstep and tile that does anything."""
    busy = sum((each != 0 for each in of_steps.values()), np.zeros(1, np.bool_))
    step, tile = np.nonzero(busy)
    return table(
        "superstep_tiles",
        {"superstep": step, "tile": tile, **{n: v[step, tile] for n, v in of_steps.items()}},
    )


def part_table(
    steps: Sequence[StepCharge], nodes: Nodes, variables: Mapping[str, Variable]
) -> Table:
    """The copies and compute sets of all supersteps."""
    return rows_table("parts", _parts(steps, nodes, variables))


def _parts(
    steps: Sequence[StepCharge], nodes: Nodes, variables: Mapping[str, Variable]
) -> Iterator[dict[str, Any]]:
    number = 0
    for index, step in enumerate(steps):
        for each in step.operations:
            tiles = _tiles_of(each.op, variables)
            vertices = each.op if isinstance(each.op, Vertices) else None
            yield {
                "part": number,
                "operation": nodes.operation(each.op),
                "superstep": index,
                "kind": "copy" if vertices is None else "compute",
                "origin": origin_text(each.op),
                "line": shown(line_of(each.op)),
                "codelet": "" if vertices is None else shown(codelet_name(vertices)),
                "writes": shown(each.op.destination),
                "times": step.price.times,
                **place_of(tiles),
                "vertices": 0
                if vertices is None
                else vertex_count(vertices.space.data, vertices.plan.data),
                "compute_cycles": each.alone_compute,
                "exchange_cycles": each.alone_exchange,
                "exchange_bytes": int(each.charge.traffic.received.sum()),
                "charged_compute": each.compute_cycles,
                "charged_exchange": each.exchange_cycles,
                "critical_compute": each.critical_compute,
                "critical_exchange": each.critical_exchange,
            }
            number += 1


def place_of(tiles: Tiles) -> dict[str, int]:
    """The columns of a table that say which tiles something uses."""
    return {
        "first_tile": tiles.first,
        "tiles": tiles.count,
        "ranges": len(tiles.spans),
        "apart": tiles.apart,
    }


def _tiles_of(op: Charged, variables: Mapping[str, Variable]) -> Tiles:
    """The tiles that an operation writes to."""
    if isinstance(op, Vertices):
        return op.plan.data.tiles
    return variables[op.destination].placed.tiles


def execution_tables(
    module: ModuleOp, steps: Sequence[StepCharge], target: Target
) -> dict[str, Table]:
    """The executions of a run, in order, and what each chip does in each of them."""
    number = {each.step: k for k, each in enumerate(steps)}
    advances = {each.step: each.advance for each in steps}
    rows: list[dict[str, int]] = []
    chips: list[Integers] = []
    most = min(MOST_EXECUTIONS, MOST_CHIP_EXECUTIONS // target.chips)
    for k, each in enumerate(timeline(module, advances, target, most)):
        phases = [np.zeros_like(each.zones)] * 3
        if isinstance(each, Skipped):
            row = {"superstep": -1, "turns": each.iterations}
        else:
            row = {"superstep": number[each.step], "turns": 1}
            own = advances[each.step]
            phases = [own.sync_cycles, own.exchange_cycles, own.compute_cycles]
            phases = [cycles[each.zones] for cycles in phases]
        rows.append(row | {"start": each.start, "cycles": each.cycles})
        if target.chips > 1:
            execution = np.full_like(each.zones, k)
            times = each.arrives, each.starts, each.ends
            chips.append(np.stack([execution, each.zones, *times, *phases]))
    columns = (
        *("execution", "chip", "arrives", "start", "end"),
        *("sync_cycles", "exchange_cycles", "compute_cycles"),
    )
    whole = np.concatenate([np.zeros((len(columns), 0), np.int64), *chips], axis=1)
    return {
        "executions": rows_table("executions", rows),
        "chip_executions": table("chip_executions", dict(zip(columns, whole, strict=True))),
    }


# Traffic between tiles


def group_size(tiles: int) -> int:
    """Neighbouring tiles in a group of the exchange table."""
    return max(-(-tiles // GROUPS), 1)


def exchange_table(steps: Sequence[StepCharge], tiles: int) -> Table:
    """The bytes between groups of tiles, by superstep."""
    size = group_size(tiles)
    found: list[NDArray[np.int64]] = []
    exact: list[bool] = []
    for step in steps:
        sums = np.zeros((-(-tiles // size),) * 2, np.float64)
        # Every copy is counted, also those behind one that is not exact.
        each = [_add_traffic(sums, carried, size) for carried in step.charge.traffic.carried]
        found.append(np.rint(sums).astype(np.int64))
        exact.append(all(each))
    stacked = np.array(found).reshape(len(found), *(found[0].shape if found else (0, 0)))
    step, source, destination = np.nonzero(stacked)
    return table(
        "exchanges",
        {
            "superstep": step,
            "source": source,
            "destination": destination,
            "bytes": stacked[step, source, destination],
            "exact": np.array(exact, np.bool_)[step],
        },
    )


def _add_traffic(sums: NDArray[np.float64], carried: Carried, size: int) -> bool:
    """Add the bytes of one copy between pairs of groups. Returns whether they are exact."""
    shared, itemsize = carried
    received = shared.received
    if not received.any():
        return True
    groups = len(sums)
    if carried.pairs > MOST_PAIRS:
        sent = shared.sent.astype(np.float64)
        senders = np.bincount(
            shared.source.tiles.of(np.arange(len(sent))) // size, sent / max(sent.sum(), 1), groups
        )
        to = shared.destination.tiles.of(np.arange(len(received)))
        receivers = np.bincount(to // size, received, groups)
        sums += np.outer(senders, receivers) * itemsize
        return False
    flows = carried.flows()
    pair = flows.source // size * groups + flows.destination // size
    sums += np.bincount(pair, flows.bytes, groups * groups).reshape(groups, groups)
    return True
