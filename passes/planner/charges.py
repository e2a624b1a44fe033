"""Charges: the prices of the parts of a matrix product's plan on a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...backends.prices import cost
from ...backends.prices.contractions.contraction import Contraction
from ...backends.prices.contractions.methods import contraction_cycles
from ...backends.prices.workload import partials_dtype
from ...backends.target import Target

Cycles = NDArray[np.float64]


@dataclass(frozen=True)
class Charges:
    """The prices of the parts of a plan, over arrays of candidates, on the busiest tile.

    Attributes:
        tiles, bytes_per_tile: of a chip.
        element_bytes: of operands and result.
        partial_bytes: of partial sums.
        sync_cycles: per superstep.
        multiply_cycles: of a block of (rows, depth, columns).
        receive_cycles: of bytes received in one exchange, without the sync.
        reduce_cycles: of adding up copies of elements, (elements, copies).
        pair_cycles: of adding two tensors of this many elements.
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


def target_charges(
    target: Target, element: np.dtype[Any], partials: np.dtype[Any] | None = None
) -> Charges:
    """The prices of a target, for operands and a result of one dtype.

    Args:
        partials: the dtype of partial sums, if it is not the one in which the machine adds.
    """
    between = partials_dtype(element) if partials is None else partials
    return Charges(
        tiles=target.tiles_per_chip,
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
    return cost.least_exchange_cycles(received_bytes, 0, target).astype(np.float64)


def _reduce_cycles(between: str, target: Target, elements: ArrayLike, copies: ArrayLike) -> Cycles:
    return cost.reduce_cycles(np.ceil(elements), copies, between, target).astype(np.float64)


def _pair_cycles(between: str, target: Target, elements: ArrayLike) -> Cycles:
    return cost.elementwise_cycles(np.ceil(elements), 2, "add", between, target).astype(np.float64)
