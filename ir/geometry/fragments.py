"""The pieces in which the elements of a copy travel, each a run of neighbours on both sides.

A fragment is a run of elements that lie next to each other both in the block that they come from
and in the block that they fill. Along the innermost axis, the runs are the pieces that two cells
share. A run goes on along the next axis where the cells share all of both blocks; otherwise each
index of the axes around it has runs of its own.

    a block of 4 x 6, filled from two blocks of 4 x 3:     4 rows x 2 = 8 fragments
    a block of 4 x 6, filled from two blocks of 2 x 6:     2 fragments

What two cells share is a product over axis groups. So the fragments of a cell, summed over all
others, follow from sums for each group. The numbers are exact if every group has one axis on each
side, and the blocks are windows along it. Elsewhere, some fragments may be counted as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..support.cached_by_identity import cached_by_identity
from .layout import Layout
from .overlap import (
    Counts,
    Group,
    Overlap,
    at_first_replicas,
    is_sent_once,
    parts_of_cells,
    sent_elements,
    summed,
    tiles_in_common,
)


@dataclass(frozen=True, eq=False)
class Fragments:
    """The fragments of a copy that travel between tiles.

    Attributes:
        received: the fragments that reach each destination cell, (destination cells,).
        places: the fragments of each destination cell that do not directly follow another received
            fragment in its block, (destination cells,).
        sent: the fragments that each source cell sends, (source cells,); a fragment that several
            tiles want counts once.
    """

    received: Counts
    places: Counts
    sent: Counts


@cached_by_identity
def fragments(shared: Overlap) -> Fragments:
    """The fragments of the elements that the cells of two layouts share.

    A block is filled in the order of its addresses.
    """
    return fragments_of(shared, shared.received, sent_elements(shared))


def fragments_of(shared: Overlap, received: Counts, sent: Counts) -> Fragments:
    """As fragments, if it is known how many elements each destination cell receives, and each
    source cell sends: `shared.received` and `sent_elements`."""
    source, destination = shared.source, shared.destination
    axes = axes_inwards(shared)
    local = _local(shared, axes)
    reaching = _runs(_to_cells(destination, g.group.destination_dims, g.arriving) for g in axes)
    filled = _runs(
        _to_cells(destination, g.group.destination_dims, g.filled) for g in _by_place(axes)
    )
    leaving = _runs(_to_cells(source, g.group.source_dims, g.leaving) for g in axes)
    for d in source.replica_dims:
        leaving = leaving * (parts_of_cells(source.parts, (d,)) == 0)
    if is_sent_once(shared):
        leaving = leaving - at_first_replicas(shared, local)
    reaching = np.where(received > 0, np.maximum(reaching - local, 1), 0)
    return Fragments(
        received=reaching,
        places=np.minimum(reaching, filled + local),
        sent=np.where(sent > 0, np.maximum(leaving, 1), 0),
    )


@cached_by_identity
def most_fragments(shared: Overlap) -> tuple[int, int]:
    """Upper bounds of the fragments that a cell receives, and that a cell sends."""
    axes = axes_inwards(shared)
    (received,), (sent,) = _runs(g.most_arriving for g in axes), _runs(g.most_leaving for g in axes)
    return int(received), int(sent)


_Runs = tuple[Counts | int, Counts | int, Counts | int]
"""Three counts for each part or pair of parts along some axes: shared elements; pairs that share
all of both blocks; pieces shared by the other pairs. A number stands for equal counts.
"""


def _alike(counts: Counts) -> Counts | int:
    """The number that all counts are, if they are equal."""
    first = int(counts[0]) if len(counts) else 0
    return first if (counts == first).all() else counts


@dataclass(frozen=True, eq=False)
class GroupAxes:
    """One group of axes, with the sizes of the blocks along them.

    Attributes:
        box: elements of a destination block along these axes.
        held: elements of a source block.
        in_runs: whether neighbours along these axes are neighbours in both blocks.
    """

    group: Group
    box: int
    held: int
    in_runs: bool

    @cached_property
    def _whole(self) -> NDArray[np.bool_]:
        """Whether each pair shares all of both blocks: (pairs,)."""
        return self._are_whole(self.group.shared.count)

    def _are_whole(self, count: Counts) -> NDArray[np.bool_]:
        if not self.in_runs or self.box != self.held:
            return np.zeros(len(count), np.bool_)
        return count == self.box

    @cached_property
    def arriving(self) -> _Runs:
        """The counts of each destination part, summed over the source parts."""
        shared = self.group.shared
        return self._summed(self.group.wanted, shared.destination, shared.shape[0])

    @cached_property
    def leaving(self) -> _Runs:
        """The counts of each source part, summed over the destination parts."""
        shared = self.group.shared
        return self._summed(self.group.requested, shared.source, shared.shape[1])

    @cached_property
    def most_arriving(self) -> _Runs:
        """The largest counts of any destination part."""
        return _most(self.arriving)

    @cached_property
    def most_leaving(self) -> _Runs:
        """The largest counts of any source part."""
        return _most(self.leaving)

    def _summed(self, elements: Counts, part: Counts, parts: int) -> _Runs:
        every = _alike(elements)
        if not self.in_runs:
            return every, 0, every
        pieces = self.group.shared.pieces
        whole = np.bincount(part[self._whole], minlength=parts)
        if pieces is None:
            return every, _alike(whole), _alike(np.bincount(part, minlength=parts) - whole)
        rest = summed(part, np.where(self._whole, 0, pieces), parts)
        return every, _alike(whole), _alike(rest)

    @cached_property
    def filled(self) -> _Runs:
        """The counts of each destination part as if one source part held all of its elements."""
        wanted = self.group.wanted
        whole = wanted == self.box
        ended = (wanted > 0) & ~whole
        return _alike(wanted), _alike(whole.astype(np.int64)), _alike(ended.astype(np.int64))

    def of_pairs(self, destination: Counts, source: Counts) -> _Runs:
        """The counts of the given pairs of parts."""
        shared = self.group.shared
        count = shared.at(destination, source)
        if not self.in_runs:
            return count, 0, count
        whole = self._are_whole(count)
        if shared.pieces is None:
            return count, whole.astype(np.int64), ((count > 0) & ~whole).astype(np.int64)
        pieces = np.where(whole, 0, shared.pieces_at(destination, source))
        return count, whole.astype(np.int64), pieces


def _to_cells(layout: Layout, dims: tuple[int, ...], values: _Runs) -> _Runs:
    """Counts of parts along some dimensions as counts of cells."""
    elements, whole, pieces = (
        each if isinstance(each, int) else each[parts_of_cells(layout.parts, dims)]
        for each in values
    )
    return elements, whole, pieces


def _most(values: _Runs) -> _Runs:
    """The maximum of each of the three counts."""
    elements, whole, pieces = (
        each if isinstance(each, int) else int(each.max()) for each in values
    )
    return elements, whole, pieces


def _runs(axes: Iterable[_Runs]) -> Counts:
    """The number of runs, from the counts along each group of axes, the innermost group first."""
    ended: Counts | int = 0
    whole: Counts | int = 1
    for elements, full, pieces in axes:
        ended, whole = elements * ended + pieces * whole, full * whole
    return np.atleast_1d(np.asarray(ended + whole, np.int64))


# Many overlaps have the same groups along some axes.
_known_axes = lru_cache(maxsize=8192)(GroupAxes)


@cached_by_identity
def axes_inwards(shared: Overlap) -> tuple[GroupAxes, ...]:
    """The groups of axes, the innermost first, as long as both blocks have the same order."""
    boxes = {
        g: (
            prod(shared.destination.box[i] for i in g.destination_axes),
            prod(shared.source.box[i] for i in g.source_axes),
        )
        for g in shared.groups
    }
    # Along an axis of one element, nothing has an order.
    filled = [g for g in _inwards(shared.groups, "destination_axes") if boxes[g][0] > 1]
    read = [g for g in _inwards(shared.groups, "source_axes") if boxes[g][1] > 1]
    found = [_known_axes(g, *boxes[g], True) for g in shared.groups if boxes[g] == (1, 1)]
    while filled or read:
        if not filled or (read and boxes[read[-1]][0] == 1):
            nearest = read[-1]
        elif not read or read[-1] is filled[-1] or boxes[filled[-1]][1] == 1:
            nearest = filled[-1]
        else:
            break
        filled, read = ([g for g in each if g is not nearest] for each in (filled, read))
        divided = any(
            shared.destination.access.axes[i].divisor > 1 for i in nearest.destination_axes
        )
        found.append(_known_axes(nearest, *boxes[nearest], not divided))
    rest = dict.fromkeys([*reversed(filled), *reversed(read)])
    return (*found, *(_known_axes(g, *boxes[g], False) for g in rest))


def _inwards(groups: Sequence[Group], name: str) -> list[Group]:
    """The groups that have axes on one side, the outermost first.

    Args:
        name: the field with these axes.
    """
    some = [g for g in groups if getattr(g, name)]
    return sorted(some, key=lambda g: max(getattr(g, name)))


def _by_place(axes: Sequence[GroupAxes]) -> list[GroupAxes]:
    """The groups of axes in the order of the destination block, the innermost first."""
    return sorted(axes, key=lambda g: max(g.group.destination_axes, default=-1), reverse=True)


def _local(shared: Overlap, axes: Sequence[GroupAxes]) -> Counts:
    """The fragments that each destination cell reads from its own tile: (destination cells,)."""
    total = np.zeros(shared.destination.cells, np.int64)
    to, of = tiles_in_common(shared)
    if not total[to].size:
        return total
    own: list[_Runs] = []
    for g in axes:
        part = parts_of_cells(shared.destination.parts, g.group.destination_dims)[to]
        held = parts_of_cells(shared.source.parts, g.group.source_dims)[of]
        own.append(g.of_pairs(part, held))
    total[to] = _runs(own)
    return total
