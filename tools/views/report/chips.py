"""The tables of several chips: chips, their links, the bytes between them, and what lies where."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....backends.links.links import routes_of
from ....backends.memory import MemoryReport
from ....backends.prices.crossings import Crossings
from ....backends.prices.price import ZonePrice
from ....backends.prices.step_charges import StepCharge
from ....backends.target import Target
from ....dialects.exchange import VariableOp
from ....ir.support.arrays import Integers
from ..chip_groups import chip_group
from .columns import Table, empty, table
from .nodes import Nodes

STASH = re.compile(r"stash[0-9.]*\.out[0-9]+")
"""The names of the variables that hold the stashes of a pipeline: the results of the functions that
`pipeline-stages` makes for them."""


def chip_table(
    memory: MemoryReport,
    placed: Mapping[str, VariableOp],
    prices: Sequence[ZonePrice],
    crossed: Crossings,
    cycles: int,
) -> Table:
    """The work, the memory and the traffic of each chip.

    Args:
        prices: of each chip.
        cycles: of a run.
    """
    target, chips = memory.target, crossed.chips
    filled = _by_chip(memory.tile_bytes, target)
    fullest = filled.argmax(axis=1)
    first = np.arange(chips) * target.tiles_per_chip
    return table(
        "chips",
        {
            "chip": np.arange(chips),
            "first_tile": first,
            "tiles": np.full(chips, target.tiles_per_chip),
            "tiles_used": (filled > 0).sum(axis=1),
            "fullest_tile": first + fullest,
            "max_tile_bytes": filled.max(axis=1),
            "always_live": _by_chip(memory.always_live_bytes, target).sum(axis=1),
            "live_now": _by_chip(memory.transient_bytes, target).sum(axis=1),
            "stashes": sum(
                (_bytes_on_chips(v, target) for name, v in placed.items() if STASH.fullmatch(name)),
                np.zeros(chips, np.int64),
            ),
            "compute_cycles": [each.busy.compute for each in prices],
            "exchange_cycles": [each.busy.exchange for each in prices],
            "sync_cycles": [each.busy.sync for each in prices],
            "waiting_cycles": [cycles - each.busy.total for each in prices],
            "end": [each.end for each in prices],
            "sent_bytes": _summed(crossed.source, crossed.bytes, chips),
            "received_bytes": _summed(crossed.destination, crossed.bytes, chips),
        },
    )


def _by_chip(values: Integers, target: Target) -> Integers:
    """Values of tiles as (chips, tiles of a chip). Tiles that the machine does not have are left
    out."""
    return values[: target.tiles].reshape(target.chips, -1)


def _bytes_on_chips(v: VariableOp, target: Target) -> Integers:
    """The bytes of a variable on each chip: (chips,)."""
    on = v.placed.tiles.of(np.arange(v.placed.cells)) // target.tiles_per_chip
    cells = np.bincount(np.minimum(on, target.chips - 1), minlength=target.chips)
    return cells * v.bytes_per_tile


def _whole(values: NDArray[np.float64]) -> Integers:
    return np.minimum(values, 2.0**62).astype(np.int64)


def _summed(which: Integers, values: Integers, count: int) -> Integers:
    return np.bincount(which, values, count).astype(np.int64)


def chip_link_table(target: Target, crossed: Crossings, cycles: int) -> Table:
    """The load of each link that the bytes of a pair of chips use.

    Args:
        cycles: of a run.
    """
    routes, names = routes_of(target.links), target.links.link_names()
    used = np.unique(routes.link)
    busy = crossed.link_seconds[used] * target.clock_hz
    return table(
        "chip_links",
        {
            "link": used,
            "name": [names[k] for k in used],
            "bytes_per_second": routes.bytes_per_second[used],
            "bytes": _whole(crossed.link_bytes[used]),
            "busy_cycles": _whole(np.ceil(busy)),
            "share": busy / max(cycles, 1),
        },
    )


def crossing_table(crossed: Crossings) -> Table:
    """The bytes from chip to chip."""
    columns = ("source", "destination", "bytes")
    return table("crossings", {name: getattr(crossed, name) for name in columns})


def placement_table(
    steps: Sequence[StepCharge],
    placed: Mapping[str, VariableOp],
    owners: Sequence[int],
    nodes: Nodes,
    target: Target,
) -> Table:
    """What each operation computes and keeps on each chip; only where it does either.

    Args:
        owners: the operation of each of the placed variables.
    """
    chips = target.chips
    if chips == 1:
        return empty("placements")
    work: dict[int, NDArray[np.float64]] = {}
    for step in steps:
        for each in step.operations:
            own = nodes.operation(each.op)
            compute = _by_chip(each.charge.compute, target).sum(axis=1)
            work[own] = work.get(own, np.zeros(chips)) + compute * float(step.price.times)
    kept: dict[int, Integers] = {}
    for owner, v in zip(owners, placed.values(), strict=True):
        if v.is_resident:
            kept[owner] = kept.get(owner, np.zeros(chips, np.int64)) + _bytes_on_chips(v, target)
    rows: list[Any] = []
    for own in sorted({*work, *kept}):
        if own < 0:
            continue
        computes, keeps = work.get(own, np.zeros(chips)), kept.get(own, np.zeros(chips, np.int64))
        (here,) = np.nonzero((computes > 0) | (keeps > 0))
        rows.append((np.full(len(here), own), here, _whole(computes[here]), keeps[here]))
    columns = ("operation", "chip", "tile_cycles", "resident_bytes")
    none = np.zeros(0, np.int64)
    return table(
        "placements",
        {name: np.concatenate([none, *(row[k] for row in rows)]) for k, name in enumerate(columns)},
    )


def shown_chips(tables: Mapping[str, Table], chips: int) -> dict[str, Any]:
    """What a page has of pairs of chips, and of operations on chips, by group of chips.

    Its size does not grow with the number of pairs.
    """
    size = chip_group(chips)
    groups = -(-chips // size)
    crossed, here = tables["crossings"], tables["placements"]
    pair = (
        np.asarray(crossed["source"]) // size * groups + np.asarray(crossed["destination"]) // size
    )
    sums = np.bincount(pair, np.asarray(crossed["bytes"]), groups * groups)
    own, place = np.unique(
        np.asarray(here["operation"]) * groups + np.asarray(here["chip"]) // size,
        return_inverse=True,
    )
    return {
        "group": size,
        "pairs": sums.astype(np.int64).tolist(),
        "operation": (own // groups).tolist(),
        "chip": (own % groups).tolist(),
        **{
            name: np.bincount(place, np.asarray(here[name]), len(own)).astype(np.int64).tolist()
            for name in ("tile_cycles", "resident_bytes")
        },
    }
