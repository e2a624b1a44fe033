"""The charges of a plan of a matrix product: T10's, or those of a target.

T10 (SOSP 2024) is the comparator: a search for plans on the same machine. Its authors fitted its
prices to measurements on Mk2 and published them with Elk (platformxlab/elk,
t10_TensorExpression.py). abele uses T10's prices only to compare the two searches by one measure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...backends import cost
from ...backends.codelets.workload import partials_dtype
from ...backends.contractions.contraction import Contraction
from ...backends.contractions.methods import contraction_cycles
from ...backends.target import Target

Cycles = NDArray[np.float64]


@dataclass(frozen=True)
class Charges:
    """The prices of the parts of a plan, over arrays of candidates, on the busiest tile.

    tiles, bytes_per_tile: of the machine. element_bytes: of operands and result. partial_bytes: of
    partial sums. sync_cycles: per superstep. multiply_cycles: of a block of (rows, depth, columns).
    receive_cycles: of bytes received in one exchange, without the sync. reduce_cycles: of adding up
    copies of elements, (elements, copies). pair_cycles: of adding two tensors of some elements.
    """

    tiles: int
    bytes_per_tile: int
    element_bytes: int
    partial_bytes: int
    sync_cycles: float
    multiply_cycles: Callable[[ArrayLike, ArrayLike, ArrayLike], Cycles]
    receive_cycles: Callable[[ArrayLike], Cycles]
    reduce_cycles: Callable[[ArrayLike, ArrayLike], Cycles]
    pair_cycles: Callable[[ArrayLike], Cycles]


def divided(value: ArrayLike, by: ArrayLike) -> Cycles:
    """A quotient of integers below 2**52, rounded up.

    Floats divide several times as fast as 64-bit integers, and are exact below 2**52.
    """
    return np.ceil(np.true_divide(value, by))


# The comparator's fits.


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
"""The numbers of outputs that a reduction is padded to, up to 24. Source: T10."""


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


# abele's own prices.


def target_charges(target: Target, element: np.dtype[Any]) -> Charges:
    """The prices of a target, for operands and a result of one dtype."""
    between = partials_dtype(element)
    return Charges(
        tiles=target.tiles,
        bytes_per_tile=target.usable_bytes_per_tile,
        element_bytes=element.itemsize,
        partial_bytes=between.itemsize,
        sync_cycles=cost.sync_cycles(target),
        multiply_cycles=partial(_multiply_cycles, element.name, between.name, target),
        receive_cycles=partial(_receive_cycles, target),
        reduce_cycles=partial(_reduce_cycles, between.name, target),
        pair_cycles=partial(_pair_cycles, between.name, target),
    )


def _multiply_cycles(
    element: str,
    between: str,
    target: Target,
    rows: ArrayLike,
    depth: ArrayLike,
    columns: ArrayLike,
) -> Cycles:
    product = Contraction.of(rows, depth, columns, 1, 1, element, between)
    return contraction_cycles(product, target).min(axis=0)


def _receive_cycles(target: Target, received_bytes: ArrayLike) -> Cycles:
    return cost.exchange_cycles(received_bytes, 0, target).astype(np.float64)


def _reduce_cycles(between: str, target: Target, elements: ArrayLike, copies: ArrayLike) -> Cycles:
    return cost.reduce_cycles(np.ceil(elements), copies, between, target).astype(np.float64)


def _pair_cycles(between: str, target: Target, elements: ArrayLike) -> Cycles:
    return cost.elementwise_cycles(np.ceil(elements), 2, "add", between, target).astype(np.float64)
