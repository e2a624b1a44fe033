"""Copies from tile to tile as one compiled call, from tables of where every element comes from.

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
from functools import reduce
from math import prod
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ...ir.geometry.blocks import fill_of
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from ..codelets.calls import Array, Call, address
from ..codelets.numerics import Placed
from ..codelets.stamps import Table
from .bundles import entries_of, groups, with_bundles
from .calls import KernelCall, table_address, unit_cuts
from .kernels.tables import (
    BY_BYTES,
    BY_WORDS,
    FILLED,
    GATHERED,
    LANES,
    REPLICA,
    ROUTE_CODE,
    ROUTE_FIELDS,
    ROUTE_FILL,
    ROUTE_PIECES,
    ROUTE_ROWS,
    ROUTE_SOURCE,
    ROUTE_STEP,
    ROUTE_TARGET,
    ROUTE_UNIT,
    RUN_FIELDS,
    RUN_LENGTH,
    RUN_PIECES,
    RUN_ROW_TABLE,
    RUN_ROWS,
    RUN_SOURCE,
    RUN_TARGET,
    RUNS_OF_ROUTE,
    SEGMENT_COUNT,
    SEGMENTS,
    TRANSPOSED,
)
from .load import kernels

FILL = 1 << 50
"""The offset of an element without a source, which is filled. Offsets are added up, so any larger
one means the same."""

ABSENT = 1 << 56
"""The offset of an element that another move brings."""

SHORT_ROW = 16
"""Innermost axes of fewer elements are walked together with the next axis..."""

LONGEST_TABLE = 1 << 13
"""... as long as their combined table has at most so many elements."""

LONG_RUN = 4
"""Elements of the shortest run that is copied as a run if both sides are contiguous."""

BYTES_PER_NANOSECOND = 10.0
NANOSECONDS_PER_PIECE, NANOSECONDS_PER_TRANSPOSED = 0.35, 0.1
"""Rough estimates of how fast runs are copied, and pieces that are gathered or transposed."""

MOST_PARITIES = 3
"""Stretches of even and of odd pieces that a run is cut into, at most."""

Offsets = list[Table]
"""For each axis of a tensor, the offset in bytes of the source of each index; FILL or ABSENT if it
has none."""


def bind_routes(
    sources: Sequence[tuple[Placed, Layout]],
    moves: Sequence[Space] | None,
    target: tuple[Placed, Layout],
    with_replicas: bool = True,
) -> list[Call] | None:
    """The calls that fill a variable's blocks from others; None if addresses are not sums of
    offsets.

    Arguments as for `bind_copy`. The target is not empty.
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
        for cuts in stages:
            call = KernelCall(compiled.ROUTE, head, cuts, (begin, start, routes))
            calls.append((call, ()))
    return calls


