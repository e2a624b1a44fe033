"""Which chips meet at a sync, and how long that takes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...dialects.steps import SYNC_ZONES, Sync
from ...ir.geometry.chip_groups import ChipGroups
from ...ir.support.arrays import Integers
from ..prices.cost import sync_cycles
from ..target import Target


def groups_of(sync: Sync, chips: int) -> Integers:
    """The number of the group that each chip meets, (chips,); -1 for one that meets no other.

    Args:
        chips: of the machine.
    """
    return _groups(sync.zone.data, sync.chips, chips)


def meeting_cycles(sync: Sync, target: Target) -> Integers:
    """The cycles in which the tiles of each chip meet those that they wait for: (chips,)."""
    return _cycles(sync.zone.data, sync.chips, target)


@lru_cache(maxsize=256)
def _groups(zone: str, named: ChipGroups | None, chips: int) -> Integers:
    if zone == SYNC_ZONES[0]:
        found = np.full(chips, -1, np.int64)
    else:
        found = np.zeros(chips, np.int64) if named is None else named.number(chips)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=256)
def _cycles(zone: str, named: ChipGroups | None, target: Target) -> Integers:
    found = np.full(target.chips, sync_cycles(target), np.int64)
    if zone != SYNC_ZONES[0]:
        groups = ((),) if named is None else named.groups
        own = np.array([sync_cycles(target, zone, each) for each in groups])
        number = _groups(zone, named, target.chips)
        found = np.where(number >= 0, own[number], found)
    found.flags.writeable = False
    return found
