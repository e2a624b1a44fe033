"""A step of a stencil as abele would run it: split over tiles, halos exchanged, loops compiled.

The grid is split into boxes, one a tile; each tile's block is its box and the halo around it, and
is filled anew every step. What a tile sends and receives follows from the layouts alone. The
codelets that were measured are compiled C++, of which only the source is known: their loads,
stores and arithmetic are counted, and nothing is assumed to be paired.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from ....backends import cost
from ....backends.price import sent_elements
from ....backends.target import Target
from ....dialects.abele import Plan
from ....dialects.structured import Body, Structure
from ....ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map
from ....passes.planner.traffic import traffic
from ....passes.plans.derive import compute_layouts, final_layout
from .cases import Stencil
from .units import element_bytes

REACH = 1
"""How far a stencil's taps lie from its point, along an axis."""


def structure_of(case: Stencil) -> Structure:
    """The step as an operator: [axes..., channels], each point reading a box around it."""
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
    """Cycles of each phase of one step.

    copy: what a tile moves from its own result into its next block, as one run.
    """
    split = spatial_split(case.grid, target.tiles)
    structure = structure_of(case)
    plan = Plan((*split, *(1 for _ in structure.space.dims[len(split) :])))
    (wanted,) = compute_layouts(structure, plan)
    shared = traffic(final_layout(structure, plan), wanted)
    each = element_bytes(case.dtype)
    point = case.channels * each
    box = tuple(-(-n // k) for n, k in zip(case.grid, split, strict=True))
    # Points lie together along the last axis: its halo alone is made of runs of single points.
    around = prod(n + 2 * REACH * (k > 1) for n, k in zip(box[:-1], split[:-1], strict=True))
    runs = 2 * REACH * around if split[-1] > 1 else 0
    staging = float(cost.staging_cycles(runs * point, runs, point, target))
    received, sent = int(shared.received.max()) * each, int(sent_elements(shared).max()) * each
    return {
        "sync": float(cost.sync_cycles(target)),
        "exchange": float(cost.exchange_cycles(received, sent, target)),
        "pre": staging,
        "post": staging,
        "copy": float(cost.copy_cycles(int(shared.local.max()) * each, target)),
        "compute": _compute_cycles(case, box, target),
    }


NEARLY_ALL = 0.985
"""The least share of the tiles that a split may leave busy."""


def spatial_split(grid: tuple[int, ...], tiles: int) -> tuple[int, ...]:
    """Parts of every axis: boxes as near to cubes as nearly all tiles allow.

    The measured programs split so, each by a rule of its own; least halo is what they look for.
    """
    candidates = _splits(grid, tiles)
    cells = np.prod(candidates, axis=1)
    busy = candidates[cells >= NEARLY_ALL * cells.max()]
    boxes = np.array(grid) / busy
    surface = (1 / boxes).sum(axis=1)
    return tuple(int(n) for n in busy[int(np.argmin(surface))])


def _splits(grid: tuple[int, ...], tiles: int) -> NDArray[np.int64]:
    """Parts of every axis, the last one cut as often as tiles are left: (candidates, axes)."""
    if len(grid) == 1:
        return np.array([[min(tiles, grid[0])]])
    found = [
        np.insert(rest, 0, parts, axis=1)
        for parts in range(1, min(tiles, grid[0]) + 1)
        for rest in (_splits(grid[1:], tiles // parts),)
    ]
    return np.concatenate(found)


def _compute_cycles(case: Stencil, box: tuple[int, ...], target: Target) -> float:
    """Cycles of the tile with the largest box, whose workers share its rows."""
    axis = next((i for i, n in enumerate(box) if n >= target.workers), int(np.argmax(box)))
    shared = -(-box[axis] // target.workers) * target.workers
    values = prod(box) // box[axis] * shared * case.channels
    loop = cost.compiled_loop(case.taps, case.arithmetic, 1, case.vector, target)
    return float(cost.elementwise_cycles(values, 1, loop, case.dtype, target))


def predicted(case: Stencil, target: Target) -> dict[str, float]:
    """The phases of a step, or the one that was measured."""
    found = phases(case, target)
    if case.phase == "step":
        return found
    # On one chip nothing leaves it.
    return {case.phase: found.get(case.phase, 0.0)}
