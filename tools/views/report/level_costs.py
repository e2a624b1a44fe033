"""The costs of each operation of a level, for files that show the levels as graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from ....backends.prices.price_operations import Priced
from ....backends.target import Target
from ....dialects.levels import EXCHANGE, LEVEL_DIALECTS, NN, PARTITION, level_named
from ....dialects.partition import ComputeOp, RelayoutOp
from ....dialects.steps import Copy, Superstep, Vertices
from ....ir.support.by_class import entry_for
from ....ir.upstream import ModuleOp
from ....ir.xdsl.walk import operations
from ...driver.extensions.added_level import ADDED
from ...driver.shown_text import shown
from .collect import Report
from .folder import rows_of
from .nodes import Nodes, origin_text

Costs = dict[str, int | float | str]
"""Figures of one run, by name."""

Row = dict[str, Any]

KINDS: Mapping[type[Operation], str] = {
    ComputeOp: "compute",
    Vertices: "compute",
    RelayoutOp: "copy",
    Copy: "copy",
}
"""The kind of each class of operation in the table of parts."""

OF_OPERATIONS = (
    *("cycles", "compute_cycles", "exchange_cycles", "sync_cycles", "exchange_bytes", "vertices"),
    *("macs", "utilisation", "limited_by", "resident_bytes", "peak_bytes", "plan", "runner_up"),
)
"""Columns of the table of operations that become costs of operators at nn."""

OF_SUPERSTEPS: Mapping[str, str] = {
    "cycles": "critical_cycles",
    "compute_cycles": "critical_compute",
    "exchange_cycles": "critical_exchange",
    "sync_cycles": "critical_sync",
}
"""The costs of a superstep at exchange, over a run, and their columns of the table."""

OF_ONE_SUPERSTEP = ("times", "balance", "busy_tiles", "critical_tile", "live_bytes")
"""Columns of the table of supersteps that are the same in every execution."""

COUNTED = "counted_in"
"""The figure of an operation whose costs are part of another operation's: the latter's origin."""


ESTIMATED = "estimated_cycles"
"""The figure of an operation of a user's level that the price of the level gives."""


def level_costs(
    level: str, module: ModuleOp, report: Report, nodes: Nodes, target: Target
) -> dict[Operation, Costs]:
    """The costs of the operations of one level.

    At nn: the costs of the report's operations; one operator includes those that were fused with
    it. At other levels: the costs of copies and compute sets, without sync. At exchange, also those
    of supersteps. At a user's level: those of the level that it is like, and what its price says
    of the user's operations.
    """
    own = level_named(level).form
    if own == NN:
        found = _of_operations(module, rows_of(report.tables["operations"]), nodes)
    else:
        column = "origin" if own == PARTITION else "writes"
        found = _of_parts(module, rows_of(report.tables["parts"]), column)
    if own == EXCHANGE:
        found |= _of_supersteps(module, rows_of(report.tables["supersteps"]))
    for op, cycles in _estimated(level, module, target).items():
        found[op] = {**found.get(op, {}), ESTIMATED: cycles}
    return found


def _estimated(level: str, module: ModuleOp, target: Target) -> dict[Operation, float]:
    """What the price of a user's level says of its operations; nothing if it has no price."""
    price = ADDED[level].price if level in ADDED else None
    if price is None:
        return {}
    own = {op.name.partition(".")[0] for op in operations(module)} & LEVEL_DIALECTS.keys()
    return {
        op: round(price(op, target), 1)
        for op in operations(module)
        if op.name.partition(".")[0] in own and not op.has_trait(IsTerminator)
    }


def _of_operations(module: ModuleOp, rows: list[Row], nodes: Nodes) -> dict[Operation, Costs]:
    members: dict[int, list[Operation]] = {}
    for op in module.walk():
        number = nodes.known_operation(op)
        if number >= 0 and op.results:
            members.setdefault(number, []).append(op)
    found: dict[Operation, Costs] = {}
    for number, ops in members.items():
        row = rows[number]
        # The planned operator carries the costs of the operations fused with it.
        first = next((op for op in ops if op.name == row["kind"]), ops[0])
        found |= _counted(ops, first)
        found[first] = {n: row[n] for n in OF_OPERATIONS if row[n] not in (None, "")}
    return found


def _counted(ops: Iterable[Operation], first: Operation) -> dict[Operation, Costs]:
    return {op: {COUNTED: origin_text(first)} for op in ops if op is not first}


# Parts: copies and compute sets


def _of_parts(module: ModuleOp, rows: list[Row], column: str) -> dict[Operation, Costs]:
    """The sums of the parts of each operation.

    If a kind and a value of this column have as many operations as parts, they are matched in
    order. If not, the first operation includes all of the parts.

    Args:
        column: the column that assigns parts to operations.
    """
    ops: dict[tuple[str, str], list[Operation]] = {}
    for op in module.walk():
        kind = entry_for(KINDS, type(op))
        if kind is not None:
            text = shown(op.destination) if isinstance(op, Priced) else origin_text(op)
            ops.setdefault((kind, text), []).append(op)
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        parts.setdefault((row["kind"], row[column]), []).append(row)
    found: dict[Operation, Costs] = {}
    for key, own in ops.items():
        theirs = parts.get(key, [])
        if len(own) == len(theirs):
            found |= {op: _sum([row]) for op, row in zip(own, theirs, strict=True)}
        elif theirs:
            found |= _counted(own, own[0])
            found[own[0]] = _sum(theirs)
    return found


def _sum(rows: list[Row]) -> Costs:
    compute = round(sum(row["critical_compute"] for row in rows))
    exchange = round(sum(row["critical_exchange"] for row in rows))
    costs: Costs = {
        "cycles": compute + exchange,
        "compute_cycles": compute,
        "exchange_cycles": exchange,
        "exchange_bytes": sum(row["times"] * row["exchange_bytes"] for row in rows),
        "vertices": sum(row["vertices"] for row in rows),
        "tiles": max(row["tiles"] for row in rows),
    }
    times = max(row["times"] for row in rows)
    return costs | {"times": times} if times > 1 else costs


def _of_supersteps(module: ModuleOp, rows: list[Row]) -> dict[Operation, Costs]:
    steps = [op for op in module.walk() if isinstance(op, Superstep)]
    return {
        op: {name: row[column] for name, column in OF_SUPERSTEPS.items()}
        | {"exchange_bytes": row["times"] * row["exchange_bytes"]}
        | {name: row[name] for name in OF_ONE_SUPERSTEP}
        for op, row in zip(steps, rows, strict=True)
    }


def operation_texts(report: Report) -> Mapping[int, Mapping[str, str]]:
    """The name, layer, phase and line of each operation of the report, by its number."""
    names = {"name": "operation", "layer": "layer", "phase": "phase", "line": "line"}
    return {
        row["operation"]: {name: row[column] for column, name in names.items() if row[column]}
        for row in rows_of(report.tables["operations"])
    }
