"""The splits of an operator that are worth pricing.

Of the splits with the same largest parts, only the split with the fewest tiles is tried. In
addition, there are the splits under which an operand stays on its tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import linear_groups
from ...ir.geometry.space import Space
from ...ir.support.distinct import distinct
from ..plans.derive import result_layout
from ..plans.padding import can_pad
from .price import Integers
from .problem import Problem, final_layouts_of

MAX_CANDIDATES = 60_000
"""The most splits of one operator that are priced; if there are more, part counts are thinned.

Chosen by trial, roomy. Half: up to 5.2 % more cycles (AlexNet on mk1). Double: same.
"""


def part_counts(problem: Problem, dim: int, tiles: int) -> Integers:
    """The part counts worth trying: the fewest parts for each size of the largest part."""
    each, chips = problem.structure.space.dims[dim], problem.terms.chips(dim)
    forced = problem.terms.parts(dim)
    if forced:
        return np.array([forced], np.int64)
    counts = np.arange(chips, max(chips, min(each.size, tiles)) + 1, chips)
    if each.size <= 1 or problem.structure.is_never_cut(dim):
        return counts[:1]
    if each.kind == "reduction":
        if not problem.merges:
            return counts[:1]
        if not can_pad(problem.structure, dim):
            return counts[each.size % counts == 0]
    largest = -(-each.size // counts)
    if each.kind == "reduction":
        # Partials have parts of one size, and none may be empty.
        full = (counts - 1) * largest < each.size
        counts, largest = counts[full], largest[full]
    return counts[np.r_[True, largest[1:] != largest[:-1]]]


def _number_of_splits(choices: list[Integers], tiles: int) -> int:
    """The number of ways to choose one count per dimension with a product of at most `tiles`."""
    ways = np.zeros(tiles + 1, np.int64)
    ways[1] = 1
    for counts in choices:
        more = np.zeros_like(ways)
        for k in counts.tolist():
            more[::k][: tiles // k + 1] += ways[: tiles // k + 1]
        ways = more
    return int(ways[1:].sum())


def _thinned(counts: Integers, most: int) -> Integers:
    """At most `most` of the counts, both ends included, evenly spaced in their logarithm."""
    if len(counts) <= most:
        return counts
    wish = np.asarray(np.geomspace(1.0, float(counts[-1]), most), np.float64)
    return distinct(counts[np.searchsorted(counts, wish - 1e-6)])


def splits(problem: Problem, tiles: int) -> Integers:
    """Every split worth pricing: (candidates, dimensions).

    Args:
        tiles: those of a chip.
    """
    tiles = problem.terms.most_tiles(tiles)
    rank = len(problem.structure.space.dims)
    # Parts of a chip are counted, so that the search takes as long for many chips as for one.
    across = np.array(problem.terms.across or (1,) * rank, np.int64)
    choices = [part_counts(problem, d, tiles) // across[d] for d in range(rank)]
    tiles //= prod(across.tolist())
    most = max((len(c) for c in choices), default=1)
    while most > 2 and _number_of_splits(choices, tiles) > MAX_CANDIDATES:
        most = max(2, most * 3 // 4)
        choices = [_thinned(c, most) for c in choices]
    total = np.ones(1, np.int64)
    chosen: list[tuple[Integers, Integers] | None] = []
    for counts in choices:
        if counts.tolist() == [1]:
            chosen.append(None)
            continue
        # Counts ascend, so each row is combined with the first counts only.
        few = np.searchsorted(counts, tiles // total, side="right")
        row = np.repeat(np.arange(len(total)), few)
        parts = counts[np.arange(len(row)) - np.repeat(np.cumsum(few) - few, few)]
        total = total[row] * parts
        chosen.append((row, parts))
    # The parts of one dimension are contiguous, because prices are computed dimension by dimension.
    by_dim = np.ones((rank, len(total)), np.int64)
    at = np.arange(len(total))
    for d in reversed(range(rank)):
        each = chosen[d]
        if each is not None:
            row, parts = each
            by_dim[d], at = parts[at], row[at]
    by_dim *= across[:, None]
    return by_dim.T


def inherited(problem: Problem, have: tuple[Layout | None, ...], target: Target) -> list[Plan]:
    """Plans under which the cells of an operand stay on their tiles.

    Cuts of the operand that are not cuts of this operator's dimensions are lost.
    """
    space = problem.structure.space
    found: list[Plan] = []
    for i, layout in enumerate(have):
        if layout is None:
            continue
        through = problem.moves[i] if problem.moves else None
        access = through.operands[0] if through else space.operands[i]
        cuts = _cuts_of_axes(layout, access.shape)
        parallel: list[_Cut] = []
        shared: list[_Cut] = []
        every: list[_Cut] = []
        waiting = _Cut(0, 1, 1)
        for axis, parts, chips in cuts:
            dims = [d for d, _ in access.axes[axis].terms]
            if through is not None:
                dims = [
                    j
                    for j, target_axis in enumerate(through.results[0].axes)
                    if any(d in dims for d, _ in target_axis.terms)
                ]
            kept = [d for d in dims if space.dims[d].kind == "parallel"]
            merged = [d for d in dims if space.dims[d].kind == "reduction"]
            parallel += [_Cut(d, parts, chips) for d in kept[:1]]
            every += [_Cut(d, parts, chips) for d in (kept or merged)[:1]]
            # If several tiles hold elements that are merged into one part, each computes a share of
            # that part.
            shared += [_Cut(d, parts * waiting.parts, chips * waiting.chips) for d in kept[:1]]
            if merged and not kept and shared:
                last = shared[-1]
                shared[-1] = _Cut(last.of, last.parts * parts, last.chips * chips)
            waits = merged and not kept and not shared
            waiting = _Cut(0, parts, chips) if waits else _Cut(0, 1, 1)
        for dims in (parallel, every) if problem.merges else (parallel, shared):
            plan = _plan_of_cuts(space, dims, layout)
            if plan is not None and is_legal(problem, plan, target):
                found.append(plan)
    return list(dict.fromkeys(found))


class _Cut(NamedTuple):
    """A cut of an axis or a dimension.

    Attributes:
        of: the number of the axis or dimension.
        chips: the chips over which the parts are spread.
    """

    of: int
    parts: int
    chips: int


def _plan_of_cuts(space: Space, cuts: Sequence[_Cut], layout: Layout) -> Plan | None:
    """The plan that cuts dimensions as a layout does, on its tiles, slowest first.

    None if the parts cannot be spread over the chips of the layout.
    """
    split, across = [1] * len(space.dims), [1] * len(space.dims)
    for d, parts, chips in cuts:
        split[d] = min(split[d] * parts, max(space.dims[d].size, 1))
        across[d] *= chips
    order = _plain(tuple(dict.fromkeys(each.of for each in cuts)))
    if not layout.apart:
        return Plan(tuple(split), order, layout.first_tile)
    several = prod(across) > 1
    cells = prod(split) // prod(across)
    if any(n % k for n, k in zip(split, across, strict=True)) or cells > layout.apart:
        return None
    return Plan(
        tuple(split),
        order,
        layout.first_tile,
        across=tuple(across) if several else (),
        apart=layout.apart if several else 0,
    )


def leaving(problem: Problem, layout: Layout, target: Target) -> list[Plan]:
    """The plans that leave an operator's result in a layout: at most one."""
    space = problem.structure.space
    access = space.results[0]
    cuts = [
        _Cut(d, parts, chips)
        for axis, parts, chips in _cuts_of_axes(layout, access.shape)
        for d, _ in access.axes[axis].terms[:1]
    ]
    plan = _plan_of_cuts(space, cuts, layout)
    if plan is None or not is_legal(problem, plan, target):
        return []
    return [plan] if final_layouts_of(problem, plan)[0] == layout else []


