"""Operands as the loops of another dialect read them: without padding, division or offset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, SSAValue

from ...backends.reference.gather import fill_value
from ...dialects.dtypes import numpy_dtype
from ...ir.geometry.space import AccessMap, AxisMap

Terms = tuple[tuple[int, int], ...]
"""Loops, each with its coefficient."""


@dataclass(frozen=True)
class Shown:
    """A tensor of another dialect, and the element that a point of loops reads.

    Attributes:
        axes: the index along each axis, a sum of multiples of loops; none is empty.
        offsets: what is added to each.
        element: the type of its elements in nn.
        never_zero: whether it is certain that no element is 0.
    """

    value: SSAValue
    shape: tuple[int, ...]
    axes: tuple[Terms, ...]
    offsets: tuple[int, ...]
    element: Attribute
    never_zero: bool = False

    @property
    def axis_loops(self) -> tuple[int, ...]:
        """The loops that alone are the index along an axis, without a factor or an offset."""
        axes = zip(self.axes, self.offsets, strict=True)
        return tuple(t[0][0] for t, k in axes if len(t) == 1 and t[0][1] == 1 and not k)

    @property
    def loops(self) -> tuple[int, ...] | None:
        """The loop along each axis, if each axis is one loop; None otherwise."""
        found = self.axis_loops
        return found if len(set(found)) == len(self.axes) else None


class Shapes(ABC):
    """What moves elements in another dialect."""

    @abstractmethod
    def reshaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape."""

    @abstractmethod
    def padded(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], fill: float | int | bool
    ) -> SSAValue:
        """A tensor with elements added at the ends of its axes."""

    @abstractmethod
    def spread(self, value: SSAValue, axis: int, step: int, fill: float | int | bool) -> SSAValue:
        """A tensor with step - 1 elements added between any two along an axis."""

    @abstractmethod
    def cut(
        self, value: SSAValue, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]
    ) -> SSAValue:
        """Every step-th element from a start on; the steps are positive."""

    @abstractmethod
    def taken(self, value: SSAValue, axis: int, indices: NDArray[np.int64]) -> SSAValue:
        """The elements at these indices along an axis."""

    @abstractmethod
    def filled(
        self, shape: Sequence[int], fill: float | int | bool, element: Attribute
    ) -> SSAValue:
        """A tensor that repeats a number."""

    def shown(
        self,
        value: SSAValue,
        own: Sequence[int],
        element: Attribute,
        access: AccessMap,
        sizes: Sequence[int],
    ) -> Shown:
        """An operand as loops read it.

        Args:
            own: the shape of the tensor, of which that of the map is a view.
            element: the type of its elements in nn.
            sizes: of the loops. Those of one iteration count as 0.
        """
        shape = list(access.shape)
        fill = fill_value(access.fill, numpy_dtype(element))
        if tuple(own) != tuple(shape):
            value = self.reshaped(value, shape)
        axes: list[tuple[Terms, int]] = []
        value, padded = self._padded_at_once(value, shape, access, sizes, fill)
        for i, axis in enumerate(padded):
            terms = tuple((d, c) for d, c in axis.terms if sizes[d] != 1)
            value, offset = self._inside(value, shape, i, axis, sizes, fill, element)
            value, terms, offset = self._plain(value, shape, i, terms, offset, sizes)
            axes.append((terms, offset))
        kept = [i for i, (terms, _) in enumerate(axes) if terms]
        left = tuple(shape[i] for i in kept)
        if len(kept) != len(shape):
            value = self.reshaped(value, left)
        return Shown(
            value, left, tuple(axes[i][0] for i in kept), tuple(axes[i][1] for i in kept), element
        )

    def _padded_at_once(
        self,
        value: SSAValue,
        shape: list[int],
        access: AccessMap,
        sizes: Sequence[int],
        fill: float | int | bool,
    ) -> tuple[SSAValue, list[AxisMap]]:
        """The tensor with the padding of all axes that are only padded, and the maps of its axes.
        Changes the shape.
        """
        full = tuple(max(n, 1) for n in sizes)
        lows, highs, axes = [0] * len(shape), [0] * len(shape), list(access.axes)
        for i, axis in enumerate(axes):
            if axis.divisor != 1 or not axis.size or axis.outside not in ("none", "fill"):
                continue
            low, high = axis.numerators(full)
            lows[i], highs[i] = max(-low, 0), max(high - axis.size + 1, 0)
            shape[i] += lows[i] + highs[i]
            axes[i] = replace(axis, size=shape[i], offset=axis.offset + lows[i])
        if any(lows) or any(highs):
            value = self.padded(value, lows, highs, fill)
        return value, axes

    def _inside(
        self,
        value: SSAValue,
        shape: list[int],
        i: int,
        axis: AxisMap,
        sizes: Sequence[int],
        fill: float | int | bool,
        element: Attribute,
    ) -> tuple[SSAValue, int]:
        """The tensor with all elements along an axis that points reach, and the index of the point
        0. Changes the shape.
        """
        full = tuple(max(n, 1) for n in sizes)
        low, high = axis.numerators(full)
        if axis.divisor == 1 and low >= 0 and high < axis.size:
            return value, axis.offset
        window = high - low + 1
        if not axis.size:
            shape[i] = window
            return self.filled(shape, fill, element), axis.offset - low
        if axis.outside in ("none", "fill") and (axis.divisor == 1 or axis.division == "exact"):
            if axis.divisor > 1:
                value = self.spread(value, i, axis.divisor, fill)
                shape[i] = (shape[i] - 1) * axis.divisor + 1
            before, after = max(-low, 0), max(high - shape[i] + 1, 0)
            if before or after:
                lows, highs = [0] * len(shape), [0] * len(shape)
                lows[i], highs[i] = before, after
                value = self.padded(value, lows, highs, fill)
                shape[i] += before + after
            return value, axis.offset + before
        found = axis.resolve(np.arange(low, high + 1))
        if (found < 0).any():
            lows, highs = [0] * len(shape), [0] * len(shape)
            highs[i] = 1
            value = self.padded(value, lows, highs, fill)
            found = np.where(found < 0, shape[i], found)
            shape[i] += 1
        value = self._taken(value, shape, i, found)
        shape[i] = window
        return value, axis.offset - low

    def _taken(
        self, value: SSAValue, shape: Sequence[int], i: int, indices: NDArray[np.int64]
    ) -> SSAValue:
        """The elements at these indices along an axis: a cut where the indices grow evenly."""
        steps = np.diff(indices)
        step = int(steps[0]) if len(steps) else 1
        made = list(shape)
        made[i] = len(indices)
        if step < 1 or (steps != step).any() or not len(indices):
            # Without the axes of one element, which a program that comes back does not have.
            wide = [k for k, n in enumerate(shape) if n != 1 or k == i]
            value = self.reshaped(value, [shape[k] for k in wide])
            return self.reshaped(self.taken(value, wide.index(i), indices), made)
        starts, every = [0] * len(shape), [1] * len(shape)
        starts[i], every[i] = int(indices[0]), step
        return value if made == list(shape) else self.cut(value, starts, every, made)

    def _plain(
        self,
        value: SSAValue,
        shape: list[int],
        i: int,
        terms: Terms,
        offset: int,
        sizes: Sequence[int],
    ) -> tuple[SSAValue, Terms, int]:
        """The tensor cut along an axis to what points reach, the terms, and the index of the point
        0. Changes the shape.
        """
        if len(terms) == 1 and terms[0][1] < 0:
            (d, step), n = terms[0], max(sizes[terms[0][0]], 1)
            value = self._taken(value, shape, i, offset + step * np.arange(n))
            shape[i] = n
            return value, ((d, 1),), 0
        if len(terms) <= 1:
            d, step = terms[0] if terms else (-1, 1)
            start, n = offset, sizes[d] if terms else 1
            kept: Terms = ((d, 1),) if terms else ()
        else:
            reach = [c * (max(sizes[d], 1) - 1) for d, c in terms]
            start = offset + sum(each for each in reach if each < 0)
            n, step, kept = sum(map(abs, reach)) + 1, 1, terms
        if (start, step, n) != (0, 1, shape[i]):
            starts, steps, counts = [0] * len(shape), [1] * len(shape), list(shape)
            starts[i], steps[i], counts[i] = start, step, n
            value = self.cut(value, starts, steps, counts)
            shape[i] = n
        return value, kept, offset - start if len(terms) > 1 else 0
