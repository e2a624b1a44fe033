"""Decide how the work of every operator is cut over the tiles."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from ..backends.target import DEFAULT_TARGET, named_target, resolve_target
from ..dialects.abele import PlanAttr
from ..dialects.levels import LEVELS, NN
from ..dialects.structured import Structured
from ..ir.errors import InputError
from ..ir.provenance import place
from ..ir.upstream import Context, ModuleOp, ModulePass
from .planner.constrained import plan_program
from .planner.fineness import check_vertices, with_vertices
from .planner.relaxed import write_relaxed
from .plans.fused import FusedGroups
from .plans.planned import TARGET


@dataclass(frozen=True)
class PlanSplits(ModulePass):
    """Write a plan on every operation that computes or moves, and the target on the module.

    nn -> nn. Plans that operations already have are kept. A group has one plan, on its first
    operation.
    target: the target to plan for, as --target takes it; if none is given, the module's own, else
    mk2. constraints: a JSON file of constraints on operators, by the names of their nodes.
    memory_proportion: the part of a tile's usable memory that one operator may take for copies,
    partials and its result; if none is given, the file's, else 0.6. If no plan of an operator keeps
    this limit, it is doubled until one does, and an attribute of the module records it.
    vertices_per_tile: the most vertices of a compute set on a tile; one per worker if none is
    given. Workers take further vertices in turns. Splits do not depend on it. joint: choose the
    plans of operators that share a weight which the program changes together.

        nn.relu %0 : tensor<8x64xf32>
        nn.relu %0 {plan = #abele.plan<split [8, 64] workers [1, 1]>} : tensor<8x64xf32>
    """

    name = "plan-splits"
    takes = NN

    target: str = ""
    constraints: str = ""
    memory_proportion: float | int | None = None
    vertices_per_tile: int | None = None
    joint: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        _check_level(op)
        own = op.attributes.get(TARGET)
        named = own.data if isinstance(own, StringAttr) else DEFAULT_TARGET
        # The option is the user's own words and may name a file. The module may not.
        target = resolve_target(self.target) if self.target else named_target(named)
        if isinstance(own, StringAttr) and named_target(own.data) != target:
            raise InputError(
                f"the module is for target {own.data}; remove its plans and {TARGET}, or give "
                f'plan-splits{{target="{own.data}"}}'
            )
        if self.vertices_per_tile is not None:
            check_vertices(self.vertices_per_tile)
        with FusedGroups(op):
            planned = plan_program(
                op, target, self.constraints, self.memory_proportion, joint=self.joint
            )
            for each, plan in planned.network.plans.items():
                if self.vertices_per_tile is not None and isinstance(each, Structured):
                    plan = with_vertices(each.structure(), plan, self.vertices_per_tile)
                each.attributes["plan"] = PlanAttr(plan)
            op.attributes[TARGET] = StringAttr(target.spelling())
            write_relaxed(op, planned.relaxed(target))


_BELOW = frozenset(level.name for level in LEVELS if level != NN)


def _check_level(module: ModuleOp) -> None:
    """Raise InputError for a module below nn, in which splits are applied already."""
    for op in module.walk():
        if op.name.partition(".")[0] in _BELOW:
            raise InputError(f"{op.name} at {place(op)}: plan-splits plans modules of nn")
