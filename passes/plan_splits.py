"""Decide how the work of every operator is cut over the tiles."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr

from ..backends.target import DEFAULT_TARGET, resolve_target
from ..dialects.abele import PlanAttr
from ..dialects.levels import LEVELS, NN
from ..dialects.structured import Structured
from ..ir.errors import InputError
from ..ir.provenance import place
from ..ir.upstream import ModuleOp, ModulePass
from .convert_nn_to_partition import TARGET
from .planner.constrained import plan_program
from .planner.fineness import check_vertices, with_vertices
from .planner.relaxed import write_relaxed


@dataclass(frozen=True)
class PlanSplits(ModulePass):
    """Write a plan on every operation that computes or moves, and the target on the module.
    nn -> nn.

    Plans that are there already are kept. target: what to plan for, as --target spells it; the
    module's own if none is given, else mk2. constraints: a JSON file of choices for operators,
    by their nodes' names. memory_proportion: how much of a tile's usable memory one operator may
    take for copies, partials and its result; the file's own if none is given, else 0.6. Where no
    plan of an operator keeps it, the limit is doubled until one does, and the module says so.
    vertices_per_tile: how fine the work of a tile is cut, as many vertices of each compute set at
    most; one a worker if none is given. Workers take more of them in turns. Splits stay the same.

        nn.relu %0 : tensor<8x64xf32>
        nn.relu %0 {plan = #abele.plan<split [8, 64] workers [1, 1]>} : tensor<8x64xf32>
    """

    name = "plan-splits"
    takes = NN

    target: str = ""
    constraints: str = ""
    memory_proportion: float | int | None = None
    vertices_per_tile: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        _check_level(op)
        own = op.attributes.get(TARGET)
        named = own.data if isinstance(own, StringAttr) else DEFAULT_TARGET
        target = resolve_target(self.target or named)
        if isinstance(own, StringAttr) and resolve_target(own.data) != target:
            raise InputError(
                f"the module is for target {own.data}; remove its plans and {TARGET}, or give "
                f'plan-splits{{target="{own.data}"}}'
            )
        if self.vertices_per_tile is not None:
            check_vertices(self.vertices_per_tile)
        planned = plan_program(op, target, self.constraints, self.memory_proportion)
        for each, plan in planned.network.plans.items():
            if self.vertices_per_tile is not None and isinstance(each, Structured):
                plan = with_vertices(each.structure(), plan, self.vertices_per_tile)
            each.attributes["plan"] = PlanAttr(plan)
        op.attributes[TARGET] = StringAttr(target.spelling())
        write_relaxed(op, planned.relaxed(target))


_BELOW = frozenset(level.name for level in LEVELS if level != NN)


def _check_level(module: ModuleOp) -> None:
    """Raise InputError for a module that is below nn, where splits are applied already."""
    for op in module.walk():
        if op.name.partition(".")[0] in _BELOW:
            raise InputError(f"{op.name} at {place(op)}: plan-splits plans modules of nn")
