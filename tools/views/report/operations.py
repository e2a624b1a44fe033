"""The tables of operations and plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ....backends.target import Target
from ....dialects.abele import PlanAttr
from ....dialects.steps import Vertices
from ....ir.provenance import origin
from ....passes.planner.choice import Choice
from ....passes.planner.constrained import plan_program
from ....passes.planner.serial import plans
from ....passes.plans.fused import FusedGroups, operator_name
from ....passes.plans.sparse_prices import SparsePrice
from ...driver.keep_plans import KeptPlans
from ...driver.shown_text import shown
from ..planning.figures import OperatorPlan, figures, macs, split_text
from ..planning.plan import executions_of
from .columns import Table, rows_table
from .nodes import Nodes


@dataclass(frozen=True)
class Planned:
    """A plan of an operator of nn, and the operation that it belongs to.

    Attributes:
        every: the priced plans, the chosen one first.
    """

    operation: int
    macs: int
    figures: OperatorPlan
    every: tuple[Choice, ...]

    @property
    def run_cycles(self) -> float:
        """Cycles of a run, as the planner estimates them."""
        return self.figures.times * self.figures.cycles


def planned_operators(kept: KeptPlans, target: Target, nodes: Nodes) -> tuple[Planned, ...]:
    """The plans of all operators, with the best other plans that the search has priced."""
    module = kept.module.clone()
    FusedGroups(module).fuse()
    network = plan_program(module, target, "", kept.proportion).network
    found: list[Planned] = []
    for op, choice in network.choices.items():
        question = network.questions[op]
        node = origin(op) or ""
        own = figures(
            node, node, operator_name(op), executions_of(op), question, choice, others=plans
        )
        others = tuple(each for each in plans(question) if each.plan != choice.plan)
        found.append(Planned(nodes.add(op), macs(question.problem), own, (choice, *others)))
    return tuple(found)


def plan_table(planned: Sequence[Planned]) -> Table:
    """The plans."""
    return rows_table("plans", map(_plan_row, planned))


def sparse_table(prices: Sequence[SparsePrice]) -> Table:
    """The products that were looked at for zeros."""
    names = "node", "matrix", "block", "held", "verdict"
    return rows_table(
        "sparse_products",
        (
            {name: getattr(each, name) for name in names}
            | {"node": shown(each.node), "dense": _known(each.dense), "sparse": _known(each.sparse)}
            for each in prices
        ),
    )


def _known(cycles: float) -> float:
    return cycles if np.isfinite(cycles) else np.nan


def _plan_row(each: Planned) -> dict[str, Any]:
    own, other = each.figures, each.figures.runner_up
    row: dict[str, Any] = {
        "operation": each.operation,
        "node": shown(own.node),
        "kind": own.op,
        "plan": PlanAttr(own.plan).text(),
        "estimated_cycles": own.cycles,
        "macs": each.macs,
        "runner_up": "" if other is None else split_text(own.dims, other.plan),
        "runner_up_cycles": np.nan if other is None else other.cycles,
    }
    for name in (
        *("space", "split", "tiles", "times", "compute_cycles", "exchange_cycles", "sync_cycles"),
        *("combine_cycles", "utilisation", "peak", "temporary_bytes", "resident_bytes"),
        "partials",
        *("limit_bytes", "limited_by"),
    ):
        row[name] = getattr(own, name)
    return row


def operation_table(
    nodes: Nodes,
    parts: Table,
    supersteps: Table,
    variables: Table,
    planned: Sequence[Planned],
    vertex_plans: Mapping[int, Vertices],
    kinds: Mapping[int, str],
    made: Mapping[int, Mapping[str, str]],
) -> Table:
    """The operations. Their cycles add up to those of the program.

    Args:
        vertex_plans: the vertex set with the longest compute of each operation, whose plan is shown
            if the planner's is unknown.
        kinds: the kind of each operation at the highest level.
        made: the columns shape and attributes of each operation.
    """
    count = len(nodes.groups)
    sums = attributed(parts, supersteps, count)
    dearest = dearest_plans(planned)
    work = np.zeros(count, np.float64)
    for each in planned:
        if each.operation >= 0:
            work[each.operation] += float(each.macs * each.figures.times)
    owned = variables_of_operations(variables, count)
    names, layers, texts = nodes.names(), nodes.layers(), nodes.texts()
    phases = nodes.phase_names()
    rows: list[dict[str, Any]] = []
    for k in range(count):
        best, vertices = dearest.get(k), vertex_plans.get(k)
        row: dict[str, Any] = {
            "operation": k,
            "name": names[k],
            "nodes": texts[k],
            "layer": layers[k],
            "kind": kinds.get(k, "") if best is None else best.figures.op,
            "phase": phases[k],
            "line": nodes.line(k),
            "shape": "",
            "attributes": "",
            **made.get(k, {}),
            "macs": int(min(work[k], 2.0**62)),
            **{name: values[k] for name, values in sums.items()},
            **{name: values[k] for name, values in owned.items()},
        }
        row |= _chosen(best, vertices, float(row["cycles"]))
        rows.append(row)
    return rows_table("operations", rows)


def dearest_plans(planned: Sequence[Planned]) -> dict[int, Planned]:
    """For each operation, the plan that takes the most cycles."""
    found: dict[int, Planned] = {}
    for each in planned:
        best = found.get(each.operation)
        if best is None or each.run_cycles > best.run_cycles:
            found[each.operation] = each
    return found


def alternative_table(planned: Sequence[Planned]) -> Table:
    """The alternatives to the plan of the dearest operator of each operation."""
    rows: list[dict[str, Any]] = []
    for operation, best in dearest_plans(planned).items():
        costs = np.array([[c.cycles, c.temporary_bytes] for c in best.every], np.float64)
        no_worse = np.all(costs[None] <= costs[:, None], axis=2)
        better = np.any(costs[None] < costs[:, None], axis=2)
        dominated: NDArray[np.bool_] = np.any(no_worse & better, axis=1)
        for k, each in enumerate(best.every):
            rows.append(
                {
                    "operation": operation,
                    "plan": PlanAttr(each.plan).text(),
                    "split": split_text(best.figures.dims, each.plan),
                    "cycles": each.cycles,
                    "temporary_bytes": each.temporary_bytes,
                    "resident_bytes": each.resident_bytes,
                    "tiles": each.cells,
                    "chosen": k == 0,
                    "pareto": not bool(dominated[k]),
                }
            )
    return rows_table("alternatives", rows)


def _chosen(best: Planned | None, vertices: Vertices | None, cycles: float) -> dict[str, Any]:
    """The columns about the plan of an operation."""
    row: dict[str, Any] = {
        "utilisation": np.nan,
        "runner_up_slower": np.nan,
        **dict.fromkeys(("peak", "plan", "split", "method", "partials"), ""),
        **dict.fromkeys(("runner_up", "limited_by"), ""),
    }
    if best is not None:
        own, other = best.figures, best.figures.runner_up
        # Charged cycles replace the planner's estimate.
        row |= {
            "utilisation": own.utilisation * best.run_cycles / cycles if cycles else np.nan,
            "peak": own.peak,
            "plan": PlanAttr(own.plan).text(),
            "split": own.split,
            "method": own.plan.method,
            "partials": own.partials,
            "limited_by": own.limited_by,
        }
        if other is not None:
            row |= {
                "runner_up": split_text(own.dims, other.plan),
                "runner_up_slower": other.slower,
            }
    elif vertices is not None:
        plan = vertices.plan.data
        row |= {
            "plan": PlanAttr(plan).text(),
            "split": split_text(vertices.space.data.dims, plan),
            "method": plan.method,
        }
    return row


def attributed(parts: Table, supersteps: Table, count: int) -> dict[str, Any]:
    """The sums over all parts of each operation; every cycle of a run belongs to one operation.

    Cycles are those of the critical path. The sync of a superstep, and cycles of parts without an
    operation, are shared by its operations in proportion to their cycles.
    """
    part = {name: np.asarray(parts[name]) for name in parts if not isinstance(parts[name], list)}
    step = {n: np.asarray(supersteps[n]) for n in ("times", "critical_sync")}
    operation, superstep = part["operation"], part["superstep"]
    own = operation >= 0
    of_step = superstep[own]
    steps = len(step["times"])
    compute, exchange = (
        part[n][own].astype(np.float64) for n in ("critical_compute", "critical_exchange")
    )
    alone = compute + exchange
    total = np.bincount(of_step, alone, steps)
    members = np.bincount(of_step, minlength=steps)
    even = total[of_step] == 0
    share = np.where(
        even, 1 / np.maximum(members[of_step], 1), alone / np.where(even, 1, total[of_step])
    )
    times = step["times"][of_step].astype(np.float64)
    lost = {
        name: np.bincount(superstep[~own], part[name][~own], steps)
        for name in ("critical_compute", "critical_exchange")
    }
    compute = compute + share * lost["critical_compute"][of_step]
    exchange = exchange + share * lost["critical_exchange"][of_step]
    sync = share * step["critical_sync"][of_step]
    number = operation[own]
    # A superstep that only waits for the host has no parts, and is an operation of its own.
    waits = np.flatnonzero((members == 0) & (np.asarray(supersteps["operation"]) >= 0))
    waiting = np.asarray(supersteps["operation"])[waits]

    def summed(values: Any) -> Any:
        return np.minimum(np.bincount(number, values, count), 2.0**62)

    waited = np.bincount(waiting, step["critical_sync"][waits], count)
    sums = (summed(compute), summed(exchange), summed(sync) + waited)
    whole = [np.rint(each).astype(np.int64) for each in sums]
    first = np.full(count, steps, np.int64)
    np.minimum.at(first, number, of_step)
    pairs = np.unique(number * max(steps, 1) + of_step) // max(steps, 1)
    return {
        "first_superstep": np.where(first == steps, -1, first),
        "supersteps": np.bincount(pairs, minlength=count),
        "cycles": sum(whole),
        "compute_cycles": whole[0],
        "exchange_cycles": whole[1],
        "sync_cycles": whole[2],
        "exchange_bytes": summed(part["exchange_bytes"][own] * times).astype(np.int64),
        "vertices": np.bincount(number, part["vertices"][own], count).astype(np.int64),
    }


def variables_of_operations(variables: Table, count: int) -> dict[str, Any]:
    """The bytes of the variables of each operation."""
    owner = np.asarray(variables["operation"])
    size, own_tile = (np.asarray(variables[n]) for n in ("bytes", "bytes_per_tile"))
    resident = np.array([kind != "value" for kind in variables["kind"]], np.bool_)
    at_peak = np.asarray(variables["at_peak"])

    def summed(values: Any, where: Any) -> Any:
        kept = where & (owner >= 0)
        return np.bincount(owner[kept], values[kept], count).astype(np.int64)

    return {
        "resident_bytes": summed(size, resident),
        "value_bytes": summed(size, ~resident),
        "peak_bytes": summed(own_tile, at_peak),
    }


def kinds_of(ops: Sequence[Operation], nodes: Nodes) -> dict[int, str]:
    """For each number, the name of its first operation in the IR."""
    found: dict[int, str] = {}
    for op in ops:
        number = nodes.known_operation(op)
        if number >= 0 and not op.regions:
            found.setdefault(number, op.name)
    return found
