"""The transpose of an operator with respect to an operand, as iteration spaces.

An operator that is linear in an operand sends each of its elements to the results of the points
that read it. The transpose sends a result's element back to the elements that were read:

    y[r(i)] += x[A(i)] * w[B(i)]        gx[X] = sum of gy[r(i)] * w[B(i)] over i with A(i) = X

A tile machine has one writer per byte, so the sum is not scattered but gathered: the equation
A(i) = X is solved for one dimension per axis of the operand. The other dimensions are merged.

    y = s*p + k - low                   p = (X - k + low) / s, exactly; k is merged
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import gcd, lcm

import numpy as np

from ..support.arrays import Integers
from .space import AccessMap, AxisMap, Dim, Relation, Rule, Space
from .table import Table

Affine = Mapping[int, Fraction]
"""A sum of factors times dimensions; CONSTANT is the key of the number that is added."""

CONSTANT = -1


@dataclass(frozen=True)
class Transposed:
    """A part of a transpose: one box of the operand's gradient, computed by one space.

    Attributes:
        space: its operands are the requested reads, the gradient of the result first; its result is
            the box. The dimensions of the box are parallel; all others are merged by a sum.
        starts: the first index of the box in the operand, in the shape in which the operand's map
            views it.
        repeats: sizes of further leading axes along which the first read must be repeated, because
            no other access bounds these dimensions of the operator.
    """

    space: Space
    starts: tuple[int, ...]
    repeats: tuple[int, ...] = ()


def transposed(
    space: Space, operand: AccessMap, reads: Sequence[AccessMap]
) -> tuple[Transposed, ...]:
    """The transpose of an operator with respect to an operand, as parts that add up to it.

    Raises ValueError for a space without points, an operand without elements, or an axis with a
    table: see `spread_out`.

    An element of the operand that no point reads has the gradient 0.

    Args:
        space: the operator's space; only its dimensions and relations are used.
        operand: the map of the operand.
        reads: the maps of the tensors that the transpose reads, over the same dimensions: first the
            result's gradient, last the operands of the relations, in order.
    """
    sizes = space.sizes
    if 0 in sizes or 0 in operand.shape:
        raise ValueError("the transpose of an operator without points; its gradient is 0")
    ways = [_preimages(axis, sizes) for axis in operand.axes]
    return tuple(_part(space, operand, reads, chosen) for chosen in product(*ways))


@dataclass(frozen=True)
class SpreadOut:
    """An operand with tables, seen as a larger tensor that repeats its elements.

    Attributes:
        access: the map of the larger tensor. It has no tables.
        gathered: the sum of the larger tensor's gradient over the copies of each element.
    """

    access: AccessMap
    gathered: Space


def spread_out(operand: AccessMap, sizes: tuple[int, ...]) -> SpreadOut | None:
    """An operand as a tensor in which each table of its map has places of its own.

    Returns None for a map without tables.

        axis of 3, table 0 2 0   ->   axis of 3, whose elements add up to 0: {0, 2}, 1: {}, 2: {1}

    Args:
        sizes: of the dimensions, all at least 1.
    """
    if not any(isinstance(axis.outside, Table) for axis in operand.axes):
        return None
    axes: list[AxisMap] = []
    reads: list[AxisMap] = []
    kept: list[Dim] = []
    merged: list[Dim] = []
    rank = len(operand.axes)
    for i, axis in enumerate(operand.axes):
        kept.append(Dim(f"x{i}", axis.size))
        if not isinstance(axis.outside, Table):
            axes.append(axis)
            reads.append(AxisMap(axis.size, ((i, 1),)))
            continue
        low, high = (numerator // axis.divisor for numerator in axis.numerators(sizes))
        span, start = high - low + 1, axis.offset - low * axis.divisor
        axes.append(AxisMap(span, axis.terms, start, axis.divisor, axis.division))
        copies = _copies(axis.resolve(np.arange(low, high + 1) * axis.divisor), axis.size)
        merged.append(Dim(f"copy{i}", copies.shape[1], "reduction"))
        terms = ((i, copies.shape[1]), (rank + len(merged) - 1, 1))
        reads.append(AxisMap(span, terms, span, outside=Table.of(copies)))
    whole = AccessMap(tuple(AxisMap(dim.size, ((i, 1),)) for i, dim in enumerate(kept)))
    gathered = Space((*kept, *merged), (AccessMap(tuple(reads)),), (whole,))
    return SpreadOut(AccessMap(tuple(axes), operand.fill), gathered)


def _copies(elements: Integers, size: int) -> Integers:
    """The places of each of so many elements in a list: (size, most places of one), filled up with
    -1.
    """
    places = np.flatnonzero(elements >= 0)
    order = places[np.argsort(elements[places], kind="stable")]
    of = elements[order]
    count = np.bincount(of, minlength=size)
    copies = np.full((size, max(int(count.max(initial=0)), 1)), -1)
    copies[of, np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)] = order
    return copies


@dataclass(frozen=True)
class _Preimage:
    """The numerators that reach `size` elements of an axis: start, start + 1, ...

    An element is reached by the numerators factor * (element - start) + offset + the sum of i * f
    over all (n, f) in `further`, for every i < n.
    """

    start: int
    size: int
    factor: int
    offset: int
    further: tuple[tuple[int, int], ...] = ()


def _preimages(axis: AxisMap, sizes: tuple[int, ...]) -> list[_Preimage]:
    """The numerators that reach an axis: from inside, and through its rule for indices outside."""
    n, q = axis.size, axis.divisor
    low, high = (numerator // q for numerator in axis.numerators(sizes))
    # All numerators of one index: one if the division is exact, else q of them.
    within = ((q, 1),) if q > 1 and axis.division == "floor" else ()

    def reached(start: int, size: int, step: int, first: int, *more: tuple[int, int]) -> _Preimage:
        """The preimage of elements reached by the indices first + step * i, and by all shifts in
        `more`.
        """
        further = tuple((count, q * each) for count, each in more if count != 1)
        return _Preimage(start, size, q * step, q * first, (*further, *within))

    match axis.outside:
        case "wrap":
            first, last = low // n, high // n
            return [reached(0, n, 1, n * first, (last - first + 1, n))]
        case "reflect" if n > 1:
            period = 2 * (n - 1)
            first, last = low // period, high // period
            found = [reached(0, n, 1, period * first, (last - first + 1, period))]
            if n > 2 and (low < 0 or high >= n):
                # The first and the last element are their own mirror images, so only the others
                # have two.
                start, count = first, last - first + 2
                found.append(reached(1, n - 2, -1, period * start - 1, (count, period)))
            return found
        case Table():
            raise ValueError("the transpose of a table is no space: spread the axis out first")
        case "edge" | "reflect":
            found = [reached(0, n, 1, 0)]
            if low < 0:
                found.append(reached(0, 1, 1, low, (-low, 1)))
            if high >= n:
                found.append(reached(n - 1, 1, 1, n, (high - n + 1, 1)))
            return found
        case _:
            return [reached(0, n, 1, 0)]


@dataclass
class _Part:
    """The dimensions of a part while equations are solved.

    sizes, names, kinds: of all dimensions, first those of the operator, then new ones.

    Attributes:
        solved: the solved dimensions of the operator, in terms of others.
    """

    old: tuple[Dim, ...]
    new: list[Dim] = field(default_factory=list[Dim])
    solved: dict[int, dict[int, Fraction]] = field(default_factory=dict[int, "dict[int, Fraction]"])

    def add(self, name: str, size: int, *, parallel: bool) -> dict[int, Fraction]:
        """A new dimension, as an affine form; a dimension of one point is 0."""
        self.new.append(Dim(name, size, "parallel" if parallel else "reduction"))
        return {} if size == 1 else {len(self.old) + len(self.new) - 1: Fraction(1)}

    def size(self, d: int) -> int:
        """The size of a dimension."""
        return self.old[d].size if d < len(self.old) else self.new[d - len(self.old)].size

    def numerator(self, axis: AxisMap) -> dict[int, Fraction]:
        """The numerator of an axis, in terms of dimensions that are not solved."""
        total: dict[int, Fraction] = {CONSTANT: Fraction(axis.offset)}
        for d, coefficient in axis.terms:
            if self.old[d].size != 1:
                _add(total, self.solved.get(d, {d: Fraction(1)}), Fraction(coefficient))
        return total

    def solve(self, d: int, form: Affine) -> None:
        """Replace a dimension of the operator by an affine form of others, everywhere."""
        for other in self.solved.values():
            factor = other.pop(d, None)
            if factor is not None:
                _add(other, form, factor)
        self.solved[d] = dict(form)

    def stays_inside(self, form: Affine, size: int) -> bool:
        """Whether an affine form has whole values from 0 to size - 1 at all points."""
        if any(factor.denominator != 1 for factor in form.values()):
            return False
        low = high = form.get(CONSTANT, Fraction(0))
        for d, factor in form.items():
            if d != CONSTANT:
                reach = factor * (self.size(d) - 1)
                low, high = low + min(reach, 0), high + max(reach, 0)
        return low >= 0 and high < size


def _add(total: dict[int, Fraction], form: Affine, factor: Fraction) -> None:
    for d, each in form.items():
        changed = total.get(d, Fraction(0)) + factor * each
        if changed:
            total[d] = changed
        else:
            total.pop(d, None)


def _part(
    space: Space, operand: AccessMap, reads: Sequence[AccessMap], chosen: Sequence[_Preimage]
) -> Transposed:
    part = _Part(space.dims)
    elements = [
        part.add(_name(space, axis, i), each.size, parallel=True)
        for i, (axis, each) in enumerate(zip(operand.axes, chosen, strict=True))
    ]
    checks: list[AxisMap] = []
    unsolved: list[tuple[AxisMap, dict[int, Fraction]]] = []
    related = tuple(AccessMap((relation.axis,)) for relation in space.relations)
    bounds = _bounding(space, (reads[0], *related))
    for i, (axis, each) in enumerate(zip(operand.axes, chosen, strict=True)):
        reached: dict[int, Fraction] = {CONSTANT: Fraction(each.offset)}
        _add(reached, elements[i], Fraction(each.factor))
        for j, (count, factor) in enumerate(each.further):
            _add(reached, part.add(f"r{i}_{j}", count, parallel=False), Fraction(factor))
        found = part.numerator(axis)
        free = [d for d in found if 0 <= d < len(space.dims)]
        difference = dict(reached)
        _add(difference, found, Fraction(-1))
        if not free:
            unsolved.append((axis, difference))
            continue
        d = min(free, key=lambda d: _effort(part, d, found[d], difference, bounds))
        factor = found[d]
        _add(difference, {d: Fraction(1)}, factor)
        part.solve(d, {v: each / factor for v, each in difference.items()})
    # An equation without an unsolved dimension is a condition. Express it as an axis of one element
    # that only points which meet the condition reach.
    for _, difference in unsolved:
        current: dict[int, Fraction] = {}
        for v, each in difference.items():
            _add(current, part.solved.get(v, {v: Fraction(1)}), each)
        if current:
            checks.append(_axis(1, current, part, 1, "exact", "fill"))
    repeated = [
        d
        for d, form in part.solved.items()
        if d not in bounds and not part.stays_inside(form, space.dims[d].size)
    ]
    repeats = tuple(AxisMap(space.dims[d].size, ((d, 1),)) for d in repeated)
    first = AccessMap((*repeats, *reads[0].axes))
    mapped = [_substituted(part, each) for each in (first, *reads[1:])]
    mapped[0] = AccessMap((*checks, *mapped[0].axes))
    sizes = tuple(each.size for each in chosen)
    result = AccessMap(
        tuple(
            AxisMap(n, tuple((v, 1) for v in element))
            for n, element in zip(sizes, elements, strict=True)
        )
    )
    starts = tuple(each.start for each in chosen)
    made = _numbered(part, mapped, result, [_substituted(part, each) for each in related])
    return Transposed(made, starts, tuple(space.dims[d].size for d in repeated))


def _name(space: Space, axis: AxisMap, i: int) -> str:
    """A name for the new dimension i of an axis: the name of the only dimension in the map, or
    x{i}.
    """
    return space.dims[axis.terms[0][0]].name if len(axis.terms) == 1 else f"x{i}"


def _bounding(space: Space, reads: Sequence[AccessMap]) -> frozenset[int]:
    """The dimensions that some read has as a whole axis, so that the axis bounds their points."""
    return frozenset(
        axis.terms[0][0]
        for read in reads
        for axis in read.axes
        if len(axis.terms) == 1
        and axis.terms[0][1] == 1
        and (axis.offset, axis.divisor) == (0, 1)
        and axis.outside in ("none", "fill")
        and axis.size == space.dims[axis.terms[0][0]].size
    )


def _effort(
    part: _Part, d: int, factor: Fraction, difference: Affine, bounds: frozenset[int]
) -> tuple[bool, bool, Fraction, int]:
    """The rank of a dimension as the one to solve an equation for; the smallest rank is chosen."""
    form = dict(difference)
    _add(form, {d: Fraction(1)}, factor)
    form = {v: each / factor for v, each in form.items()}
    inside = part.stays_inside(form, part.size(d))
    return (not (inside or d in bounds), part.old[d].kind == "reduction", abs(factor), d)


def _substituted(part: _Part, access: AccessMap) -> AccessMap:
    """A map in terms of dimensions that are not solved."""
    axes: list[AxisMap] = []
    for axis in access.axes:
        form = part.numerator(axis)
        outside = "fill" if axis.outside == "none" else axis.outside
        division = "exact" if axis.divisor == 1 else axis.division
        axes.append(_axis(axis.size, form, part, axis.divisor, division, outside))
    fills = any(axis.may_fill or axis.division == "exact" for axis in axes)
    return AccessMap(tuple(axes), access.fill if fills else 0.0)


def _axis(
    size: int, form: Affine, part: _Part, divisor: int, division: str, outside: Rule
) -> AxisMap:
    """An axis map from an affine form whose factors may be fractions."""
    common = lcm(1, *(each.denominator for each in form.values()))
    terms = tuple((d, int(each * common)) for d, each in form.items() if d != CONSTANT)
    offset, divisor = int(form.get(CONSTANT, Fraction(0)) * common), divisor * common
    shared = gcd(divisor, offset, *(factor for _, factor in terms))
    terms = tuple((d, factor // shared) for d, factor in terms)
    offset, divisor = offset // shared, divisor // shared
    exact = divisor > 1 and division == "exact"
    axis = AxisMap(size, terms, offset, divisor, "exact" if exact else "floor", outside)
    numbers = {d: part.size(d) for d, _ in terms}
    low = offset + sum(min(c * (numbers[d] - 1), 0) for d, c in terms)
    high = offset + sum(max(c * (numbers[d] - 1), 0) for d, c in terms)
    if low >= 0 and high // divisor < size:
        return AxisMap(size, terms, offset, divisor, axis.division)
    return axis


def _numbered(
    part: _Part, reads: Sequence[AccessMap], result: AccessMap, related: Sequence[AccessMap]
) -> Space:
    """The space over the dimensions that are left: first those of the result, then the merged ones.

    The last reads are the relations' operands, in the same order.

    Args:
        related: the axis of each relation.
    """
    old = len(part.old)
    kept = [old + i for i, dim in enumerate(part.new) if dim.kind == "parallel"]
    kept += [d for d, dim in enumerate(part.old) if d not in part.solved and dim.size != 1]
    kept += [old + i for i, dim in enumerate(part.new) if dim.kind == "reduction"]
    kept = [d for d in kept if part.size(d) != 1]
    names = _distinct(part.old[d].name if d < old else part.new[d - old].name for d in kept)
    parallel = result.dims()
    dims = tuple(
        Dim(name, part.size(d), "parallel" if d in parallel else "reduction")
        for name, d in zip(names, kept, strict=True)
    )
    if related and not dims:
        # A relation needs a point to hold at.
        dims = (Dim("point", 1, "reduction"),)
    index = {d: i for i, d in enumerate(kept)}
    first = len(reads) - len(related)
    relations = tuple(
        Relation(axis, first + i)
        for i, each in enumerate(related)
        for axis in each.renamed(index).axes
    )
    operands = tuple(each.renamed(index) for each in reads)
    return Space(dims, operands, (result.renamed(index),), relations)


def _distinct(names: Iterator[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        each, count = name, 1
        while each in found:
            each, count = f"{name}_{count}", count + 1
        found.append(each)
    return found


def canonical(space: Space) -> Space:
    """A space without dimensions of one point, with dimensions in the order of their first use.

    Two spaces that differ only in names and in the order of dimensions have one canonical form.
    """
    sizes = space.sizes
    order: list[int] = []
    for access in (*space.results, *space.operands):
        for axis in access.axes:
            fresh = sorted(
                ((abs(c), d) for d, c in axis.terms if d not in order and sizes[d] != 1),
            )
            order += [d for _, d in fresh]
    order += [d for d, n in enumerate(sizes) if n != 1 and d not in order]
    index = {d: i for i, d in enumerate(order)}

    def sorted_axes(access: AccessMap) -> AccessMap:
        # Axes of one element without terms change no position.
        axes = tuple(
            AxisMap(a.size, tuple(sorted(a.terms)), a.offset, a.divisor, a.division, a.outside)
            for a in access.renamed(index).axes
            if a.size != 1 or a.terms or a.offset
        )
        return AccessMap(axes, access.fill)

    return Space(
        tuple(Dim(f"d{i}", sizes[d], space.dims[d].kind) for i, d in enumerate(order)),
        tuple(map(sorted_axes, space.operands)),
        tuple(map(sorted_axes, space.results)),
    )
