"""Which chips have to meet in a superstep, and whether they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from xdsl.ir import Operation

from ..dialects.steps import OUTSIDE, Copy, Superstep, Sync
from ..dialects.variable import Variable
from ..ir.geometry.chip_groups import ChipGroups
from ..ir.provenance import origin, place
from ..ir.support.arrays import Integers
from ..ir.upstream import ModuleOp
from .clocks.section import Components
from .clocks.syncs import groups_of
from .fabrics.chip_flows import Chips
from .fabrics.traffic import Carried
from .faults import MachineFault
from .prices.price import copy_overlaps, moved_variable
from .target import Target


def joined_by(op: Copy, variables: Mapping[str, Variable], chip_tiles: int) -> Integers:
    """The pairs of chips between which a copy moves elements, each once: (pairs, 2), the source
    first.

    Args:
        chip_tiles: the tiles of a chip.
    """
    overlaps = copy_overlaps(op, variables)
    ends = [(each.source.tiles, each.destination.tiles) for each in overlaps]
    chips = 1 + max((t.end - 1 for pair in ends for t in pair), default=0) // chip_tiles
    pairs, _ = Chips(chips, chip_tiles).pairs(Carried(shared, 1) for shared in overlaps)
    return np.stack(np.divmod(pairs, chips), axis=1)


def chips_that_meet(
    ops: Iterable[Operation], variables: Mapping[str, Variable], target: Target
) -> ChipGroups | None:
    """The groups of chips that meet in a superstep of these operations; None if none has to.

    Chips that copies join, directly or through others, are one group, because they have to meet at
    once. Others need not wait for them. The host meets all chips whose variables it reads or fills,
    together with those that copies join.
    """
    size, chips = target.tiles_per_chip, target.chips
    pairs = [np.zeros((0, 2), np.int64)]
    host: list[Integers] = []
    for op in ops:
        if isinstance(op, Copy):
            pairs.append(joined_by(op, variables, size))
        elif isinstance(op, OUTSIDE):
            host.append(moved_variable(op, variables).placed.tiles.used_chips(size))
    joined = np.concatenate(pairs)
    if host:
        return target.links.meeting_groups(
            ChipGroups.of([np.unique(np.concatenate([*host, joined.ravel()])).tolist()])
        )
    if not len(joined):
        return None
    members = Components.of(joined[:, 0], joined[:, 1], max(chips, int(joined.max()) + 1)).members
    first = np.unique(members[joined[:, 0], 0])
    return target.links.meeting_groups(
        ChipGroups.of(np.unique(members[chip]).tolist() for chip in first)
    )


def check_meetings(module: ModuleOp, variables: Mapping[str, Variable], target: Target) -> None:
    """Raise MachineFault for the first superstep that moves words between chips which do not meet
    at its sync, or between the host and a chip that does not meet it.

    Without the meeting, a chip could receive words before it is done with what they replace, or
    before their sender has computed them.
    """
    for step in module.walk():
        if isinstance(step, Superstep):
            sync = _sync_of(step)
            if sync is not None and sync.chips is not None and sync.chips.last >= target.chips:
                _refuse(step, sync, f"chip {sync.chips.last} of {target.chips}")
            if target.chips > 1:
                _check_meeting(step, variables, target)


def _check_meeting(step: Superstep, variables: Mapping[str, Variable], target: Target) -> None:
    size = target.tiles_per_chip
    sync = _sync_of(step)
    group = np.full(target.chips, -1) if sync is None else groups_of(sync, target.chips)
    for op in step.body.block.ops:
        if isinstance(op, Copy):
            source, destination = joined_by(op, variables, size).T
            apart = (group[source] != group[destination]) | (group[source] < 0)
            if apart.any():
                at = int(np.argmax(apart))
                _refuse(step, op, f"moves words from chip {source[at]} to {destination[at]}")
        elif isinstance(op, OUTSIDE):
            chips = moved_variable(op, variables).placed.tiles.used_chips(size)
            alone = chips[group[chips] < 0]
            if len(alone):
                _refuse(step, op, f"joins the host and chip {alone[0]}")


def _sync_of(step: Superstep) -> Sync | None:
    """The sync that a superstep begins with; None if a text has none."""
    first = step.body.block.first_op
    return first if isinstance(first, Sync) else None


def _refuse(step: Superstep, op: Operation, what: str) -> None:
    sync = _sync_of(step)
    has = "no sync"
    if sync is not None:
        groups = "" if sync.groups is None else f" of <{sync.groups.text()}>"
        has = f'{sync.name} "{sync.zone.data}"{groups}'
    raise MachineFault(
        f"{op.name} at {place(op)}: {what}; superstep @{step.sym_name.data} has {has}; need chips "
        "that meet at its sync",
        superstep=step.sym_name.data,
        op=op.name,
        node=origin(op),
    )
