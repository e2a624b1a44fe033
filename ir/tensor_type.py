"""Tensor types, each made only once, because xDSL checks every attribute that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute


def tensor_type(element: Attribute, shape: Sequence[int]) -> TensorType[Attribute]:
    """The tensor type with this element type and shape. Equal types are one object."""
    return _made(element, tuple([int(n) for n in shape]))


@lru_cache(maxsize=8192)
def _made(element: Attribute, shape: tuple[int, ...]) -> TensorType[Attribute]:
    return TensorType(element, shape)
