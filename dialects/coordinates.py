"""The dtypes in which bodies read coordinates: the index of a point along a dimension.

Coordinates are whole numbers. Their dtype must hold each of their values exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute

from ..ir.upstream import VerifyException
from .dtypes import QUARTERS, STORED, numpy_dtype
from .scalar_functions import FUNCTIONS
from .structured import Structure


def _dtype(operands: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The dtype in which a function reads coordinates, given the dtypes of its other operands.

    For floats, this is the dtype that they are computed in; for integers, their own dtype; int32 if
    no operand is a number.
    """
    found = next((dtype for dtype in operands if dtype != np.bool_), np.dtype(np.int32))
    if found.kind in "iu":
        return found
    return np.dtype(np.float64 if found == np.float64 else np.float32)


def verify_coordinate_dtypes(structure: Structure, elements: Sequence[Attribute]) -> None:
    """Check that the types in which coordinates are read hold them exactly.

    Raises VerifyException.

    Args:
        elements: the element types of the operands and, last, of the first result.
    """
    if not structure.space.coordinates:
        return
    # A chain that ends in a cast to 8-bit floats computes in float32, and reads coordinates there.
    stored = [each for each in elements if each in STORED and each not in QUARTERS]
    if stored:
        raise VerifyException(f"coordinates with elements {stored[0]}, which are only stored")
    dtypes = [numpy_dtype(each) for each in elements]
    for each, dtype in zip(
        structure.space.coordinates, coordinate_dtypes(structure, dtypes), strict=True
    ):
        low, high = each.limits
        if not holds_exactly(dtype, low, high):
            raise VerifyException(
                f"coordinate for operand {each.operand}, from {low} to {high}: {dtype} does not "
                "hold all of them"
            )


def coordinate_dtypes(structure: Structure, dtypes: Sequence[np.dtype[Any]]) -> list[np.dtype[Any]]:
    """The dtype in which each coordinate is read.

    Args:
        dtypes: of the operands and, last, of the first result.
    """
    own = [dtype for dtype in dtypes[: structure.own_operands] if dtype != np.bool_]
    function = structure.body.function
    if not own and function in FUNCTIONS and not FUNCTIONS[function].boolean:
        # A function of coordinates alone computes in the type of its result; identity only casts.
        own = [] if function == "identity" else [dtypes[-1]]
    of_function = _dtype(own)
    of_chain = _dtype([d for d in dtypes if d.kind not in "biu"])
    chained = structure.own_places
    return [of_chain if p.operand >= chained else of_function for p in structure.space.coordinates]


def holds_exactly(dtype: np.dtype[Any], low: int, high: int) -> bool:
    """Whether a dtype holds all whole numbers from low to high."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min <= low and high <= limits.max
    info = cast(Any, ml_dtypes.finfo(dtype))
    most = 1 << (int(info.nmant) + 1)
    return -most <= low and high <= most
