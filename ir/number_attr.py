"""Attributes of numbers. Equal numbers give the same attribute object.

xDSL checks every attribute that it makes, so making one once saves time. Sharing the objects also
lets `xdsl.cached_by_form` recognise operations with the same attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    f64,
    i64,
)

_LONGEST = 64
"""The length of the longest list that is kept for reuse."""


@lru_cache(maxsize=4096)
def integer_attr(value: int, type_: IntegerType | IndexType = i64) -> IntegerAttr:
    """An integer attribute. Raises VerifyException if the type cannot hold the value."""
    return IntegerAttr(int(value), type_)


def float_attr(value: float, type_: AnyFloat = f64) -> FloatAttr[AnyFloat]:
    """A floating-point attribute."""
    # The cache must tell 0.0 from -0.0, which are equal. All NaNs may share one attribute.
    return _float_attr(float(value).hex(), type_)


@lru_cache(maxsize=4096)
def _float_attr(digits: str, type_: AnyFloat) -> FloatAttr[AnyFloat]:
    return FloatAttr(float.fromhex(digits), type_)


def integers_attr(values: Iterable[int], type_: IntegerType = i64) -> DenseArrayBase[IntegerType]:
    """A list of integers. Raises VerifyException if the type cannot hold one of the values."""
    given = tuple([int(v) for v in values])
    if len(given) > _LONGEST:
        return DenseArrayBase.from_list(type_, given)
    return _integers_attr(given, type_)


@lru_cache(maxsize=4096)
def _integers_attr(values: tuple[int, ...], type_: IntegerType) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(type_, values)