class _Side(NamedTuple):
    """A variable at an unknown address: its layout from tile 0 on, bytes of a tile, and dtype."""

    layout: Layout
    row: int
    dtype: np.dtype[Any]

    @property
    def unit(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize


def _side(placed: Placed, layout: Layout) -> _Side:
    layout = replace(layout, first_tile=0) if layout.first_tile else layout
    return _Side(layout, placed.memory.strides[0], placed.dtype)


def _start(placed: Placed, layout: Layout) -> Array:
    """A variable's bytes from its first block on."""
    return placed.memory[layout.first_tile, placed.address :]


@dataclass(frozen=True, eq=False)
class _Routes:
    """The tables of a copy, for each source: unit, fill and step, the other tables of a call, and
    the cuts of each call, which are made one after another."""

    tables: list[tuple[Any, ...]]


_KNOWN: WeakValueDictionary[tuple[object, ...], _Routes] = WeakValueDictionary()
"""The routes of all calls in use: equal layers copy their operands in the same way."""


def has_routes(
    sources: Sequence[tuple[Placed, Layout]],
    moves: Sequence[Space] | None,
    target: tuple[Placed, Layout],
) -> bool:
    """Whether bind_routes finds calls."""
    bringing = _bringing(sources, moves)
    if bringing is None:
        return False
    sources, spaces = bringing
    return _sums([_side(*each) for each in sources], spaces, _side(*target)) is not None


def _bringing(
    sources: Sequence[tuple[Placed, Layout]], moves: Sequence[Space] | None
) -> tuple[Sequence[tuple[Placed, Layout]], tuple[Space | None, ...]] | None:
    """The sources that bring something, and the move of each, None if it has none; None if one has
    no elements."""
    if moves is None:
        return sources, (None,) * len(sources)
    brings = [0 not in space.sizes for space in moves]
    sources = [each for each, some in zip(sources, brings, strict=True) if some]
    # All that an empty source brings is padding, which has no address.
    if any(0 in layout.shape for _, layout in sources):
        return None
    return sources, tuple(each for each, some in zip(moves, brings, strict=True) if some)


def _routes(
    sources: Sequence[_Side],
    moves: Sequence[Space | None],
    target: _Side,
    with_replicas: bool,
) -> _Routes | None:
    """As bind_routes, for variables at unknown addresses. moves: None for each without one."""
    sums = _sums(sources, moves, target)
    if sums is None:
        return None
    cells, found, fill = sums
    return _Routes([_tables(offsets, target, cells, fill, with_replicas) for offsets in found])


def _sums(
    sources: Sequence[_Side], moves: Sequence[Space | None], target: _Side
) -> tuple[list[_Axis], list[Offsets], int] | None:
    """The cells of a target, the offsets of what each source brings, and the bits that fill the
    rest; None if addresses are not sums of offsets."""
    cells = _cells(target)
    if cells is None:
        return None
    layout, dtype = target.layout, target.dtype
    found: list[Offsets] = []
    fills = {_bits(layout.access.fill, dtype)}
    for source, space in zip(sources, moves, strict=True):
        offsets = _offsets_of(source)
        shape = source.layout.shape
        if offsets is not None and space is not None:
            (operand,), (result,) = space.operands, space.results
            offsets = _reshaped(offsets, shape, operand.shape)
            offsets, shape = _moved(offsets, space), result.shape
            if any(((a >= FILL) & (a < ABSENT)).any() for a in offsets or ()):
                fills.add(_bits(operand.fill, dtype))
        if offsets is not None:
            offsets = _reshaped(offsets, shape, layout.shape)
        if offsets is None or len(fills) > 1:
            return None
        found.append(offsets)
    (fill,) = fills
    return cells, found, fill


def _bits(fill: float, dtype: np.dtype[np.generic]) -> int:
    """A fill value as an integer of the bytes of its dtype."""
    return int.from_bytes(np.asarray(fill_of(fill, dtype)).tobytes(), "little", signed=True)


def _parts(layout: Layout, axis: int) -> tuple[Table, Table, Table]:
    """For each cell along an axis, row-major over its dimensions: the offset in tiles, the first
    numerator, and how many there are."""
    starts, counts = layout.starts(axis), layout.counts(axis)
    tiles = np.zeros((1,) * len(layout.grid), np.int64)
    for d, _ in layout.access.axes[axis].terms:
        shape = [-1 if i == d else 1 for i in range(len(layout.grid))]
        tiles = tiles + (np.arange(layout.parts[d]) * layout.weights[d]).reshape(shape)
    return np.broadcast_to(tiles, starts.shape).ravel(), starts.ravel(), counts.ravel()


def _offsets_of(source: _Side) -> Offsets | None:
    """Where the elements of a variable are, in its first replicas; None for overlapping blocks."""
    layout, row, unit = source.layout, source.row, source.unit
    if not layout.is_partition:
        return None
    found: Offsets = []
    for i, axis in enumerate(layout.access.axes):
        tiles, starts, counts = _parts(layout, i)
        part, within = entries_of(counts)
        index = axis.resolve(starts[part] + within * layout.steps[i])
        there = index >= 0
        offsets = np.full(axis.size, FILL, np.int64)
        offsets[index[there]] = (tiles[part] * row + within * layout.strides[i] * unit)[there]
        found.append(offsets)
    return found


def _outer(a: Table, b: Table) -> Table:
    return (a[:, None] + b).reshape(-1)


def _reshaped(offsets: Offsets, old: Sequence[int], new: Sequence[int]) -> Offsets | None:
    """The offsets of a tensor in another shape, row-major; None if an axis cannot be split."""
    if tuple(old) == tuple(new):
        return offsets
    if not new:
        return None
    found: Offsets = []
    i = j = 0
    while i < len(old) or j < len(new):
        # The fewest axes on each side with equal numbers of elements.
        begin, first = i, j
        have, wanted = prod(old[i : i + 1]), prod(new[j : j + 1])
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while have != wanted:
            if have < wanted:
                have *= old[i]
                i += 1
            else:
                wanted *= new[j]
                j += 1
        merged = reduce(_outer, offsets[begin:i], np.zeros(1, np.int64))
        if first == j:
            found[-1] = found[-1] + merged[0]
            continue
        pieces = _split(merged, new[first:j])
        if pieces is None:
            return None
        found += pieces
    return found


def _split(offsets: Table, sizes: Sequence[int]) -> Offsets | None:
    """Offsets of several axes that add up to these; None if there are none.

    The offsets of each axis are relative to the lowest source, so that they are not negative:
    added to FILL or ABSENT, they do not change what it means.
    """
    if len(sizes) <= 1:
        return [offsets]
    first = int(offsets.argmin())
    if offsets[first] >= FILL:
        return None
    box, at = offsets.reshape(tuple(sizes)), np.unravel_index(first, tuple(sizes))
    found: Offsets = []
    for d in range(len(sizes)):
        along = box[tuple(slice(None) if i == d else at[i] for i in range(len(sizes)))]
        found.append(np.where(along < FILL, along - offsets[first], along) if found else along)
    total = reduce(_outer, found)
    same_state = _states(total) == _states(offsets)
    return found if (same_state & ((total == offsets) | (offsets >= FILL))).all() else None


def _states(offsets: Table) -> Table:
    """For each offset: 0 if it has a source, 1 if it is filled, 2 if it is absent."""
    return np.searchsorted([FILL, ABSENT], offsets, side="right")


def _moved(offsets: Offsets | None, space: Space) -> Offsets | None:
    """The offsets of a move's result; None if the move reads windows."""
    if offsets is None:
        return None
    (operand,), (result,) = space.operands, space.results
    walked = [np.zeros(n, np.int64) for n in space.sizes]
    start = 0
    for axis, of_axis in zip(operand.axes, offsets, strict=True):
        padded = np.append(of_axis, FILL)
        if len(axis.terms) > 1:
            return None
        if not axis.terms:
            start += int(padded[axis.resolve(np.array([axis.offset]))[0]])
        for d, a in axis.terms:
            walked[d] = (
                walked[d] + padded[axis.resolve(np.arange(space.sizes[d]) * a + axis.offset)]
            )
    named = [axis.terms[0][0] for axis in result.axes if axis.terms]
    for d, each in enumerate(walked):
        if d not in named:
            if len(each) > 1:
                return None
            start += int(each[0])
    found: Offsets = []
    for axis in result.axes:
        moved = np.full(axis.size, ABSENT, np.int64)
        each = walked[axis.terms[0][0]] if axis.terms else np.zeros(1, np.int64)
        moved[axis.offset : axis.offset + len(each)] = each
        found.append(moved)
    if not found:
        return None
    found[0] = found[0] + start
    return found


@dataclass(frozen=True, eq=False)
class _Axis:
    """The cells of a target along one axis, or along several that are walked together.

    axes: which axes. stride: bytes from one index to the next, if it is one axis. tiles: the offset
    in bytes of each cell. counts: elements of each cell. part, at: the cell of each element, and
    its offset in the block. numerators: those of each element, on each axis.
    """

    axes: tuple[int, ...]
    stride: int
    tiles: Table
    counts: Table
    part: Table
    at: Table
    numerators: tuple[Table, ...]

    def offsets(self, layout: Layout, sources: Offsets) -> Table:
        """The offset of the source of each element."""
        total = np.zeros(len(self.at), np.int64)
        for i, numerators in zip(self.axes, self.numerators, strict=True):
            total += np.append(sources[i], FILL)[layout.access.axes[i].resolve(numerators)]
        return total

    def times(self, inner: _Axis) -> _Axis:
        """This axis and an inner one, walked together."""
        cells = len(inner.tiles)
        part = (self.part[:, None] * cells + inner.part).reshape(-1)
        order = np.argsort(part, kind="stable")
        high, low = np.divmod(order, len(inner.part))
        return _Axis(
            self.axes + inner.axes,
            inner.stride,
            _outer(self.tiles, inner.tiles),
            (self.counts[:, None] * inner.counts).reshape(-1),
            part[order],
            self.at[high] + inner.at[low],
            (*(n[high] for n in self.numerators), *(n[low] for n in inner.numerators)),
        )


def _cells(target: _Side) -> list[_Axis] | None:
    """The axes of a target; None if a dimension that is cut moves along two of them.

    The last but one is walked as rows, one per index. The last one makes the runs of each row: it
    is the innermost axis that has several elements, together with the next one if it is short.
    """
    layout, row, unit = target.layout, target.row, target.unit
    cut = [d for a in layout.access.axes for d, _ in a.terms if layout.parts[d] > 1]
    if len(set(cut)) < len(cut):
        return None
    axes: list[_Axis] = []
    for i in range(len(layout.access.axes)):
        tiles, starts, counts = _parts(layout, i)
        part, within = entries_of(counts)
        numerators = starts[part] + within * layout.steps[i]
        stride = layout.strides[i] * unit
        axes.append(_Axis((i,), stride, tiles * row, counts, part, within * stride, (numerators,)))
    zero = np.zeros(1, np.int64)
    while len(axes) < 2:
        axes.insert(0, _Axis((), 0, zero, zero + 1, zero, zero, ()))
    long = [a for a in axes if a.counts.max() > 1] or axes[-1:]
    inner = long.pop()
    while long and inner.counts.max() < SHORT_ROW:
        if len(long[-1].at) * len(inner.at) > LONGEST_TABLE:
            break
        taken = long.pop()
        axes = [a for a in axes if a not in (taken, inner)]
        inner = taken.times(inner)
    axes = [a for a in axes if a is not inner]
    if not axes:
        axes = [_Axis((), 0, zero, zero + 1, zero, zero, ())]
    rows = max(axes, key=lambda a: a.counts.max())
    return [*(a for a in axes if a is not rows), rows, inner]


def _tables(
    offsets: Offsets, target: _Side, axes: list[_Axis], fill: int, with_replicas: bool
) -> tuple[Any, ...]:
    """The tables of the calls that copy what one source has, and the cuts of each call.

    There are several calls if replicas are copied after all cells, and not cell by cell.
    """
    layout, row, unit = target.layout, target.row, target.unit
    found = [axis.offsets(layout, offsets) for axis in axes]
    *outer, middle, inner = axes
    rows, row_spans = _rows(middle, found[-2])
    runs, run_spans, lanes = _runs(inner, found[-1], unit)
    number = np.meshgrid(*(np.arange(len(axis.tiles)) for axis in axes), indexing="ij")
    columns = [n.ravel() for n in number]
    begins = sum(f[_spans(a.counts)[c, 0]] for f, a, c in zip(found, axes, columns, strict=True))
    # Neighbours in the source are read one after the other.
    order = np.argsort(begins, kind="stable")
    columns = [c[order] for c in columns]
    tiles = np.zeros(len(order), np.int64)
    for axis, c in zip(axes, columns, strict=True):
        tiles += axis.tiles[c]
    cell, on, at = _points(outer, columns, found)
    on += tiles[cell]
    # Each point has stretches of rows, and each stretch has runs.
    which, stretch = _within(row_spans[columns[-2][cell]])
    cell, on, at = cell[which], on[which], at[which] + rows[stretch, 3]
    there = at < ABSENT
    cell, on, at, stretch = cell[there], on[there], at[there], stretch[there]
    which, run = _within(run_spans[columns[-1][cell]])
    cell, stretch, kind = cell[which], stretch[which], runs[run, 3]
    table = np.zeros((len(run), RUN_FIELDS), np.int64)
    table[:, RUN_TARGET] = on[which] + rows[stretch, 2] + runs[run, 0]
    table[:, RUN_LENGTH] = runs[run, 2]
    table[:, RUN_ROWS] = rows[stretch, 1]
    is_filled = (at[which] >= FILL) | (kind == FILLED)
    elements = _bytes(kind, runs[run, 2], unit) // unit
    table[is_filled, RUN_LENGTH] = elements[is_filled]
    kind = np.where(is_filled, FILLED, kind)
    is_gathered = kind >= GATHERED
    copied = np.flatnonzero(~is_filled)
    table[:, RUN_PIECES] = runs[run, 1] * is_gathered
    table[copied, RUN_SOURCE] = (at[which] + runs[run, 1] * ~is_gathered)[copied]
    entries = np.append(found[-2], 0)
    table[:, RUN_ROW_TABLE] = rows[stretch, 0]
    is_single = copied[table[copied, RUN_ROWS] == 1]
    table[is_single, RUN_SOURCE] += entries[table[is_single, RUN_ROW_TABLE]]
    table[is_single, RUN_ROW_TABLE] = len(entries) - 1
    if with_replicas:
        is_whole = not any((f >= ABSENT).any() for f in found)
        whole = _together(axes, columns, unit) * is_whole
        copies, of = _replicas(layout, row, table, cell, kind, tiles, whole, unit)
        table = np.concatenate([table, copies])
        cell = np.concatenate([cell, of])
        kind = np.concatenate([kind, np.full(len(of), REPLICA)])
    table, kind, first, last, entries = with_bundles(table, kind, cell, entries, middle.stride)
    # Only replicas need to be in the same group as the runs that they copy.
    group = groups(first, last if with_replicas else first)
    order = np.lexsort((table[:, RUN_LENGTH], kind, group))
    table, kind, group = table[order], kind[order], group[order]
    edges = np.flatnonzero(np.r_[True, np.diff(kind) != 0, True]) if len(kind) else np.zeros(1, int)
    segments = np.stack([kind[edges[:-1]], edges[:-1], edges[1:]], axis=1)
    rest = np.array([unit, fill, middle.stride], np.int64)
    return rest, segments, table, entries, lanes, _stages(table, kind, group, unit)


def _stages(table: Table, kind: Table, group: Table, unit: int) -> list[Table]:
    """The cuts of the calls that make all runs, one call after another.

    Within a group of cells, replicas need the runs before them. With one group, all runs but the
    replicas come first. group: that of each run.
    """
    costs = _nanoseconds(table, kind, unit)
    if len(group) and group[-1]:
        return [unit_cuts(costs, np.flatnonzero(np.r_[np.diff(group) > 0, True]) + 1)]
    first = int(np.count_nonzero(kind != REPLICA))
    stages = [unit_cuts(costs[:first]), unit_cuts(costs[first:]) + first]
    if all(len(cuts) == 2 for cuts in stages):
        return [np.array([0, len(kind)], np.int64)]
    return [cuts for cuts in stages if cuts[0] < cuts[-1]]


def _nanoseconds(table: Table, kind: Table, unit: int) -> NDArray[np.float64]:
    """A rough estimate of the time of each run."""
    # The length of a replica is in bytes, too.
    how = np.where(kind == REPLICA, BY_BYTES, kind)
    bytes_ = _bytes(how, table[:, RUN_LENGTH], unit)
    each = 2.0 + bytes_ / BYTES_PER_NANOSECOND
    for first, end, per_piece in (
        (GATHERED, TRANSPOSED, NANOSECONDS_PER_PIECE),
        (TRANSPOSED, REPLICA, NANOSECONDS_PER_TRANSPOSED),
    ):
        is_such = (kind >= first) & (kind < end)
        each[is_such] += table[is_such, RUN_LENGTH] * per_piece
    return 2.0 + table[:, RUN_ROWS] * each


def _points(
    axes: Sequence[_Axis], columns: Sequence[Table], found: Sequence[Table]
) -> tuple[Table, Table, Table]:
    """All indices of each cell along some axes together: the cell of each, its offset in the block,
    and the offset of its source.

    columns: the index of each cell along each axis.
    """
    counts = [axis.counts[c] for axis, c in zip(axes, columns, strict=False)]
    points = reduce(np.multiply, counts, np.ones(len(columns[0]), np.int64))
    cell, left = entries_of(points)
    on, at = np.zeros_like(left), np.zeros_like(left)
    for axis, column, count, offsets in reversed(
        list(zip(axes, columns, counts, found, strict=False))
    ):
        left, within = np.divmod(left, count[cell])
        element = _spans(axis.counts)[column[cell], 0] + within
        on, at = on + axis.at[element], at + offsets[element]
    return cell, on, at


def _within(spans: Table) -> tuple[Table, Table]:
    """For spans (first, end): the span of each of their elements, and the element itself."""
    span, within = entries_of(spans[:, 1] - spans[:, 0])
    return span, spans[span, 0] + within


def _replicas(
    layout: Layout,
    row: int,
    table: Table,
    cell: Table,
    kind: Table,
    tiles: Table,
    whole: Table,
    unit: int,
) -> tuple[Table, Table]:
    """The runs that copy the first replica of each cell to the others, and the cell of each run.

    A contiguous block is copied as a whole, others run by run. row: bytes of a tile. table, cell,
    kind: the runs of first replicas, the cell of each, and how it is made. tiles, whole: the offset
    of each cell, and the bytes of its block if it is contiguous.
    """
    dims = layout.replica_dims
    sizes = [layout.parts[d] for d in dims]
    parts = np.indices(sizes).reshape(len(dims), prod(sizes))
    on = (np.array([layout.weights[d] for d in dims], np.int64) @ parts * row)[1:]
    by_run = table[whole[cell] == 0]
    runs = np.zeros((len(by_run), RUN_FIELDS), np.int64)
    runs[:, [RUN_TARGET, RUN_ROWS]] = by_run[:, [RUN_TARGET, RUN_ROWS]]
    runs[:, RUN_SOURCE] = by_run[:, RUN_TARGET]
    runs[:, RUN_LENGTH] = _bytes(kind[whole[cell] == 0], by_run[:, RUN_LENGTH], unit)
    as_whole = np.flatnonzero(whole)
    blocks = np.zeros((len(as_whole), RUN_FIELDS), np.int64)
    blocks[:, [RUN_TARGET, RUN_SOURCE]] = tiles[as_whole, None]
    blocks[:, RUN_LENGTH], blocks[:, RUN_ROWS] = whole[as_whole], 1
    once = np.concatenate([runs, blocks])
    cells = np.concatenate([cell[whole[cell] == 0], as_whole])
    copies = np.repeat(once, len(on), axis=0)
    copies[:, RUN_TARGET] += np.tile(on, len(once))
    return copies, np.repeat(cells, len(on))


def _bytes(kind: Table, length: Table, unit: int) -> Table:
    """Bytes of runs that are made in these ways and have these lengths."""
    # The length of a filled run counts elements.
    gathered = [1 << n for n in range(TRANSPOSED - GATHERED)]
    transposed = [4 << n for n in range(REPLICA - TRANSPOSED)]
    return length * np.array([unit, 4, 1, *gathered, *transposed], np.int64)[kind]


def _spans(counts: Table) -> Table:
    """The span (first, end) of each cell's elements."""
    ends = np.cumsum(counts)
    return np.stack([ends - counts, ends], axis=1)


def _together(axes: list[_Axis], columns: list[Array], unit: int) -> Table:
    """The bytes of each cell's block if it is contiguous; else 0."""
    inner = axes[-1]
    ends = np.cumsum(inner.counts) - 1
    length = np.where(inner.at[ends] == (inner.counts - 1) * unit, inner.counts * unit, 0)
    length = length[columns[-1]]
    order = sorted(range(len(axes) - 1), key=lambda i: axes[i].stride)
    for i in order:
        count = axes[i].counts[columns[i]]
        grown = np.where(length == axes[i].stride, length * count, 0)
        length = np.where(count == 1, length, grown)
    return length


def _rows(axis: _Axis, found: Table) -> tuple[Table, Table]:
    """For each cell, stretches of rows that all have sources, are all filled, or are all absent.

    Returns (first entry, rows, offset in the block, 0 or FILL or ABSENT) of each stretch, and the
    span of each cell's stretches.
    """
    there = _states(found)
    breaks = np.r_[True, (np.diff(axis.part) != 0) | (np.diff(there) != 0)]
    first = np.flatnonzero(breaks)
    count = np.diff(np.r_[first, len(found)])
    state = np.array([0, FILL, ABSENT])[there[first]]
    spans = _spans(np.bincount(axis.part[first], minlength=len(axis.tiles)))
    return np.stack([first, count, axis.at[first], state], axis=1), spans


def _runs(axis: _Axis, found: Table, unit: int) -> tuple[Table, Table, Table]:
    """The runs of each row.

    Returns (offset in the block, offset of the source, length, kind) of each run, the span of each
    cell's runs, and the offsets of the pieces of gathered runs.
    """
    there = _states(found)
    ends = np.r_[True, np.diff(axis.part) != 0]
    ends[1:] |= (np.diff(there) != 0) | (np.diff(axis.at) != unit)
    breaks = ends.copy()
    breaks[1:] |= (there[1:] == 0) & (np.diff(found) != unit)
    # Pieces of an even number of elements are copied two elements at a time.
    number = np.cumsum(breaks) - 1
    is_even = (np.bincount(number) % 2 == 0)[number]
    turns = breaks & ~ends
    turns[1:] &= np.diff(is_even)
    run = np.cumsum(ends) - 1
    ends |= turns & (np.bincount(run, turns) < MOST_PARITIES)[run]
    run = np.cumsum(ends) - 1
    lengths, parts = np.bincount(run), np.bincount(run, breaks)
    gathered = ((parts > 1) & (lengths < LONG_RUN * parts))[run]
    first = np.flatnonzero(ends | (breaks & ~gathered))
    length = np.diff(np.r_[first, len(found)])
    twos = np.logical_and.reduceat(is_even, first).astype(np.int64)
    which = np.repeat(np.arange(len(first)), length)
    within = np.arange(len(found)) - first[which]
    is_lane = gathered & (within % (1 + twos)[which] == 0)
    size = length * unit
    kind = np.where((size % 4 == 0) & (size <= 4 * LANES), BY_WORDS, BY_BYTES)
    kind = np.where(gathered[first], GATHERED + twos + int(unit).bit_length() - 1, kind)
    kind[there[first] > 0] = FILLED
    where = np.where(kind >= GATHERED, np.cumsum(is_lane)[first] - 1, found[first])
    each = np.array([unit, 4, 1], np.int64)[np.minimum(kind, BY_BYTES)]
    size = np.where(kind >= GATHERED, length >> twos, np.floor_divide(size, each))
    kept = there[first] < 2
    runs = np.stack([axis.at[first], where, size, kind], axis=1)[kept]
    spans = _spans(np.bincount(axis.part[first][kept], minlength=len(axis.tiles)))
    return runs, spans, found[is_lane]
