"""Combiners of several values: the numerics and the price of each, in one record.

A vertex has all of its elements in memory, so it lifts and merges them together: the moments of its
elements take two passes, which is more exact than one. The same holds for the sets that it merges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ...dialects.combiners import MEMBERS, TUPLE_COMBINERS, Extreme
from ...dialects.structured import Body
from ...ir.geometry.space import NO_INDEX
from ...ir.support.number_kinds import is_floating
from .calls import SCRATCH_BYTES, Array, Call, Scratch, chunks
from .cells import Cells
from .conversion import compute_dtype, convert_into
from .scalar import scalar_function

Members = tuple[Array, ...]
"""One array per member. Rows are sets of elements: all arrays are (sets, 1) or (sets, elements)."""

INDEX = np.dtype(np.int32)


@dataclass(frozen=True)
class Numerics(ABC):
    """The numerics of a combiner of several values, and its price.

    All of this is assumed, and affects only the price.

    Attributes:
        passes: the number of times that a vertex walks its elements, each priced as a reduction.
        lifting: the names of the functions applied to each element meanwhile, separated by spaces.
        merging: the functions applied to each merged set.
        finishing: the functions applied to each result.
    """

    passes: int
    lifting: str
    merging: str
    finishing: str = ""

    @abstractmethod
    def lift(self, values: Array, positions: Array | None) -> Members:
        """The members of each row of values: (sets, elements) -> (sets, 1) each.

        Args:
            positions: of the values; NO_INDEX for elements that do not count.
        """

    @abstractmethod
    def nothing(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        """The members of an empty set.

        Args:
            dtype: of elements.
        """

    @abstractmethod
    def fold(self, members: Members) -> Members:
        """The merged members of each row: (sets, n) -> (sets, 1) each."""

    def merge(self, first: Members, second: Members) -> Members:
        """The merged members of two sets, row by row."""
        both = zip(first, second, strict=True)
        return self.fold(tuple(np.concatenate(each, axis=1) for each in both))

    def finish(self, members: Members) -> Members:
        """The results, from the members."""
        return members


@dataclass(frozen=True)
class _Extremes(Numerics):
    """The largest or smallest element and its position.

    Attributes:
        kind: which of them, and the rules for ties.
    """

    kind: Extreme = field(kw_only=True)

    def nothing(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        return self._lowest(dtype), -1 if self.kind.last else int(np.iinfo(INDEX).max)

    def _lowest(self, dtype: np.dtype[Any]) -> Any:
        """The identity of the comparison: no element is lower, or higher if the smallest is
        wanted."""
        if is_floating(dtype):
            return dtype.type(-np.inf if self.kind.largest else np.inf)
        limits = np.iinfo(dtype)
        return dtype.type(limits.min if self.kind.largest else limits.max)

    def lift(self, values: Array, positions: Array | None) -> Members:
        assert positions is not None
        floating, lowest = is_floating(values.dtype), self._lowest(values.dtype)
        inside = positions != NO_INDEX
        counts = inside
        if floating and not self.kind.nan_wins:
            values = np.where(np.isnan(values), lowest, values)
        if not inside.all():
            values = np.where(inside, values, lowest)
        return self._found(values, positions, counts)

    def fold(self, members: Members) -> Members:
        values, positions = members
        return self._found(values, positions, None)

    def _found(self, values: Array, positions: Array, counts: Array | None) -> Members:
        extreme = np.maximum if self.kind.largest else np.minimum
        best = extreme.reduce(values, axis=1, keepdims=True)
        found = values == best
        if is_floating(values.dtype):
            # NaN equals nothing. If there is one, the extreme is NaN.
            found |= np.isnan(values)
        if counts is not None:
            found &= counts
        nowhere = -1 if self.kind.last else np.iinfo(INDEX).max
        index = np.where(found, positions, INDEX.type(nowhere))
        nearest = np.maximum if self.kind.last else np.minimum
        return best, nearest.reduce(index, axis=1, keepdims=True)


@dataclass(frozen=True)
class _Moments(Numerics):
    """Mean and variance by two passes, over elements or over the means of sets."""

    def nothing(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        return 0.0, 0.0, 0.0

    def lift(self, values: Array, positions: Array | None) -> Members:
        assert positions is not None
        inside = positions != NO_INDEX
        if inside.all():
            count = np.full((len(values), 1), values.shape[1], values.dtype)
            mean = np.add.reduce(values, axis=1, keepdims=True) / count
            deviation = values - mean
        else:
            count = np.broadcast_to(inside, values.shape).sum(axis=1, keepdims=True)
            count = count.astype(values.dtype)
            total = np.add.reduce(np.where(inside, values, 0), axis=1, keepdims=True)
            mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
            deviation = np.where(inside, values - mean, values.dtype.type(0))
        deviation *= deviation
        return count, mean, np.add.reduce(deviation, axis=1, keepdims=True)

    def fold(self, members: Members) -> Members:
        counts, means, squares = members
        count = np.add.reduce(counts, axis=1, keepdims=True)
        share = np.divide(counts, count, out=np.zeros_like(counts), where=count > 0)
        mean = np.add.reduce(share * means, axis=1, keepdims=True)
        between = means - mean
        between *= between
        between *= counts
        return count, mean, np.add.reduce(squares + between, axis=1, keepdims=True)

    def finish(self, members: Members) -> Members:
        count, mean, squares = members
        return mean, np.divide(squares, count, out=np.zeros_like(squares), where=count > 0)


@dataclass(frozen=True)
class _ExpSum(Numerics):
    """The largest element m and the sum of exp(x - m): what softmax divides by."""

    def nothing(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        return float("-inf"), 0.0

    def lift(self, values: Array, positions: Array | None) -> Members:
        largest = np.maximum.reduce(values, axis=1, keepdims=True)
        terms = _exp_below(values, largest)
        terms[values == -np.inf] = 0
        return largest, np.add.reduce(terms, axis=1, keepdims=True)

    def fold(self, members: Members) -> Members:
        values, sums = members
        largest = np.maximum.reduce(values, axis=1, keepdims=True)
        sums = sums * _exp_below(values, largest)
        return largest, np.add.reduce(sums, axis=1, keepdims=True)


def _exp_below(values: Array, largest: Array) -> Array:
    """exp(values - largest); 1 where both are -infinity, and NaN where both are infinity."""
    below = np.subtract(values, largest, dtype=values.dtype)
    below = np.where(largest == -np.inf, values.dtype.type(0), below)
    return scalar_function("exp").apply((), below)


def _extremes(kind: Extreme) -> _Extremes:
    return _Extremes(1, "greater select", "greater select select", kind=kind)


NUMERICS: dict[str, Numerics] = {
    **{n: _extremes(kind) for n, kind in TUPLE_COMBINERS.items() if isinstance(kind, Extreme)},
    "moments": _Moments(2, "sub square", "add div mul add sub square mul add add", "div"),
    "exp_sum": _ExpSum(2, "sub exp", "max sub exp mul add"),
}
"""By name, how the combiners of dialects/combiners.py are computed."""


def combined(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a body with a combiner of several values."""
    del scratch
    merged = cells.merged
    rank = cells.result.ndim
    kept = [d for d in range(rank) if d not in merged]
    order = (*kept, *merged)
    views = [a.transpose(order) for a in cells.operands]
    places = [_places(a.transpose(order), len(kept)) for a in cells.positions]
    outs = [cells.once(a).transpose(order)[(...,) + (0,) * len(merged)] for a in cells.results]
    inner = max(prod(views[0].shape[len(kept) :]), 1)
    left = cells.body.begun_with
    calls: list[Call] = []
    for index in chunks(outs[0].shape, max(1, SCRATCH_BYTES // (8 * inner))):
        taken = [a[index] for a in views]
        earlier = [a[(...,) + (0,) * len(merged)] for a in taken[len(taken) - left :] if left]
        own = taken[: len(taken) - left]
        here = [a if a.ndim == 1 else a[index] for a in places]
        calls.append((_combine, (cells.body, own, here, earlier, [a[index] for a in outs])))
    return calls


def _places(positions: Array, kept: int) -> Array:
    """Positions of shape (sets, merged points); a single row if all sets have the same
    positions."""
    if any(positions.strides[:kept]):
        return positions
    return positions[(0,) * kept].astype(INDEX).ravel()


def _combine(
    body: Body,
    operands: Sequence[Array],
    positions: Sequence[Array],
    left: Sequence[Array],
    outs: Sequence[Array],
) -> None:
    """Compute a body on views (kept..., merged...), and write its results (kept...).

    Args:
        left: the members of an earlier step, (kept...).
    """
    assert body.combiner is not None
    numerics = NUMERICS[body.combiner]
    sets = outs[0].size
    if body.function == MEMBERS:
        dtype = operands[0].dtype
        members = tuple(_rows(_computed(a), sets) for a in operands)
        if members[0].shape[1]:
            members = numerics.fold(members)
    else:
        values = _computed(scalar_function(body.function).apply(body.parameters, *operands))
        dtype = values.dtype
        places = _rows_of_places(positions[0], sets) if positions else None
        members = (_rows(values, sets),)
        if members[0].shape[1]:
            members = numerics.lift(members[0], places)
    if not members[0].shape[1]:
        members = tuple(np.full((sets, 1), n) for n in numerics.nothing(dtype))
    if left:
        members = numerics.merge(tuple(_rows(_computed(a), sets) for a in left), members)
    if not body.unfinished:
        members = numerics.finish(members)
    for member, out in zip(members, outs, strict=True):
        convert_into(member.reshape(out.shape), out)


def _rows_of_places(positions: Array, sets: int) -> Array:
    """Positions with a row per set, or one row that serves all sets."""
    return positions[None] if positions.ndim == 1 else _rows(positions, sets).astype(INDEX)


def _computed(array: Array) -> Array:
    """An array in the dtype to compute in: float32 for narrower floats."""
    dtype = compute_dtype(array.dtype)
    return array if array.dtype == dtype else array.astype(dtype)


def _rows(array: Array, sets: int) -> Array:
    """An array as one contiguous row per set, so that the order of sums does not depend on its
    strides.
    """
    return np.ascontiguousarray(array).reshape(sets, array.size // max(sets, 1))
