"""Windows of a tensor that begin at indices of the run: what gathers and scatters read and write.

Along some axes of the tensor a window begins at an index; of the others it has all elements. The
former axes are moved to the front and merged into one, which numbers the rows of a table. An
element of a window along them is the number of a row. So a gather is a lookup of rows in nn, and a
scatter an update of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from xdsl.dialects.builtin import i1, i8, i32
from xdsl.ir import SSAValue

from ...backends.reference.identities import identity_of
from ...dialects import nn
from ..analysis.value_ranges import range_of
from .conversion import ToNn, ToNnArray
from .integers import dtype_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """Windows of one shape in a tensor. Each begins at an index, which is a vector of components.

    Attributes:
        shape: of the tensor.
        sizes: of a window along all axes of the tensor.
        placed: the axes of the tensor that a window has as axes of its own; it has one element
            along the others.
        at: where these axes are in the tensor of all windows. Its other axes are batch axes.
        starts: the axis of the tensor of each component of an index.
        along: the axis of the indices along which the components are; the rank of the indices if
            each has one component. The other axes of the indices are the batch axes.
        batching: the axes of the tensor along which each window has the index of its batch axis.
        batch_axes: the axes of the indices that are these batch axes.
    """

    shape: Shape
    sizes: Shape
    placed: Shape
    at: Shape
    starts: Shape
    along: int
    batching: Shape = ()
    batch_axes: Shape = ()

    @cached_property
    def indexed(self) -> Shape:
        """The axes of the tensor along which windows begin somewhere."""
        pairs = zip(self.shape, self.sizes, strict=True)
        return tuple(a for a, (n, m) in enumerate(pairs) if n != m or a in self.batching)

    @cached_property
    def whole(self) -> Shape:
        """The axes of the tensor of which a window has all elements."""
        return tuple(a for a in range(len(self.shape)) if a not in self.indexed)

    @property
    def limits(self) -> ToNnArray:
        """For each component, the largest index at which a window lies inside the tensor."""
        return np.array([self.shape[a] - self.sizes[a] for a in self.starts], np.int64)

    @cached_property
    def weights(self) -> dict[int, int]:
        """For each axis that is indexed, the distance of the rows of two neighbours along it."""
        found: dict[int, int] = {}
        step = 1
        for a in reversed(self.indexed):
            found[a] = step
            step *= self.shape[a]
        return found

    @property
    def row_count(self) -> int:
        """The rows of the table."""
        return prod(self.shape[a] for a in self.indexed)

    def batch(self, indices: Shape) -> Shape:
        """The sizes of the batch axes."""
        return tuple(n for d, n in enumerate(indices) if d != self.along)

    def offsets(self, batch: Shape) -> ToNnArray:
        """What is added to the row of each index for the elements of its window.

        Its axes are those of the batch, of 1 element where nothing depends on them, and the axes of
        a window that are indexed.
        """
        total = np.zeros([1] * len(batch), np.int64)
        for a, d in zip(self.batching, self.batch_axes, strict=True):
            axis = d - (d > self.along)
            along = [-1 if i == axis else 1 for i in range(len(batch))]
            total = total + (np.arange(batch[axis]) * self.weights[a]).reshape(along)
        for a in self.indexed:
            if a in self.placed:
                total = total[..., None] + np.arange(self.sizes[a]) * self.weights[a]
        return total

    def factors(self) -> ToNnArray:
        """What each component of an index is multiplied by."""
        return np.array([self.weights.get(a, 0) for a in self.starts], np.int64)

    def order(self, rank: int) -> list[int]:
        """The axes of the tensor of all windows: of the batch, then indexed, then whole ones.

        Args:
            rank: of that tensor.
        """
        place = dict(zip(self.placed, self.at, strict=True))
        own = [place[a] for a in (*self.indexed, *self.whole) if a in place]
        return [*(d for d in range(rank) if d not in self.at), *own]

    def table(self, new: ToNn, value: SSAValue) -> SSAValue:
        """The tensor as a table: rows, then the axes that windows have whole."""
        moved = new.transpose(value, (*self.indexed, *self.whole))
        return new.reshape(moved, (self.row_count, *(self.shape[a] for a in self.whole)))

    def tensor(self, new: ToNn, table: SSAValue) -> SSAValue:
        """The tensor of a table."""
        order = (*self.indexed, *self.whole)
        made = new.reshape(table, [self.shape[a] for a in order])
        return new.transpose(made, [order.index(a) for a in range(len(order))])


def gathered(
    new: ToNn,
    operand: SSAValue,
    indices: SSAValue,
    windows: Windows,
    known: ToNnArray | None = None,
) -> SSAValue:
    """The windows of a tensor that begin at indices.

    An index at which a window would not lie inside the tensor counts as the nearest one at which it
    does.

    Args:
        known: the indices, if they are known now.
    """
    batch = windows.batch(nn.shape_of(indices))
    fixed = {*range(len(windows.shape))} - {*windows.starts, *windows.batching}
    left = [windows.sizes[a] if a in fixed else n for a, n in enumerate(windows.shape)]
    operand = new.box(operand, [0] * len(left), left)
    windows = replace(windows, shape=tuple(left))
    own = [windows.sizes[a] for a in (*windows.indexed, *windows.whole) if a in windows.placed]
    if 0 in (*batch, *own):
        looked = new.constant(np.zeros((*batch, *own), dtype_of(operand)))
    elif not windows.indexed:
        one = new.reshape(operand, (*[1] * len(batch), *own))
        looked = new.expand(one, (*batch, *own))
    else:
        rows = _inside_rows(new, indices, windows, known)
        looked = new.add(nn.GatherOp(windows.table(new, operand), rows, 0))
    found = new.reshape(looked, (*batch, *own))
    order = windows.order(len(batch) + len(own))
    return new.transpose(found, [order.index(d) for d in range(len(order))])


def _inside_rows(
    new: ToNn, indices: SSAValue, windows: Windows, known: ToNnArray | None
) -> SSAValue:
    """The rows of windows, each of which is moved to where it lies inside the tensor."""
    if known is None:
        inside = _limited(new, _moved(new, indices, windows), windows.limits)
        return _rows(new, inside, windows)
    inside = np.clip(_components(known, windows), 0, windows.limits)
    return new.constant(_known_rows(inside, windows, windows.batch(known.shape)))


def scattered(
    new: ToNn,
    operand: SSAValue,
    indices: SSAValue,
    updates: SSAValue,
    windows: Windows,
    combiner: str,
    known: ToNnArray | None = None,
) -> SSAValue:
    """A tensor in which windows that begin at indices are replaced, or merged with updates.

    A window that does not lie inside the tensor changes nothing. So XLA does it; by the
    specification of StableHLO, the part inside would change. The two differ only for windows that
    lie inside in part.

    Args:
        combiner: last, which replaces, sum, max, min or prod.
        known: the indices, if they are known now.
    """
    batch = windows.batch(nn.shape_of(indices))
    if 0 in (*windows.shape, *nn.shape_of(updates)):
        return operand
    whole = [windows.shape[a] for a in windows.whole]
    merged = new.transpose(updates, windows.order(len(nn.shape_of(updates))))
    fits: SSAValue | None = None
    if known is not None:
        given = _components(known, windows)
        inside = np.all((given >= 0) & (given <= windows.limits), axis=-1)
        found = _known_rows(np.where(inside[..., None], given, 0), windows, batch)
        rows = new.constant(found)
        if not inside.all():
            fits = new.constant(inside)
    else:
        given = _moved(new, indices, windows)
        limited = _limited(new, given, windows.limits)
        rows = _rows(new, limited, windows)
        if windows.starts:
            fits = _fits(new, given, limited)
    count = prod(nn.shape_of(rows))
    merged = new.reshape(merged, (count, *whole))
    rows = new.reshape(rows, (count, *[1] * len(whole)))
    table = windows.table(new, operand)
    if fits is None:
        return windows.tensor(new, updated(new, merged, rows, table, combiner))
    window = count // prod(batch)
    fits = new.expand(new.reshape(fits, (prod(batch), 1)), (prod(batch), window))
    fits = new.reshape(fits, nn.shape_of(rows))
    if combiner != "last":
        # An update that changes nothing goes to any row. A sum with 0.0 would change -0.0.
        nothing = -0.0 if combiner == "sum" else identity_of(combiner, nn.element_of(table))
        merged = new.select(fits, merged, new.number(nothing, table))
        return windows.tensor(new, updated(new, merged, rows, table, combiner))
    # One more row takes what changes nothing.
    beyond = new.number(windows.row_count, rows)
    rows = new.select(fits, rows, beyond)
    rank = len(nn.shape_of(table))
    longer = new.add(nn.PadOp(table, [0] * rank, [1] + [0] * (rank - 1)))
    made = updated(new, merged, rows, longer, combiner)
    return windows.tensor(new, new.box(made, [0] * rank, nn.shape_of(table)))


def updated(
    new: ToNn, updates: SSAValue, rows: SSAValue, table: SSAValue, combiner: str
) -> SSAValue:
    """A table in which some rows are replaced, or merged. Sums of truth values are disjunctions.

    Args:
        combiner: last, which replaces, sum, max, min or prod.
    """
    if combiner == "last" or nn.element_of(table) != i1:
        return new.add(nn.UpdateOp(updates, rows, table, combiner, 0))
    merged = {"sum": "max", "prod": "min"}.get(combiner, combiner)
    numbers = (new.cast(updates, i8), rows, new.cast(table, i8))
    return new.cast(new.add(nn.UpdateOp(*numbers, merged, 0)), i1)


def sliced_at(
    new: ToNn, operand: SSAValue, starts: Sequence[SSAValue | int], sizes: Sequence[int]
) -> SSAValue:
    """A box of a tensor that begins at indices, each of which is limited so that it lies inside.

    Args:
        starts: for each axis, an integer without axes, or a number.
    """
    shape = nn.shape_of(operand)
    first = [0 if isinstance(s, SSAValue) else s for s in starts]
    limits = [n - m for n, m in zip(shape, sizes, strict=True)]
    fixed = [min(max(s, 0), limit) for s, limit in zip(first, limits, strict=True)]
    runs = [a for a, s in enumerate(starts) if isinstance(s, SSAValue) and limits[a]]
    box = [n if a in runs else m for a, (n, m) in enumerate(zip(shape, sizes, strict=True))]
    found = new.box(operand, fixed, box)
    # The axis of which the smallest share is left comes first.
    for a in sorted(runs, key=lambda a: sizes[a] / shape[a]):
        start = starts[a]
        assert isinstance(start, SSAValue)
        found = new.add(nn.GatherOp(found, _run(new, start, limits[a], sizes[a]), a))
    return found


def updated_at(
    new: ToNn, operand: SSAValue, update: SSAValue, starts: Sequence[SSAValue | int]
) -> SSAValue:
    """A tensor in which a box that begins at indices is replaced. The indices are limited so that
    it lies inside.

    Args:
        starts: for each axis, an integer without axes, or a number.
    """
    shape, sizes = nn.shape_of(operand), nn.shape_of(update)
    parts = [a for a, (n, m) in enumerate(zip(shape, sizes, strict=True)) if n != m]
    if not parts or 0 in sizes:
        return operand if parts else update
    runs: list[SSAValue] = []
    for a in parts:
        start, limit = starts[a], shape[a] - sizes[a]
        if isinstance(start, SSAValue):
            runs.append(_run(new, start, limit, sizes[a]))
        else:
            first = min(max(start, 0), limit)
            runs.append(new.constant(np.arange(first, first + sizes[a], dtype=np.int32)))
    if len(parts) == 1:
        along = [sizes[a] if a == parts[0] else 1 for a in range(len(shape))]
        index = new.reshape(runs[0], along)
        return new.add(nn.UpdateOp(update, index, operand, "last", parts[0]))
    windows = Windows(shape, sizes, tuple(range(len(shape))), tuple(range(len(shape))), (), 0)
    rows: SSAValue | None = None
    for i, (a, run) in enumerate(zip(parts, runs, strict=True)):
        weight = windows.weights[a]
        by = run if weight == 1 else new.add(nn.MulOp(run, new.number(weight, run)))
        by = new.reshape(by, [sizes[a] if j == i else 1 for j in range(len(parts))])
        rows = by if rows is None else new.add(nn.AddOp(rows, by))
    assert rows is not None
    whole = [shape[a] for a in windows.whole]
    count = prod(nn.shape_of(rows))
    merged = new.transpose(update, windows.order(len(shape)))
    merged = new.reshape(merged, (count, *whole))
    rows = new.reshape(rows, (count, *[1] * len(whole)))
    made = new.add(nn.UpdateOp(merged, rows, windows.table(new, operand), "last", 0))
    return windows.tensor(new, made)


def _run(new: ToNn, start: SSAValue, limit: int, size: int) -> SSAValue:
    """The indices from a start on, which is limited."""
    first = _limited(new, _wide(new, new.reshape(start, (1,))), np.array([limit]))
    if size == 1:
        return first
    return new.add(nn.AddOp(first, new.constant(np.arange(size, dtype=np.int32))))


def _wide(new: ToNn, indices: SSAValue) -> SSAValue:
    """Indices in a type that holds all indices of a tensor."""
    return indices if dtype_of(indices).itemsize >= 4 else new.cast(indices, i32)


def _moved(new: ToNn, indices: SSAValue, windows: Windows) -> SSAValue:
    """The indices, [batch..., components]."""
    shape = nn.shape_of(indices)
    if windows.along == len(shape):
        return _wide(new, new.reshape(indices, (*shape, 1)))
    others = [d for d in range(len(shape)) if d != windows.along]
    return _wide(new, new.transpose(indices, [*others, windows.along]))


def _components(known: ToNnArray, windows: Windows) -> ToNnArray:
    """The indices that are known, [batch..., components]."""
    wide = known.astype(np.int64)
    if windows.along == known.ndim:
        return wide[..., None]
    return np.moveaxis(wide, windows.along, -1)


def _limited(new: ToNn, indices: SSAValue, limits: ToNnArray) -> SSAValue:
    """Indices limited to at least 0 and at most some numbers, as i32."""
    dtype, found = dtype_of(indices), range_of(indices, new.ranges)
    least, largest = (None, None) if found is None else found
    if dtype.kind == "i" and (least is None or least < 0):
        indices = new.add(nn.MaxOp(indices, new.number(0, indices)))
    if largest is None or largest > min(limits, default=0):
        same = limits[0] if len(set(limits.tolist())) == 1 else limits
        indices = new.add(nn.MinOp(indices, new.constant(np.asarray(same, dtype))))
    return new.cast(indices, i32)


def _fits(new: ToNn, indices: SSAValue, limited: SSAValue) -> SSAValue:
    """Whether each index is what it is limited to, [batch...]."""
    same = new.add(nn.EqualOp(indices, new.cast(limited, nn.element_of(indices))))
    *batch, count = nn.shape_of(same)
    if count == 1:
        return new.reshape(same, batch)
    return new.cast(new.add(nn.ReduceOp(new.cast(same, i8), "min", [len(batch)])), i1)


def _rows(new: ToNn, inside: SSAValue, windows: Windows) -> SSAValue:
    """The rows of all windows, [batch..., indexed axes of a window...].

    Args:
        inside: the indices as i32, [batch..., components].
    """
    *batch, count = nn.shape_of(inside)
    factors = windows.factors().astype(np.int32)
    by = (
        inside
        if (factors == 1).all() or not count
        else new.add(nn.MulOp(inside, new.constant(factors)))
    )
    if not count:
        first = new.constant(np.zeros(batch, np.int32))
    elif count == 1:
        first = new.reshape(by, batch)
    else:
        first = new.add(nn.ReduceOp(by, "sum", [len(batch)]))
    offsets = windows.offsets(tuple(batch)).astype(np.int32)
    first = new.reshape(first, (*batch, *[1] * (offsets.ndim - len(batch))))
    if offsets.any():
        first = new.add(nn.AddOp(first, new.constant(offsets)))
    return first


def _known_rows(inside: ToNnArray, windows: Windows, batch: Shape) -> ToNnArray:
    """The rows of all windows, as _rows gives them."""
    offsets = windows.offsets(batch)
    first = (inside * windows.factors()).sum(-1)
    rows = first.reshape((*batch, *[1] * (offsets.ndim - len(batch)))) + offsets
    return np.broadcast_to(rows, np.broadcast_shapes(rows.shape, offsets.shape)).astype(np.int32)
