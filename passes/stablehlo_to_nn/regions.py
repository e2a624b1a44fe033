"""Recognises regions that merge two elements: combiners of nn, and extremes with their indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Region, SSAValue

from ...backends.reference.identities import identity_of
from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_floating, is_whole
from .conversion import ToNn, splat_of

COMBINERS: Mapping[str, str] = {
    "stablehlo.add": "sum",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.multiply": "prod",
}
"""The combiner of nn that an operation on numbers is."""

OF_TRUTHS: Mapping[str, str] = {
    "stablehlo.add": "max",
    "stablehlo.or": "max",
    "stablehlo.maximum": "max",
    "stablehlo.and": "min",
    "stablehlo.minimum": "min",
    "stablehlo.multiply": "min",
}
"""The combiner of nn that an operation on truth values is."""

MERGE: Mapping[str, Any] = {"sum": nn.AddOp, "max": nn.MaxOp, "min": nn.MinOp, "prod": nn.MulOp}
"""The operation of nn on two tensors that each combiner is."""


def combiner_of(region: Region, number: int) -> str | None:
    """The combiner that merges one of several tensors, which no other tensor influences.

    None if the region merges otherwise.

    Args:
        number: of the tensor.
    """
    block = region.block
    end = block.last_op
    assert end is not None
    count = len(end.operands)
    made = end.operands[number].owner
    if isinstance(made, Block) or len(made.operands) != 2:
        return None
    pair = [block.args[number], block.args[number + count]]
    if list(made.operands) not in (pair, pair[::-1]):
        return None
    return (OF_TRUTHS if nn.element_of(pair[0]) == i1 else COMBINERS).get(made.name)


def is_identity(new: ToNn, value: SSAValue, combiner: str) -> bool:
    """Whether a value of nn is a number that a combiner merges without effect."""
    found = splat_of(value)
    return found is not None and found == identity_of(combiner, nn.element_of(value))


# Extremes with their indices

_INDICES = (0, 1, 2)

EXTREMES = ("argmax", "argmin", "argmax_last", "argmin_last")
"""The combiners of nn that find an extreme and its index."""


def extreme_of(new: ToNn, region: Region) -> str | None:
    """The combiner that a region on two elements and their indices is; None if it is none.

    Such a region asks only how elements and indices compare. So its results for all ways in which
    two elements and two indices compare say what it is.
    """
    kinds = [numpy_dtype(nn.element_of(value)) for value in region.block.args]
    if len(kinds) != 4 or not is_whole(kinds[1]) or not _compares(region):
        return None
    points = [
        each
        for each in product(_values(kinds[0]), _INDICES, _values(kinds[0]), _INDICES)
        if each[1] != each[3]
    ]
    columns = [np.array([point[k] for point in points], kind) for k, kind in enumerate(kinds)]
    found = new.tried(region, columns)
    if len(found) != 2:
        return None
    a, i, b, j = columns
    if is_floating(kinds[0]):
        nan_a, nan_b = np.isnan(a), np.isnan(b)
        # Of two NaN, either one may win.
        known, first = ~(nan_a & nan_b), nan_a
        free = ~nan_a & ~nan_b
    else:
        known, first, free = np.ones(len(a), bool), np.zeros(len(a), bool), np.ones(len(a), bool)
    for name in EXTREMES:
        better = (a > b) if "max" in name else (a < b)
        lower = (i > j) if name.endswith("last") else (i < j)
        wins = first | (free & (better | ((a == b) & lower)))
        value, index = np.where(wins, a, b), np.where(wins, i, j)
        equal = _same(found[0], value) & (found[1] == index)
        if np.all(equal | ~known):
            return name
    return None


def _values(dtype: np.dtype[Any]) -> Sequence[Any]:
    if is_floating(dtype):
        return (-np.inf, -1.0, 1.0, np.inf, np.nan)
    return (False, True) if dtype == np.bool_ else (0, 1, 2)


def _same(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    return (a == b) | ((a != a) & (b != b))


_COMPARING = frozenset(
    f"stablehlo.{name}"
    for name in ("compare", "select", "and", "or", "not", "xor", "minimum", "maximum", "return")
)


def _compares(region: Region) -> bool:
    """Whether a region only compares its arguments, and selects among them."""
    return all(op.name in _COMPARING for op in region.block.ops)
