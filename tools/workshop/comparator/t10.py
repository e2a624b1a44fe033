"""The charges of T10, the comparator: the prices of the parts of a plan on Mk2.

T10 (SOSP 2024) is the comparator: a search for plans on the same machine. Its authors fitted its
prices to measurements on Mk2 and published them with Elk (platformxlab/elk,
t10_TensorExpression.py). abele uses T10's prices only to compare the two searches by one measure.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ....passes.planner.charges import Charges, Cycles
from .account import divided


def _t10_multiply_cycles(rows: ArrayLike, depth: ArrayLike, columns: ArrayLike) -> Cycles:
    """T10's fit of a product of 16-bit floats in the conv units.

    It never grows when a dimension shrinks, and the two halves of a dimension cost at least as much
    as the whole. `account.bound` relies on both.
    """
    blocks = divided(depth, 16) * divided(columns, 16)
    return (24 * divided(rows, 6) + 514) * blocks + 113 * divided(columns, 16) + 173


def _t10_receive_cycles(received_bytes: ArrayLike) -> Cycles:
    """T10's fit of an exchange."""
    return 0.28 * np.asarray(received_bytes, np.float64)


_T10_GRAINS = np.array((0.0, 2, 4, 8, 12, 16, 24))
"""The numbers of outputs to which a reduction is padded, up to 24. Source: T10."""


def _t10_reduce_cycles(elements: ArrayLike, copies: ArrayLike) -> Cycles:
    """T10's fit of a reduction: outputs are padded to a grain, and small ones cost more each."""
    each = np.asarray(elements, np.float64)
    few = _T10_GRAINS[np.minimum(np.searchsorted(_T10_GRAINS, each), len(_T10_GRAINS) - 1)]
    padded = np.where(each <= 2, each, np.where(each > 24, np.ceil(each / 48) * 48, few))
    total = padded * copies
    short = np.minimum(total * 1.5 + 175, 481 * 0.25 + 175)
    return np.where(total <= 480, short, total * 0.25 + 175)


def _t10_pair_cycles(elements: ArrayLike) -> Cycles:
    """T10's fit of an elementwise addition."""
    each = np.asarray(elements, np.float64)
    short = np.minimum(each * 0.75 + 290, 16434 * 0.5 + 300)
    return np.where(each <= 16432, short, each * 0.5 + 300)


T10 = Charges(
    tiles=1472,
    bytes_per_tile=624 * 1024,
    element_bytes=2,
    partial_bytes=2,
    sync_cycles=118,
    multiply_cycles=_t10_multiply_cycles,
    receive_cycles=_t10_receive_cycles,
    reduce_cycles=_t10_reduce_cycles,
    pair_cycles=_t10_pair_cycles,
)
"""The comparator's charges: Mk2, with 16-bit floats throughout."""
