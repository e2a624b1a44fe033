"""Predicted cycles of a step of a stencil: split over tiles, with exchanged halos.

The grid is split into boxes, one per tile. Each tile's block is its box with the halo around it,
and is filled anew in every step. The layouts determine what a tile sends and receives. The measured
codelets are compiled C++, of which only the source is known: their loads, stores and arithmetic are
counted, and no two instructions are assumed to run in one cycle.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from ....backends.fabrics.traffic import Carried, Traffic
from ....backends.prices import cost
from ....backends.target import Target
from ....backends.timetable.link_lanes import LinkLanes
from ....backends.timetable.moves import Move
from ....dialects.abele import Plan
from ....dialects.structured import Body, Structure
from ....ir.geometry.overlap import sent_elements
from ....ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map
from ....passes.planner.traffic import traffic
from ....passes.plans.derive import compute_layouts, final_layout
from . import timed
from .cases import Stencil
from .units import element_bytes

REACH = 1
"""The largest distance of a tap from the point, along an axis."""


def structure_of(case: Stencil) -> Structure:
    """The step as an operator on [axes..., channels]. Each point reads the box around it."""
    rank = len(case.grid)
    dims = (
        *(Dim(f"x{i}", n) for i, n in enumerate(case.grid)),
        Dim("channel", case.channels),
        *(Dim(f"k{i}", 2 * REACH + 1, "reduction") for i in range(rank)),
    )
    around = tuple(
        AxisMap(n, ((i, 1), (rank + 1 + i, 1)), -REACH, outside="fill")
        for i, n in enumerate(case.grid)
    )
    image = AccessMap((*around, AxisMap(case.channels, ((rank, 1),))))
    result = identity_map(tuple(range(rank + 1)), (*case.grid, case.channels))
    return Structure(Space(dims, (image,), (result,)), Body("identity", "sum"))


def phases(case: Stencil, target: Target) -> dict[str, float]:
    """The cycles of each phase of one step.

    The phase "copy" moves a tile's result into its block for the next step, as one run.
    """
    chips, split = splits_of(case.grid, target)
    structure = structure_of(case)
    rest = tuple(1 for _ in structure.space.dims[len(split) :])
    plan = Plan((*split, *rest))
    if target.chips > 1:
        plan = replace(plan, across=(*chips, *rest), apart=target.tiles_per_chip)
    (wanted,) = compute_layouts(structure, plan)
    shared = traffic(final_layout(structure, plan), wanted)
    each = element_bytes(case.dtype)
    point = case.channels * each
    box = tuple(-(-n // k) for n, k in zip(case.grid, split, strict=True))
    # Points are contiguous along the last axis, so only its halo consists of single-point runs.
    around = prod(n + 2 * REACH * (k > 1) for n, k in zip(box[:-1], split[:-1], strict=True))
    runs = 2 * REACH * around if split[-1] > 1 else 0
    staging = float(cost.staging_cycles(runs * point, runs, point, target))
    received, sent = int(shared.received.max()) * each, int(sent_elements(shared).max()) * each
    links = 0
    if target.chips > 1:
        moved = Traffic.none(target.tiles)
        moved.carried.append(Carried(shared, each))
        links = int(target.links.waiting_cycles(moved, target.tiles, target.clock_hz).max())
    exchange = float(cost.least_exchange_cycles(received, sent, target))
    if target.exchange.timetables:
        move = Move("halo", final_layout(structure, plan), wanted, None, each)
        # Halos are staged, so a message is one run, which starts in no time worth counting.
        at_once = {"send_cycles": 0, "receive_cycles": 0, "place_cycles": 0}
        staged = replace(target, exchange=replace(target.exchange, **at_once))
        exchange = timed.exchange_cycles([move], staged)
        if target.chips > 1:
            links = timed.exchange_cycles([move], staged, LinkLanes.of(staged))
    return {
        "sync": float(cost.sync_cycles(target, "all")),
        "exchange": exchange,
        "global exchange": float(links),
        "pre": staging,
        "post": staging,
        "copy": float(cost.copy_cycles(int(shared.local.max()) * each, target)),
        "compute": _compute_cycles(case, box, target),
    }


def splits_of(grid: tuple[int, ...], target: Target) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The chips along each axis, and the parts of each axis on all of them."""
    chips = spatial_split(grid, target.chips)
    on_a_chip = spatial_split(
        tuple(-(-n // k) for n, k in zip(grid, chips, strict=True)), target.tiles_per_chip
    )
    return chips, tuple(n * k for n, k in zip(on_a_chip, chips, strict=True))


NEARLY_ALL = 0.985
"""The smallest share of the busiest split's tiles that a split must use."""


def spatial_split(grid: tuple[int, ...], tiles: int) -> tuple[int, ...]:
    """The number of parts of each axis: the smallest halo, with nearly all tiles in use.

    The measured programs have different rules for splitting, which all aim at small halos.
    """
    candidates = _splits(grid, tiles)
    cells = np.prod(candidates, axis=1)
    busy = candidates[cells >= NEARLY_ALL * cells.max()]
    boxes = np.array(grid) / busy
    surface = (1 / boxes).sum(axis=1)
    return tuple(int(n) for n in busy[int(np.argmin(surface))])


def _splits(grid: tuple[int, ...], tiles: int) -> NDArray[np.int64]:
    """Numbers of parts of each axis; the last axis uses up all tiles: (candidates, axes)."""
    if len(grid) == 1:
        return np.array([[min(tiles, grid[0])]])
    found = [
        np.insert(rest, 0, parts, axis=1)
        for parts in range(1, min(tiles, grid[0]) + 1)
        for rest in (_splits(grid[1:], tiles // parts),)
    ]
    return np.concatenate(found)


def _compute_cycles(case: Stencil, box: tuple[int, ...], target: Target) -> float:
    """The cycles of the tile with the largest box, whose workers share its rows."""
    axis = next((i for i, n in enumerate(box) if n >= target.workers), int(np.argmax(box)))
    shared = -(-box[axis] // target.workers) * target.workers
    values = prod(box) // box[axis] * shared * case.channels
    loop = cost.compiled_loop(case.taps, case.arithmetic, 1, case.vector, target)
    return float(cost.elementwise_cycles(values, 1, loop, case.dtype, target))


def predicted(case: Stencil, target: Target) -> dict[str, float]:
    """The cycles of all phases of a step, or of the measured phase."""
    found = phases(case, target)
    return found if case.phase == "step" else {case.phase: found[case.phase]}
