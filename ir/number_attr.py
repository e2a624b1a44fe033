"""Attributes of numbers, each made once: xDSL checks an attribute whenever it makes one, and what
is known of an operation holds for others that have the very same attributes.
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
"""Numbers of a list that is kept."""


@lru_cache(maxsize=4096)
def integer_attr(value: int, type_: IntegerType | IndexType = i64) -> IntegerAttr:
    """An integer. Raises VerifyException for one that the type cannot hold."""
    return IntegerAttr(int(value), type_)


def float_attr(value: float, type_: AnyFloat = f64) -> FloatAttr[AnyFloat]:
    """A floating-point number."""
    # 0.0 and -0.0 are equal, and not the same; one NaN is as good as another.
    return _float_attr(float(value).hex(), type_)


@lru_cache(maxsize=4096)
def _float_attr(digits: str, type_: AnyFloat) -> FloatAttr[AnyFloat]:
    return FloatAttr(float.fromhex(digits), type_)


def integers_attr(values: Iterable[int], type_: IntegerType = i64) -> DenseArrayBase[IntegerType]:
    """A list of integers. Raises VerifyException for one that the type cannot hold."""
    given = tuple([int(v) for v in values])
    if len(given) > _LONGEST:
        return DenseArrayBase.from_list(type_, given)
    return _integers_attr(given, type_)


@lru_cache(maxsize=4096)
def _integers_attr(values: tuple[int, ...], type_: IntegerType) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(type_, values)
