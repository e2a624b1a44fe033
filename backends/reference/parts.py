"""The accumulators that the points of a structured operation are merged into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codelets.conversion import Doubles, float_limits
from .gather import Array, Box
from .roles import Roles

MERGE: dict[str, np.ufunc] = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
    "pick": np.bitwise_or,
}
"""The ufunc of each combiner that has one. That of pick works on bits."""


@dataclass
class Parts:
    """The accumulators of a region, to which boxes of points are added.

    Attributes:
        size: sums of |f|, or products of max(|f|, 1).
        error: in units of u; for products, the product of |f| + error.
        terms: the number of values merged into each element.
    """

    value: Array
    size: Doubles | None
    error: Doubles | None
    terms: NDArray[np.int64] | int = 1

    @staticmethod
    def empty(roles: Roles, bounded: bool, region: Box) -> Parts:
        """The accumulators of a region before the first box.

        Args:
            bounded: whether sizes and errors are kept.
        """
        shape = tuple(region[d][1] - region[d][0] for d in roles.kept)
        value = _filled(shape, roles.start)
        if not bounded or roles.exact:
            return Parts(value, None, None, roles.terms)
        start = np.array(1.0 if roles.combiner == "prod" else 0.0)
        # The errors of products in a sum are in units of their sizes, so they need no array.
        error = np.broadcast_to(start, shape) if roles.is_contraction else _filled(shape, start)
        return Parts(value, _filled(shape, start), error, roles.terms)

    def at(self, place: tuple[Any, ...]) -> Parts:
        """The accumulators in a region of the result."""
        size = None if self.size is None else self.size[place]
        error = None if self.error is None else self.error[place]
        terms = self.terms if isinstance(self.terms, int) else self.terms[place]
        return Parts(self.value[place], size, error, terms)


def errors_to_merge(
    roles: Roles, parts: Parts, reads: Sequence[Array], values: Array
) -> Iterator[tuple[Array, Array, np.ufunc]]:
    """The updates of sizes and errors for the values of some points.

    Yields an array of the parts, the contributions of the points, and the ufunc that merges them.

    Args:
        reads: the operands of the function at the points.
        values: its results.
    """
    function = roles.function
    if parts.size is None or parts.error is None or function.boolean:
        return
    if function.is_exact and roles.combiner != "prod":
        # There are no errors to merge.
        if roles.combiner == "sum":
            yield parts.size, np.abs(values), np.add
        return
    u = float_limits(roles.computing).roundoff
    error = function.condition(roles.parameters, *reads, roundoff=u, result=values)
    match roles.combiner:
        case "sum":
            yield parts.size, np.abs(values), np.add
            yield parts.error, error, np.add
        case "prod":
            size = np.abs(values)
            yield parts.size, np.maximum(size, 1), np.multiply
            yield parts.error, size + u * error, np.multiply
        case _:
            yield parts.error, error, np.maximum


def as_bits(array: Array) -> Array:
    """An array viewed as unsigned integers of its elements' size."""
    return array.view(f"u{array.itemsize}")


def without(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    """A shape without some of its axes."""
    return [n for d, n in enumerate(shape) if d not in axes]


def _filled(shape: tuple[int, ...], value: Array) -> Array:
    """An array filled with one value. For zeros, the system allocates memory only on the first
    write.
    """
    return np.full(shape, value) if value.any() else np.zeros(shape, value.dtype)
