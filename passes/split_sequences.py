"""Replace scans and sorts by parallel algorithms, where these are cheaper.

A scan or a sort is computed by one worker per row, because no plan cuts a whole dimension. A long
row, or a few rows on many tiles, leave most workers idle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from ..backends.prices import cost
from ..backends.target import Target
from ..dialects import nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP
from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.edit import Edit, source_at
from ..ir.geometry.blocks import fill_of
from ..ir.provenance import at
from ..ir.rewriting import may_rewrite
from ..ir.support.number_kinds import is_floating
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from .plans.planned import asked_target

ROOM = 0.2
"""The share of all tiles' memory that the comparison of all pairs of a row may take. Assumed."""

BYTES_OF_A_PAIR = 7
"""Bytes per pair that are live at once: three truth values and a number."""

MARGIN = 1.25
"""How many times cheaper than a plain scan or sort a replacement must be. Assumed: its price
ignores the layouts that the planner chooses for its parts.
"""

STEPS = 8
"""The most supersteps of a replacement, beyond the one of a plain scan or sort."""


@dataclass(frozen=True)
class SplitSequences(ModulePass):
    """Replace a scan or a sort by a parallel algorithm if that takes fewer cycles. nn -> nn.

    A scan becomes a scan of parts, a scan of the parts' totals, and the merging of both (two
    phases). A sort counts, for each element, the elements that come before it, and moves the
    element to that index (enumeration sort). Members of a group stay as they are.

    Sources: Hillis and Steele, Data Parallel Algorithms, 1986; Muller and Preparata, Bounds to
    Complexities of Networks for Sorting and for Switching, 1975.

        %1 = nn.scan "sum" %x axis 0 : tensor<4096xf32>

        %1 = nn.reshape %x to [64, 64]
        %2 = nn.scan "sum" %1 axis 1
        %3 = nn.slice %2 start [0, 63] step [1, 1] size [64, 1]
        %4 = nn.scan "sum" %3 axis 0 exclusive
        %5 = nn.add %2, %4
        %6 = nn.reshape %5 to [4096]

    Attributes:
        target: as for plan-splits.
    """

    name = "split-sequences"
    takes = NN
    skips_other_levels = True

    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        found = [each for each in op.walk() if isinstance(each, nn.SEQUENCES)]
        if not found:
            return
        target = asked_target(op, self.target)
        for each in found:
            build = _replacement(each, target)
            if build is not None and may_rewrite():
                _replace(each, build, ctx)


Sequence = nn.ScanOp | nn.SortOp | nn.SortIndicesOp


class _Steps:
    """The operations that replace one, in order."""

    def __init__(self, whole: Operation, ctx: Context, edit: Edit) -> None:
        self._whole = whole
        self._ctx = ctx
        self._edit = edit

    def __call__(self, step: str, op: nn.PureTensorOp | nn.ConstantOp) -> SSAValue:
        """Insert an operation as a named step, and return its result."""
        op.location = at(self._whole, step)
        self._edit.insert(op, InsertPoint.before(self._whole))
        return op.result

    def constant(self, step: str, array: np.ndarray) -> SSAValue:
        """Insert a constant."""
        ctx = self._ctx
        blob = ctx.blobs.add(array) if isinstance(ctx, AbeleContext) else Blob(array)
        return self(step, nn.ConstantOp(blob))


Build = Callable[[_Steps], SSAValue]


def _replace(op: Sequence, build: Build, ctx: Context) -> None:
    with Edit(source_at(f"split {op.name}", _replace), op) as edit:
        value = build(_Steps(op, ctx, edit))
        value.owner.location = op.location  # pyright: ignore[reportAttributeAccessIssue]
        edit.replace(op, [value])


def _replacement(op: Sequence, target: Target) -> Build | None:
    """A function that builds the parallel algorithm for an operation; None to leave it
    unchanged."""
    shape, axis = nn.shape_of(op.operand), op.axis.value.data
    length = shape[axis]
    rows = prod(shape) // max(length, 1)
    if not rows or length < 2 or GROUP in op.attributes:
        return None
    dtype = numpy_dtype(nn.element_of(op.operand))
    if isinstance(op, nn.ScanOp):
        parts = best_parts(rows, length, dtype, target)
        return None if parts < 2 else lambda steps: _in_two_phases(op, parts, steps)
    indices = isinstance(op, nn.SortIndicesOp)
    if (not indices and dtype == np.bool_) or not _counting_pays(
        rows, length, dtype, target, indices=indices
    ):
        return None
    return lambda steps: _by_counting(op, steps)


