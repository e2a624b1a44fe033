"""Decide how the work of every operator is cut over the tiles."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation

from ..backends.target import PRESETS, Target, named_target
from ..backends.target.dtype_kinds import lacks
from ..dialects import nn
from ..dialects.abele import PlanAttr
from ..dialects.dtypes import numpy_dtype
from ..dialects.home import Home, drop_home, home_of
from ..dialects.levels import LEVELS, NN
from ..dialects.structured import Structured
from ..dialects.variable import bytes_per_tile
from ..ir.geometry.layout import placement
from ..ir.provenance import place
from ..ir.support.errors import DoesNotFit, InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from .planner.fineness import check_vertices, with_vertices
from .planner.relaxed import write_relaxed
from .planner.storing_once import Asked, store_once
from .plans.beside import wish_homes
from .plans.fused import FusedGroups
from .plans.homes import Homes
from .plans.parts import Part, Parts
from .plans.planned import ONE_CHIP, TARGET, asked_target
from .plans.remote_memory import check_remote_states


@dataclass(frozen=True)
class PlanSplits(ModulePass):
    """Write a plan on every operation that computes or moves, and the target on the module.

    nn -> nn. Plans that operations already have are kept. A group has one plan, on its first
    operation. Readers of a constant with the contents of a weight share the weight if that is
    better.

        nn.relu %0 : tensor<8x64xf32>
        nn.relu %0 {plan = #abele.plan<split [8, 64] workers [1, 1]>} : tensor<8x64xf32>

    Attributes:
        target: the target to plan for, in the syntax of --target; if none is given, the module's
            own, else mk2.
        constraints: a JSON file of constraints on operators, by the names of their nodes.
        memory_proportion: the part of a tile's usable memory that one operator may take for copies,
            partials and its result; if none is given, the file's, else 0.6. If no plan of an
            operator keeps this limit, it is doubled until one does, and an attribute of the module
            records it.
        shard: which dimensions of which operators are cut across chips, as NAME:DIM=N.
        vertices_per_tile: the most vertices of a compute set on a tile; one per worker if none is
            given. Workers take further vertices in turns. Splits do not depend on it.
        joint: choose the plans of operators that share a weight which the program changes together.
        spare: by how many bytes of a tile the plans are smaller than those chosen without this
            option. The variables of these did not fit: plans are chosen by an estimate of memory.
            DoesNotFit is raised if no plans are found that are so small.
    """

    name = "plan-splits"
    takes = NN

    target: str = ""
    constraints: str = ""
    memory_proportion: float | int | None = None
    shard: tuple[str, ...] = ()
    vertices_per_tile: int | None = None
    joint: bool = True
    spare: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        _check_level(op)
        own = op.attributes.get(TARGET)
        target = asked_target(op, self.target)
        if isinstance(own, StringAttr) and named_target(own.data) != target:
            raise InputError(
                f"the module is for target {own.data}; remove its plans and {TARGET}, or give "
                f'plan-splits{{target="{own.data}"}}'
            )
        if self.vertices_per_tile is not None:
            check_vertices(self.vertices_per_tile)
        _check_units(op, target)
        wish_homes(op)
        _check_homes(op, target)
        check_remote_states(op, target)
        _check_chips(op, target)
        asked = Asked(self.constraints, self.memory_proportion, self.joint, shards=self.shard)
        if self.spare:
            asked = replace(asked, spare=self._spare(op, target, asked))
        store_once(op, target, asked)
        with FusedGroups(op):
            planned = asked.planned(op, target)
            needed = planned.network.bytes_per_tile
            room = target.usable_bytes_per_tile - asked.spare
            if self.spare and needed > room:
                raise DoesNotFit("the planned program", needed, room)
            for each, plan in planned.network.plans.items():
                if self.vertices_per_tile is not None and isinstance(each, Structured):
                    plan = with_vertices(each.structure(), plan, self.vertices_per_tile)
                each.attributes["plan"] = PlanAttr(plan)
            op.attributes[TARGET] = StringAttr(target.spelling())
            op.attributes.pop(ONE_CHIP, None)
            if planned.network.one_chip:
                op.attributes[ONE_CHIP] = UnitAttr()
            write_relaxed(op, planned.relaxed(target))
            _decide_homes(op, planned.network.at_home, target)

    def _spare(self, module: ModuleOp, target: Target, asked: Asked) -> int:
        """The bytes of a tile that smaller plans leave free."""
        first = module.clone()
        store_once(first, target, asked)
        with FusedGroups(first):
            needed = asked.planned(first, target).network.bytes_per_tile
        usable = target.usable_bytes_per_tile
        room = min(needed, usable) - self.spare
        if self.spare < 0 or room <= 0:
            raise InputError(f"spare {self.spare}; the plans need {needed} bytes of a tile")
        return usable - room


def _check_units(module: ModuleOp, target: Target) -> None:
    """Raise InputError for products of 8-bit floats on a target without units for them."""
    for op in module.walk():
        if not isinstance(op, Structured) or not op.structure().body.is_scaled_product:
            continue
        element = nn.element_of(op.operands[0])
        if lacks(numpy_dtype(element).name, target):
            able = [name for name in PRESETS if not lacks(numpy_dtype(element).name, PRESETS[name])]
            raise InputError(
                f"{op.name} at {place(op)}: operands of {element}, for which target "
                f"{target.called} has no units; need one of {', '.join(able)}, or a cast of the "
                "operands to f16"
            )


def _homes(module: ModuleOp) -> list[tuple[nn.StateOp | nn.ConstantOp, Home]]:
    """The states and constants that have a home, with it."""
    return [
        (op, home)
        for op in module.walk()
        if isinstance(op, nn.StateOp | nn.ConstantOp) and (home := home_of(op)) is not None
    ]


def _check_homes(module: ModuleOp, target: Target) -> None:
    """Raise InputError for a home that names tiles or addresses which the target does not have."""
    for op, home in _homes(module):
        name = f"@{op.sym_name.data}" if isinstance(op, nn.StateOp) else op.name
        end = home.layout.tiles.end
        if end > target.tiles:
            raise InputError(
                f"{name} at {place(op)}: home on tiles up to {end - 1}; target {target.called} has "
                f"0..{target.tiles - 1}"
            )
        if home.reload is None and not Part.of(target).has(home.layout):
            raise InputError(
                f"{name} at {place(op)}: home on tiles {home.layout.tiles}, some of which are I/O "
                "tiles; need others"
            )
        end = (home.address or 0) + bytes_per_tile(home.layout, op.value.array.itemsize)
        if end > target.usable_bytes_per_tile:
            raise InputError(
                f"{name} at {place(op)}: home up to byte {end - 1}; target {target.called} has "
                f"{target.usable_bytes_per_tile:,} bytes per tile for programs"
            )


def _check_chips(module: ModuleOp, target: Target) -> None:
    """Raise InputError for a constant whose home is not on the chips of its function.

    Gives up the homes of states and constants that are wishes for tiles of other chips.
    """
    parts = Parts(module, target, Part.of(target))
    for op, home in _homes(module):
        part = parts.owners[op.sym_name.data] if isinstance(op, nn.StateOp) else parts.around(op)
        if part.has(home.layout):
            continue
        if home.reload is None:
            raise InputError(
                f"{op.name} at {place(op)}: home on tiles {home.layout.tiles}; its function lies "
                f"on chips {part.placement}"
            )
        drop_home(op)


def _decide_homes(module: ModuleOp, at_home: Collection[Operation], target: Target) -> None:
    """Remove the homes that are wishes and that the plans do not keep."""
    wishes = [(op, home) for op, home in _homes(module) if home.reload is not None]
    # A state that no operator's plan places is at home if it would lie there anyway.
    rest = [(op, home) for op, home in wishes if op not in at_home]
    for op, _ in rest:
        drop_home(op)
    homes = Homes(module, target)
    for op, home in rest:
        lies = homes.states[op.sym_name.data] if isinstance(op, nn.StateOp) else homes.constant(op)
        if placement(lies) == placement(home.layout):
            op.attributes |= home.attributes


_BELOW = frozenset(level.name for level in LEVELS if level != NN)


def _check_level(module: ModuleOp) -> None:
    """Raise InputError for a module below nn, where splits have already been applied."""
    for op in module.walk():
        if op.name.partition(".")[0] in _BELOW:
            raise InputError(f"{op.name} at {place(op)}: plan-splits plans modules of nn")
