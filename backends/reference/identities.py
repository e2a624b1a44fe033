"""The numbers that combiners merge without effect."""

from __future__ import annotations

from xdsl.ir import Attribute

from ...dialects.dtypes import numpy_dtype
from ...dialects.scalar_functions import COMBINERS
from .gather import fill_value


def identity_of(combiner: str, element: Attribute) -> float | int | bool:
    """The number of an element type that a combiner merges without effect."""
    return fill_value(COMBINERS[combiner], numpy_dtype(element))
