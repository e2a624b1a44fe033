"""What the parts of a plan of a product of matrices are charged: as T10 charges them, or a target.

T10 (SOSP 2024) is the comparator: a search for plans on the same machine, whose authors fitted
these prices to measurements on Mk2 and published them with Elk (platformxlab/elk,
t10_TensorExpression.py). They are not abele's prices: they stand here so that two searches can
be held to one measure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...backends import cost
from ...backends.codelets.prices import partials_dtype
from ...backends.contractions.contraction import Contraction
from ...backends.contractions.methods import contraction_cycles
from ...backends.target import Target

Cycles = NDArray[np.float64]


@dataclass(frozen=True)
class Charges:
    """Prices of what a plan is made of, over arrays of candidates, on the tile that has most.

    tiles, bytes_per_tile: of the machine. element_bytes: of operands and result. partial_bytes: of
    what is left to be added up. sync_cycles: once a superstep. multiply_cycles: of a block of
    (rows, depth, columns). receive_cycles: of so many bytes in one exchange, sync not counted.
    reduce_cycles: of (elements, copies), to add so many copies of so many elements. pair_cycles: to
    add two tensors of so many elements.
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

    In floats: a division of 64-bit integers takes several times as long, and nothing is lost.
    """
    return np.ceil(np.true_divide(value, by))


# The comparator's fits.


def _t10_multiply_cycles(rows: ArrayLike, depth: ArrayLike, columns: ArrayLike) -> Cycles:
    """T10's fit of a product of 16-bit floats in the conv units.

    It never grows when a dimension shrinks, and halves of a dimension cost at least as much as
    the whole: `matmul.bound` rests on both.
    """
    blocks = divided(depth, 16) * divided(columns, 16)
    return (24 * divided(rows, 6) + 514) * blocks + 113 * divided(columns, 16) + 173


def _t10_receive_cycles(received_bytes: ArrayLike) -> Cycles:
    """T10's fit of an exchange."""
    return 0.28 * np.asarray(received_bytes, np.float64)


_T10_GRAINS = np.array((0.0, 2, 4, 8, 12, 16, 24))


def _t10_reduce_cycles(elements: ArrayLike, copies: ArrayLike) -> Cycles:
    """T10's fit of a reduction: outputs are padded to a grain, and few of them cost more each."""
    each = np.asarray(elements, np.float64)
    few = _T10_GRAINS[np.minimum(np.searchsorted(_T10_GRAINS, each), len(_T10_GRAINS) - 1)]
    padded = np.where(each <= 2, each, np.where(each > 24, np.ceil(each / 48) * 48, few))
    total = padded * copies
    short = np.minimum(total * 1.5 + 175, 481 * 0.25 + 175)
    return np.where(total <= 480, short, total * 0.25 + 175)


def _t10_pair_cycles(elements: ArrayLike) -> Cycles:
    """T10's fit of an element-wise addition."""
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
"""The comparator's charges, on its Mk2 and in 16-bit floats throughout."""


# abele's own prices.


def target_charges(target: Target, element: np.dtype[Any]) -> Charges:
    """The prices of a target, for operands and a result of one type."""
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
