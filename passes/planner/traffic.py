"""Exact traffic between many layouts: the overlap along each axis is computed once and kept.

Candidate splits of one operator, and operators of one network, share the cuts of most axes.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import Group, Overlap, overlap
from ...ir.geometry.space import AccessMap, Space


def traffic(source: Layout, destination: Layout, move: Space | None = None) -> Overlap:
    """As `overlap`, axis by axis where the two tensors have the same shape."""
    if move is None:
        mine, theirs = _axes(source), _axes(destination)
        same = [source.shape[i] for i in mine] == [destination.shape[j] for j in theirs]
        if same and _separable(source) and _separable(destination):
            groups = tuple(
                _group(source, i, destination, j) for i, j in zip(mine, theirs, strict=True)
            )
            return Overlap(source, destination, groups)
    return overlap(source, destination, move)


def _axes(layout: Layout) -> list[int]:
    """The axes but for those of one element that no cell moves along."""
    return [i for i, a in enumerate(layout.access.axes) if a.size != 1 or a.terms]


def _separable(layout: Layout) -> bool:
    """True if no cut dimension moves along two axes."""
    dims = [d for a in layout.access.axes for d, _ in a.terms if layout.parts[d] > 1]
    return len(dims) == len(set(dims))


def _group(source: Layout, i: int, destination: Layout, j: int) -> Group:
    """The elements shared along one axis of each layout."""
    of, from_dims = _along(source, i)
    to, to_dims = _along(destination, j)
    (cut,) = overlap(of, to).groups
    return replace(
        cut,
        destination_dims=tuple(to_dims[d] for d in cut.destination_dims),
        source_dims=tuple(from_dims[d] for d in cut.source_dims),
    )


def _along(layout: Layout, axis: int) -> tuple[Layout, tuple[int, ...]]:
    """The layout of one axis alone, and the dimensions of the whole that its own are."""
    dims = tuple(sorted({d for d, _ in layout.access.axes[axis].terms}))
    index = {d: k for k, d in enumerate(dims)}
    access = AccessMap((layout.access.axes[axis],), layout.access.fill).renamed(index)
    return Layout(tuple(layout.grid[d] for d in dims), access), dims
