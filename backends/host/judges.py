"""The comparisons of a check, made by compiled kernels where possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects.structured import Structure
from ..codelets.calls import Array, address, coalesced
from ..op_check import Judge
from ..reference.structure import merged_regions
from .bounds import largest_ratio
from .copies import UNITS
from .kernels.tables import EQUAL_FIELDS
from .load import has_kernels, kernels
from .switch import is_wanted

LEAST_AXES = 2
"""The least number of axes of arrays that the kernel compares."""


def best_judge() -> Judge:
    """The fastest comparisons of this host."""
    return FastJudge() if is_wanted() else Judge()


class FastJudge(Judge):
    """Comparisons with the same results as NumPy's."""

    def largest_ratio(
        self, structure: Structure, operands: Sequence[Array], actual: Array, result: int
    ) -> float:
        """The largest ratio of error to bound of a result."""
        has = has_kernels("bounds")
        regions = merged_regions(structure, operands, actual) if has else None
        worst = 0.0
        for results, merged in regions or ():
            ratio = largest_ratio(merged, results)
            if ratio is None:
                regions = None
                break
            # A NaN counts as larger than any number.
            if not ratio <= worst:
                worst = ratio
            if worst != worst:
                break
        if regions is None:
            return super().largest_ratio(structure, operands, actual, result)
        return worst

    def are_equal(self, left: Array, right: Array) -> bool:
        """Whether all bits of two arrays of one shape and dtype are equal."""
        if left.itemsize not in UNITS or not has_kernels("equality"):
            return super().are_equal(left, right)
        if left.size == 0:
            return True
        right, left = coalesced(right, left)
        rank, missing = left.ndim, max(0, LEAST_AXES - left.ndim)
        table = np.zeros(EQUAL_FIELDS + 4 * (rank + missing), np.int64)
        table[:EQUAL_FIELDS] = address(left), address(right), left.itemsize, rank + missing
        axes = [
            [*[first] * missing, *each]
            for first, each in ((1, left.shape), (0, left.strides), (0, right.strides))
        ]
        table[EQUAL_FIELDS : len(table) - rank - missing] = [n for each in axes for n in each]
        return not kernels("equality").differ(address(table))
