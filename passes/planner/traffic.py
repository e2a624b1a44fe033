"""Exact traffic between many layouts, with a cache of the overlap along each axis.

The candidate splits of an operator, and the operators of a network, share the cuts of most axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import Group, Overlap, SharedElements, heard, overlap
from ...ir.geometry.space import AccessMap, Space
from ...ir.support.arrays import Integers


def traffic(source: Layout, destination: Layout, move: Space | None = None) -> Overlap:
    """Like `overlap`, but axis by axis if both tensors have the same shape or the move only
    shifts."""
    of, to = _axes(source), _axes(destination)
    pairs: Iterable[tuple[int, int, _Shift]] | None = None
    if of is None or to is None:
        pass
    elif move is None:
        mine, theirs = _moving(of), _moving(to)
        if [of[i].size for i in mine] == [to[j].size for j in theirs]:
            pairs = ((i, j, _Shift(0, 0, of[i].size)) for i, j in zip(mine, theirs, strict=True))
    elif (source.shape, destination.shape) == (move.operands[0].shape, move.results[0].shape):
        found = shifts(move)
        if found and all(of[i].in_runs and to[j].in_runs for i, j, _ in found):
            pairs = found
    if of is None or to is None or pairs is None:
        return overlap(source, destination, move)
    return Overlap(source, destination, tuple(_group(of[i], to[j], s, j, i) for i, j, s in pairs))


@dataclass(frozen=True)
class _Axis:
    """One axis of a layout.

    Attributes:
        alone: the layout of this axis alone.
        dims: the dimensions of the whole layout that it uses.
        in_runs: whether every part is a single run of elements, apart from padding.
    """

    size: int
    alone: Layout
    dims: tuple[int, ...]
    in_runs: bool


@lru_cache(maxsize=8192)
def _axes(layout: Layout) -> tuple[_Axis, ...] | None:
    """The axes of a layout; None if two axes use the same cut dimension."""
    cut = [d for a in layout.access.axes for d, _ in a.terms if layout.parts[d] > 1]
    if len(cut) != len(set(cut)):
        return None
    found: list[_Axis] = []
    for axis in layout.access.axes:
        dims = tuple(sorted({d for d, _ in axis.terms}))
        access = AccessMap((axis,), layout.access.fill).renamed({d: k for k, d in enumerate(dims)})
        alone = Layout(tuple(layout.grid[d] for d in dims), access)
        found.append(_Axis(axis.size, alone, dims, _in_runs(alone)))
    return tuple(found)


def _moving(axes: tuple[_Axis, ...]) -> list[int]:
    """The indices of all axes, without axes of one element that use no dimension."""
    return [i for i, axis in enumerate(axes) if axis.size != 1 or axis.dims]


@dataclass(frozen=True)
class _Shift:
    """Element i of one axis is element i + by of another, if that lies in low..high - 1."""

    by: int
    low: int
    high: int


@lru_cache(maxsize=1024)
def shifts(move: Space) -> tuple[tuple[int, int, _Shift], ...] | None:
    """The pairs of axes that a move shifts along, as (operand's axis, result's axis, shift).

    None if the move does more than shift along separate axes.
    """
    (read,), (written,) = move.operands, move.results
    at = {axis.terms: i for i, axis in enumerate(read.axes) if axis.terms}
    found: list[tuple[int, int, _Shift]] = []
    for j, axis in enumerate(written.axes):
        if not axis.terms and axis.size == 1:
            continue
        if axis.terms not in at or [a for _, a in axis.terms] != [1]:
            return None
        i = at.pop(axis.terms)
        own = read.axes[i]
        if own.divisor != 1 or own.outside not in ("none", "fill"):
            return None
        size = move.sizes[axis.terms[0][0]]
        low, high = max(own.offset, 0), min(own.offset + size, own.size)
        found.append((i, j, _Shift(own.offset - axis.offset, low, max(low, high))))
    whole = all(axis.terms or axis.size == 1 for axis in read.axes)
    return tuple(found) if whole and not at and move.points else None


@lru_cache(maxsize=4096)
def _group(of: _Axis, to: _Axis, shift: _Shift, wanted: int, held: int) -> Group:
    """The elements that two layouts share along one axis of each, axis `wanted` and axis `held`."""
    cut = _shared(of.alone, to.alone, shift)
    return Group(
        tuple(to.dims[d] for d in cut.destination_dims),
        tuple(of.dims[d] for d in cut.source_dims),
        cut.shared,
        cut.sent,
        (wanted,),
        (held,),
    )


@lru_cache(maxsize=4096)
def _shared(of: Layout, to: Layout, shift: _Shift) -> Group:
    """The elements that two layouts of one axis share after a shift.

    For layouts that are not in runs, the shift has to be zero.
    """
    if not (_in_runs(of) and _in_runs(to)):
        return overlap(of, to).groups[0]
    own = _runs(of)
    wanted = tuple(_between(edge + shift.by, shift.low, shift.high) for edge in _runs(to))
    low = np.maximum(wanted[0][:, None], own[0])
    high = np.minimum(wanted[1][:, None], own[1])
    return Group(
        to.split_dims,
        of.split_dims,
        SharedElements.from_table(np.maximum(high - low, 0)),
        heard(*own, *wanted),
        (0,),
        (0,),
    )


def _between(values: Integers, low: int, high: int) -> Integers:
    """Like np.clip, which takes several times as long for a few values."""
    return np.minimum(np.maximum(values, low), high)


def _in_runs(layout: Layout) -> bool:
    """Whether every part of a layout of one axis is a single run of elements, apart from
    padding."""
    (axis,) = layout.access.axes
    return (
        axis.size > 0
        and axis.divisor == 1
        and axis.outside in ("none", "fill")
        and layout.steps == (1,)
    )


@lru_cache(maxsize=4096)
def _runs(layout: Layout) -> tuple[Integers, Integers]:
    """The first element of every part, and one past its last: (parts,) each."""
    starts = layout.starts(0).ravel()
    ends = starts + layout.counts(0).ravel()
    size = layout.shape[0]
    starts = _between(starts, 0, size)
    return starts, np.maximum(_between(ends, 0, size), starts)