def _plain(order: tuple[int, ...]) -> tuple[int, ...]:
    """An order; empty if it is the default order."""
    return () if order == tuple(sorted(order)) else order


def is_legal(problem: Problem, plan: Plan, target: Target) -> bool:
    """Whether the operator can be cut this way, with a tile for each cell."""
    terms = problem.terms
    allowed = terms.allow(plan.split) and terms.allow_chips(plan.across)
    if plan.tiles.end > target.tiles or not allowed:
        return False
    try:
        result_layout(problem.structure, plan)
    except ValueError:
        return False
    return True


def _cuts_of_axes(layout: Layout, shape: tuple[int, ...]) -> list[_Cut]:
    """The cuts of the axes of a layout, slowest first.

    Args:
        shape: another shape of the same elements, whose axes are returned.
    """
    cuts: list[_Cut] = []
    axis_of = {
        d: i for i, axis in reversed(list(enumerate(layout.access.axes))) for d, _ in axis.terms
    }
    groups = linear_groups(layout.shape, shape)
    for d in layout.split_dims:
        if d not in axis_of:
            continue
        left, right = next((a, b) for a, b in groups if axis_of[d] in a)
        left = [i for i in left if layout.shape[i] > 1]
        right = [j for j in right if shape[j] > 1]
        alike = len(left) == len(right)
        # A cut of an axis of one element cuts only its padding.
        if axis_of[d] not in (left if alike else left[:1]):
            continue
        rest, chips = layout.parts[d], layout.grid[d].chips
        at = left.index(axis_of[d])
        for j in right[at : at + 1] if alike else right:
            parts = min(rest, shape[j])
            own = gcd(parts, chips)
            if parts > 1:
                cuts.append(_Cut(j, parts, own))
            rest, chips = rest // parts, chips // own
    return cuts
