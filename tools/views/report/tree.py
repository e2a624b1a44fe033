"""The control program as a tree: functions, calls, loops, branches, supersteps and their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ....backends.clocks.executions import Executions
from ....backends.clocks.program import ProgramClocks
from ....backends.clocks.section import MOST_TIMES
from ....backends.clocks.zones import zones_of
from ....backends.functions import callee_of, functions_of
from ....backends.prices.step_charges import StepCharge
from ....backends.target import Target
from ....dialects import control
from ....dialects.steps import Copy, Superstep
from ....ir.upstream import ModuleOp
from ....ir.well_known import ENTRY
from ...driver.shown_text import shown
from .columns import Table, rows_table
from .execution import dearest
from .nodes import Nodes, origin_text

MOST_NODES = 50_000
"""The most nodes of the tree. Later calls of a function that was shown already have no nodes
below."""


def tree_table(
    module: ModuleOp, steps: Sequence[StepCharge], nodes: Nodes, target: Target
) -> Table:
    """The control program, as one run executes it.

    The test and the body of a while count once; an if counts its dearer branch, as in the price.
    Cycles are those of the critical path. Where several nodes run a superstep, each has a share of
    them that is proportional to how often it runs it.
    """
    functions = functions_of(module)
    advances = {each.step: each.advance for each in steps}
    numbers = {each.step: k for k, each in enumerate(steps)}
    executions = Executions(
        ProgramClocks(functions, advances, zones_of(target, target.tiles).count)
    )
    walk = _Walk(functions, executions, steps, numbers, nodes)
    top = walk.add(-1, "function", f"@{ENTRY}", 1, None)
    walk.block(top, functions[ENTRY].body.block, (ENTRY,), 1)
    # What is left of the shares when they are rounded.
    cycles = sum(each.price.critical.total for each in steps)
    walk.rows[top]["exclusive_cycles"] = cycles - walk.rows[top]["inclusive_cycles"]
    walk.close(top)
    return rows_table("tree", walk.rows)


@dataclass
class _Walk:
    functions: Mapping[str, func.FuncOp]
    executions: Executions
    steps: Sequence[StepCharge]
    numbers: Mapping[Superstep, int]
    nodes: Nodes
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    shown: set[str] = field(default_factory=set[str])

    def add(self, parent: int, kind: str, name: str, times: int, op: Operation | None) -> int:
        """Add a node; returns its number. Its exclusive cycles begin as 0."""
        self.rows.append(
            {
                "node": len(self.rows),
                "parent": parent,
                "depth": 0 if parent < 0 else self.rows[parent]["depth"] + 1,
                "kind": kind,
                "name": shown(name),
                "operation": -1 if op is None else self.nodes.operation(op),
                "superstep": -1,
                "times": min(times, MOST_TIMES),
                "inclusive_cycles": 0,
                "exclusive_cycles": 0,
            }
        )
        return len(self.rows) - 1

    def close(self, node: int) -> None:
        """Add a node's inclusive cycles to the node around it."""
        row = self.rows[node]
        row["inclusive_cycles"] += row["exclusive_cycles"]
        if row["parent"] >= 0:
            self.rows[row["parent"]]["inclusive_cycles"] += row["inclusive_cycles"]

    def block(self, parent: int, block: Block, calling: tuple[str, ...], times: int) -> None:
        for op in block.ops:
            self._operation(parent, op, calling, times)

    def _operation(self, parent: int, op: Operation, calling: tuple[str, ...], times: int) -> None:
        match op:
            case Superstep():
                self._superstep(parent, op, times)
                return
            case control.RepeatOp():
                node = self.add(parent, "repeat", f"{op.iterations} times", times, op)
                self.block(node, op.body.block, calling, times * op.iterations)
            case control.WhileOp():
                node = self.add(parent, "while", "test and body once", times, op)
                for region in (op.test, op.body):
                    self.block(node, region.block, calling, times)
            case control.IfOp():
                node = self.add(parent, "if", "dearer branch", times, op)
                self.block(node, self.executions.clocks.dearer_branch(op, calling), calling, times)
            case func.CallOp():
                node = self._call(parent, op, calling, times)
            case _:
                return
        self.close(node)

    def _call(self, parent: int, op: func.CallOp, calling: tuple[str, ...], times: int) -> int:
        callee = callee_of(op, self.functions, calling)
        name = callee.sym_name.data
        node = self.add(parent, "call", f"@{name}", times, op)
        inside = (*calling, name)
        if name in self.shown and len(self.rows) > MOST_NODES:
            once = self.executions.block(callee.body.block, inside)
            cycles = sum(self._critical(step, times * n) for step, n in once.items())
            self.rows[node]["exclusive_cycles"] = min(cycles, MOST_TIMES)
        else:
            self.shown.add(name)
            self.block(node, callee.body.block, inside, times)
        return node

    def _critical(self, op: Superstep, times: int) -> int:
        """The cycles of the critical path in so many executions of a superstep."""
        price = self.steps[self.numbers[op]].price
        return price.critical.total * min(times, MOST_TIMES) // max(price.times, 1)

    def _superstep(self, parent: int, op: Superstep, times: int) -> None:
        number = self.numbers[op]
        step = self.steps[number]
        node = self.add(parent, "superstep", op.sym_name.data, times, None)
        self.rows[node] |= {"superstep": number, "operation": dearest(step, self.nodes)}
        left = self._critical(op, times)
        share = self.rows[node]["times"] / max(step.price.times, 1)
        for each in step.operations:
            kind = "copy" if isinstance(each.op, Copy) else "compute"
            part = self.add(node, "part", f"{kind} {origin_text(each.op)}", times, each.op)
            self.rows[part]["superstep"] = number
            own = round((each.critical_compute + each.critical_exchange) * share)
            self.rows[part]["exclusive_cycles"] = min(own, left)
            left -= min(own, left)
            self.close(part)
        self.rows[node]["exclusive_cycles"] = left
        self.close(node)
