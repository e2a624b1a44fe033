"""The number of vertices that the work of a tile is cut into."""

from __future__ import annotations

from dataclasses import replace

from ...dialects.abele import Plan
from ...dialects.structured import Structure
from ...ir.support.errors import InputError
from ..plans.derive import combine_structure, leaves_partials, refined
from ..plans.steps import passes_of, takes_steps
from .price import worker_parts

MOST_VERTICES = 1 << 16
"""The most vertices of one compute set on a tile for which a user may ask.

A vertex makes at least one element, and this many of float32 fill a tile of mk1. Chosen by
trial: with this number, no tile of mk2 gets more than 2,240 vertices of one compute set in the nine
light networks, so half and double give the same.
"""


def check_vertices(vertices: int) -> None:
    """Raise InputError for a number of vertices per tile that is out of range."""
    if not 1 <= vertices <= MOST_VERTICES:
        raise InputError(f"{vertices} vertices per tile; need 1..{MOST_VERTICES}")


def with_vertices(structure: Structure, plan: Plan, vertices: int) -> Plan:
    """A plan whose cells are cut into at most this many vertices, which workers take in turns.

    A cell is cut in parallel dimensions only, so that its largest vertex is as small as possible; a
    vertex makes at least one element. Supervisor codelets start the workers themselves and stay one
    vertex per cell. A reduction whose workers share its depth is cut, and they share it no longer.
    The plan that combines partials is cut in the same way.

        [8, 64] in cells of [1, 64], 16 vertices:   workers [1, 16]
    """
    if takes_steps(plan):
        *_, last = next(passes_of(structure, plan))
        own, once = last.structure, last.plan
    else:
        own, once = structure, plan
    combine = plan.combine
    if combine is not None and leaves_partials(own, once):
        merging = combine_structure(own, once)
        assert merging is not None
        combine = with_vertices(merging, combine, vertices)
    shares_depth = structure.body.combiner is not None and not plan.method
    if not plan.workers and not shares_depth:
        return replace(plan, combine=combine)
    cut, cells = refined(own, once)
    cell = tuple(-(-n // p) for n, p in zip(cut.space.sizes, cells.split, strict=True))
    workers = worker_parts(cell, cut.space.of_kind("parallel"), vertices)
    # A cell has one part of each split reduction, so the dimensions added for these stay whole.
    return replace(plan, workers=workers[: len(plan.split)], combine=combine)
