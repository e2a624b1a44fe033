"""Group numbered copies and compute sets into supersteps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation

from ..backends.meetings import chips_that_meet
from ..backends.prices.price import variables_of
from ..backends.target import Target
from ..dialects import tile
from ..dialects.levels import TILE
from ..dialects.steps import OUTSIDE, Copy, Input, Load, Output, Store, Sync, zone_of
from ..dialects.superstep import conflict
from ..dialects.variable import Variable
from ..ir.provenance import locate, origin, place
from ..ir.support.errors import InputError
from ..ir.support.unused_names import UnusedNames
from ..ir.upstream import Context, ModuleOp, ModulePass
from .plans.planned import TARGET, target_of
from .schedule_supersteps import SUPERSTEP, scheduled_blocks


@dataclass(frozen=True)
class GroupSupersteps(ModulePass):
    """Group operations with the same number into a superstep: sync, copies, vertices.

    tile -> tile. Chips between which words travel meet before. Chips that copies join, directly or
    through others, are one group; several groups of a superstep do not wait for each other.

        tile.copy [@x] -> @in {superstep = 0 : i64}
        tile.compute_set @y { tile.vertices ... } {superstep = 0 : i64}

    becomes

        tile.superstep @y { tile.sync "internal" tile.copy [@x] -> @in tile.vertices ... }
    """

    name = "group-supersteps"
    takes = TILE
    decided = "addressed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        names = UnusedNames()
        target = target_of(op) if TARGET in op.attributes else None
        variables = variables_of(op)
        for block in list(scheduled_blocks(op)):
            for group in _groups(block):
                _group(group, names, _sync(group, variables, target))


def _sync(
    group: Sequence[Operation], variables: Mapping[str, Variable], target: Target | None
) -> Sync:
    """The sync of a superstep. It names no group if all chips meet."""
    host = any(isinstance(op, OUTSIDE) for op in group)
    if target is None or target.chips == 1:
        return tile.SyncOp(zone_of(host=host))
    chips = chips_that_meet(group, variables, target)
    everybody = chips is None or chips.groups == (tuple(range(target.chips)),)
    zone = zone_of(host=host, chips=chips is not None)
    return tile.SyncOp(zone, None if everybody else chips)


def _groups(block: Block) -> list[list[Operation]]:
    """The runs of consecutive operations with equal superstep numbers, in order."""
    groups: list[list[Operation]] = []
    last: int | None = None
    for op in block.ops:
        own = op.attributes.get(SUPERSTEP)
        number = own.value.data if isinstance(own, IntegerAttr) else None
        if number is not None and number == last:
            groups[-1].append(op)
        elif number is not None:
            groups.append([op])
        last = number
    return groups


def _group(group: Sequence[Operation], names: UnusedNames, sync: Sync) -> None:
    """Move a group into a superstep at the place of its first operation."""
    _check_at_once(group)
    block = group[0].parent
    assert block is not None
    before, last = group[0], group[-1]
    step = tile.SuperstepOp(names.unused(_name(last)), [sync])
    locate(step, last)
    block.insert_op_before(step, before)
    for op in group:
        op.detach()
        del op.attributes[SUPERSTEP]
        if isinstance(op, tile.ComputeSetOp):
            for vertices in list(op.body.block.ops):
                vertices.detach()
                step.body.block.add_op(vertices)
            op.erase()
        else:
            step.body.block.add_op(op)


def _name(last: Operation) -> str:
    """A name for a superstep: that of its compute set, or of the value that it copies."""
    if isinstance(last, tile.ComputeSetOp):
        return last.sym_name.data
    if isinstance(last, Input | Output):
        return "host"
    if isinstance(last, Load | Store):
        return "remote"
    return origin(last) or "exchange"


def _check_at_once(group: Sequence[Operation]) -> None:
    """Raise InputError if the operations of a group cannot share a superstep."""
    for op in group:
        if not isinstance(op, (tile.ComputeSetOp, Copy, *OUTSIDE)):
            raise InputError(f"{op.name} at {place(op)}: cannot be part of a superstep")
    found = conflict(group)
    if found is not None:
        raise InputError(
            f"{found.op.name} at {place(found.op)}: not in the superstep of the operations before "
            f"it, since it {found.problem}; give it a later number"
        )
