"""Copies from tile to tile as one compiled call, from tables of the sources of all elements.

The address of an element is a sum of offsets, one per axis: that of its cell, and that within the
block. This holds on both sides of most copies, whatever movement is between them. So one table per
axis is enough: for each cell along the axis and each of its numerators, the offset of its source. A
block is assembled in the first replica and copied to the others while it is in the cache.

    source: 6 rows on 3 tiles; target: windows of 3 rows on 2 tiles, stride 3, one row of padding

        cell 0:  fill   tile 0 + 0   tile 0 + 1 row       cell 1:  tile 1 + 0   tile 1 + 1 row ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ...ir.geometry.blocks import fill_of
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from ..codelets.calls import Array, Call, address
from ..codelets.numerics import Placed
from .calls import KernelCall, elements, table_address
from .kernels.tables import (
    ROUTE_CODE,
    ROUTE_FIELDS,
    ROUTE_FILL,
    ROUTE_PIECES,
    ROUTE_ROWS,
    ROUTE_SOURCE,
    ROUTE_STEP,
    ROUTE_TARGET,
    ROUTE_UNIT,
    RUNS_OF_ROUTE,
    SEGMENT_COUNT,
    SEGMENTS,
)
from .load import kernels
from .offsets import ABSENT, FILL, Offsets, Side, after_move, offsets_of, reshaped
from .runs import runs_of
from .walked_axes import WalkedAxis, walked_axes


def bind_routes(
    sources: Sequence[tuple[Placed, Layout]],
    moves: Sequence[Space] | None,
    target: tuple[Placed, Layout],
    with_replicas: bool = True,
) -> list[Call] | None:
    """The calls that fill a variable's blocks from others.

    None if addresses are not sums of offsets. The arguments are those of `bind_copy`. The target is
    not empty.
    """
    bringing = _bringing(sources, moves)
    if bringing is None:
        return None
    sources, spaces = bringing
    key = tuple(_side(*each) for each in sources), spaces, _side(*target), with_replicas
    routes = _KNOWN.get(key) or _routes(*key)
    if routes is None:
        return None
    _KNOWN[key] = routes
    calls: list[Call] = []
    start, compiled = _start(*target), kernels("routes")
    for each, (rest, *tables, stages) in zip(sources, routes.tables, strict=True):
        begin = _start(*each)
        head = np.zeros(ROUTE_FIELDS, np.int64)
        head[[ROUTE_SOURCE, ROUTE_TARGET]] = address(begin), address(start)
        head[[ROUTE_UNIT, ROUTE_FILL, ROUTE_STEP]] = rest
        head[ROUTE_CODE] = compiled.COPY_IN_PIECES
        listed = SEGMENTS, RUNS_OF_ROUTE, ROUTE_ROWS, ROUTE_PIECES
        head[SEGMENT_COUNT] = len(tables[0])
        head[list(listed)] = [table_address(table) for table in tables]
        pointers = elements(head, ROUTE_SOURCE, ROUTE_TARGET, ROUTE_CODE, *listed)
        for cuts in stages:
            kept = begin, start, routes
            call = KernelCall(compiled.ROUTE, head, cuts, kept, pointers=pointers)
            calls.append((call, ()))
    return calls


def _side(placed: Placed, layout: Layout) -> Side:
    layout = replace(layout, first_tile=0) if layout.first_tile else layout
    return Side(layout, placed.memory.strides[0], placed.dtype)


def _start(placed: Placed, layout: Layout) -> Array:
    """A variable's bytes, beginning with its first block."""
    return placed.memory[layout.first_tile, placed.address :]


@dataclass(frozen=True, eq=False)
class _Routes:
    """The tables of a copy.

    For each source: unit, fill and step, the other tables of a call, and the cuts of each of its
    calls, which are made one after another.
    """

    tables: list[tuple[Any, ...]]


_KNOWN: WeakValueDictionary[tuple[object, ...], _Routes] = WeakValueDictionary()
"""The routes of all calls in use, because equal layers copy their operands in the same way."""


def has_routes(
    sources: Sequence[tuple[Placed, Layout]],
    moves: Sequence[Space] | None,
    target: tuple[Placed, Layout],
) -> bool:
    """Whether bind_routes returns calls."""
    bringing = _bringing(sources, moves)
    if bringing is None:
        return False
    sources, spaces = bringing
    return _sums([_side(*each) for each in sources], spaces, _side(*target)) is not None


def _bringing(
    sources: Sequence[tuple[Placed, Layout]], moves: Sequence[Space] | None
) -> tuple[Sequence[tuple[Placed, Layout]], tuple[Space | None, ...]] | None:
    """The sources that contribute elements, and the move of each, or None; None if one is empty."""
    if moves is None:
        return sources, (None,) * len(sources)
    brings = [0 not in space.sizes for space in moves]
    sources = [each for each, some in zip(sources, brings, strict=True) if some]
    # An empty source contributes only padding, which has no address.
    if any(0 in layout.shape for _, layout in sources):
        return None
    return sources, tuple(each for each, some in zip(moves, brings, strict=True) if some)


def _routes(
    sources: Sequence[Side],
    moves: Sequence[Space | None],
    target: Side,
    with_replicas: bool,
) -> _Routes | None:
    """Like bind_routes, for variables at unknown addresses.

    Args:
        moves: None for sources without a move.
    """
    sums = _sums(sources, moves, target)
    if sums is None:
        return None
    cells, found, fill = sums
    return _Routes([runs_of(offsets, target, cells, fill, with_replicas) for offsets in found])


def _sums(
    sources: Sequence[Side], moves: Sequence[Space | None], target: Side
) -> tuple[list[WalkedAxis], list[Offsets], int] | None:
    """The cells of a target, the offsets of each source's elements, and the bits of the fill value.

    None if addresses are not sums of offsets.
    """
    cells = walked_axes(target)
    if cells is None:
        return None
    layout, dtype = target.layout, target.dtype
    found: list[Offsets] = []
    fills = {_bits(layout.access.fill, dtype)}
    for source, space in zip(sources, moves, strict=True):
        offsets = offsets_of(source)
        shape = source.layout.shape
        if offsets is not None and space is not None:
            (operand,), (result,) = space.operands, space.results
            offsets = reshaped(offsets, shape, operand.shape)
            offsets, shape = after_move(offsets, space), result.shape
            if any(((a >= FILL) & (a < ABSENT)).any() for a in offsets or ()):
                fills.add(_bits(operand.fill, dtype))
        if offsets is not None:
            offsets = reshaped(offsets, shape, layout.shape)
        if offsets is None or len(fills) > 1:
            return None
        found.append(offsets)
    (fill,) = fills
    return cells, found, fill


def _bits(fill: float, dtype: np.dtype[np.generic]) -> int:
    """A fill value as an integer of the bytes of its dtype."""
    return int.from_bytes(np.asarray(fill_of(fill, dtype)).tobytes(), "little", signed=True)