# Scans


def best_parts(rows: int, length: int, dtype: np.dtype[np.generic], target: Target) -> int:
    """The number of parts of each row with which a scan takes the fewest cycles; 1 to leave it
    whole.
    """
    counts = [1]
    while 2 * counts[-1] <= min(length // 2, target.tiles * target.workers):
        counts.append(2 * counts[-1])
    prices = {parts: _scan_price(rows, length, parts, dtype, target) for parts in counts}
    best = min(prices, key=lambda parts: prices[parts])
    return best if MARGIN * prices[best] < prices[1] else 1


def _scan_price(
    rows: int, length: int, parts: int, dtype: np.dtype[np.generic], target: Target
) -> float:
    """The cycles of a scan in parts, without those of moving the operand into its layout."""
    own = ceil(rows / target.tiles)
    if parts == 1:
        return float(cost.scan_cycles(own, length, target))
    each, blocks = ceil(length / parts), ceil(rows * parts / target.tiles)
    totals = own * parts * dtype.itemsize
    return float(
        cost.scan_cycles(blocks, each, target)
        + cost.scan_cycles(own, parts, target)
        + cost.elementwise_cycles(blocks * each, 2, "add", dtype.name, target)
        + 2 * cost.least_exchange_cycles(totals, totals, target)
        + STEPS * cost.sync_cycles(target)
    )


MERGED_BY = {"sum": nn.AddOp, "prod": nn.MulOp, "max": nn.MaxOp, "min": nn.MinOp}
"""By combiner, the operation that merges a part with the total of all parts before it."""


def _in_two_phases(op: nn.ScanOp, parts: int, steps: _Steps) -> SSAValue:
    """Scan the parts of each row, then their totals; merge each part with the total before it."""
    shape, axis = nn.shape_of(op.operand), op.axis.value.data
    length, along = shape[axis], op.along
    each = ceil(length / parts)
    name, element = along.name, nn.element_of(op.operand)
    value = op.operand
    wide = nn.wide_element(element)
    if wide != element:
        value = steps("widen", nn.CastOp(value, wide))
    missing = parts * each - length
    if missing:
        pad = [missing if i == axis else 0 for i in range(len(shape))]
        none = [0] * len(shape)
        low, high = (pad, none) if along.reverse else (none, pad)
        fill = float(fill_of(along.identity, numpy_dtype(nn.element_of(value))))
        value = steps("pad", nn.PadOp(value, low, high, value=fill))
    cut = (*shape[:axis], parts, each, *shape[axis + 1 :])
    value = steps("parts", nn.ReshapeOp(value, cut))
    local = steps(
        "within",
        nn.ScanOp(value, name, axis + 1, exclusive=along.exclusive, reverse=along.reverse),
    )
    if along.exclusive:
        total = steps("totals", nn.ReduceOp(value, name, [axis + 1], keep_dims=True))
    else:
        last = 0 if along.reverse else each - 1
        starts = [last if i == axis + 1 else 0 for i in range(len(cut))]
        sizes = [1 if i == axis + 1 else n for i, n in enumerate(cut)]
        total = steps("totals", nn.SliceOp(local, starts, [1] * len(cut), sizes))
    before = steps("before", nn.ScanOp(total, name, axis, exclusive=True, reverse=along.reverse))
    merged = steps("merge", MERGED_BY[name](local, before))
    if wide != element:
        merged = steps("narrow", nn.CastOp(merged, element))
    long = (*shape[:axis], parts * each, *shape[axis + 1 :])
    joined = steps("join", nn.ReshapeOp(merged, long))
    if not missing:
        return joined
    starts = [missing if i == axis and along.reverse else 0 for i in range(len(shape))]
    return steps("crop", nn.SliceOp(joined, starts, [1] * len(shape), shape))


# Sorts


def _counting_pays(
    rows: int, length: int, dtype: np.dtype[np.generic], target: Target, *, indices: bool
) -> bool:
    """Whether counting pairs is cheaper than sorting each row with one worker, and the pairs
    fit."""
    pairs = rows * length * length
    if pairs * BYTES_OF_A_PAIR > ROOM * target.tiles * target.usable_bytes_per_tile:
        return False
    own, tiles = ceil(rows / target.tiles), target.tiles
    plain = float(cost.sort_cycles(own, length, target, indices=indices))
    points, elements = ceil(pairs / tiles), ceil(rows * length / tiles)
    loops = [("less", dtype.name), ("equal", dtype.name), ("less", "int32")]
    loops += [("logical_and", "bool"), ("logical_or", "bool"), ("cast", "int32")]
    compared = sum(
        float(cost.elementwise_cycles(points, 2, name, of, target)) for name, of in loops
    )
    row_bytes = own * length * (dtype.itemsize + np.dtype(np.int32).itemsize)
    placed = cost.lookup_cycles(own * length, elements, 1, True, dtype.name, target)
    counted = cost.reduce_cycles(elements, length, "int32", target)
    moved = 3 * cost.least_exchange_cycles(row_bytes, row_bytes, target)
    total = compared + float(placed + counted + moved) + STEPS * cost.sync_cycles(target)
    return MARGIN * total < plain


def _by_counting(op: nn.SortOp | nn.SortIndicesOp, steps: _Steps) -> SSAValue:
    """Move each element to the index that is the number of elements which come before it.

    Equal elements, and NaN, which come after all numbers, are ordered by a second key.
    """
    shape, axis = nn.shape_of(op.operand), op.axis.value.data
    length, reverse = shape[axis], op.descending is not None
    along = [length if i == axis else 1 for i in range(len(shape))]
    key, index = op.operand, np.arange(length, dtype=np.int32).reshape(along)
    second = steps.constant("index", index)
    dtype = numpy_dtype(nn.element_of(key))
    if dtype == np.bool_:
        key = steps("number", nn.CastOp(key, i32))
    elif is_floating(dtype):
        unknown = steps("unknown", nn.IsNaNOp(key))
        most = steps.constant("largest", np.array(np.inf, np.float64).astype(dtype))
        key = steps("known", nn.SelectOp(unknown, most, key))
        later = steps.constant("later", index + np.int32(0 if reverse else length))
        sooner = steps.constant("sooner", index + np.int32(length if reverse else 0))
        second = steps("second", nn.SelectOp(unknown, later, sooner))
    before = steps("pairs", _compared(steps, key, second, axis, reverse=reverse))
    rank = steps("rank", nn.ReduceOp(steps("count", nn.CastOp(before, i32)), "sum", [axis + 1]))
    if isinstance(op, nn.SortIndicesOp):
        places = steps.constant("places", np.ascontiguousarray(np.broadcast_to(index, shape)))
        return steps("place", nn.ScatterAlongOp(places, rank, "sum", axis, length))
    return steps("place", nn.ScatterAlongOp(op.operand, rank, "sum", axis, length))


def _compared(
    steps: _Steps, key: SSAValue, second: SSAValue, axis: int, *, reverse: bool
) -> nn.PureTensorOp:
    """Whether element j comes before element i, as a tensor with an axis for i followed by one for
    j.
    """

    def both(step: str, value: SSAValue) -> tuple[SSAValue, SSAValue]:
        shape = nn.shape_of(value)
        other = (*shape[:axis], 1, *shape[axis:])
        own = (*shape[: axis + 1], 1, *shape[axis + 1 :])
        return (
            steps(f"{step}_of_other", nn.ReshapeOp(value, other)),
            steps(f"{step}_of_own", nn.ReshapeOp(value, own)),
        )

    (key_j, key_i), (second_j, second_i) = both("key", key), both("second", second)
    first, then = (key_i, key_j) if reverse else (key_j, key_i)
    smaller = steps("smaller", nn.LessOp(first, then))
    equal = steps("equal", nn.EqualOp(key_j, key_i))
    sooner = steps("sooner_of_both", nn.LessOp(second_j, second_i))
    tied = steps("tied", nn.LogicalAndOp(equal, sooner))
    return nn.LogicalOrOp(smaller, tied)
