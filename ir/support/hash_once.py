"""A cached hash, and cached equality, for values that are compared often and slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T", bound=type[Any])

_KEPT = "_hash"

_ALIKE = "_alike"
"""The mark that values share once they have been found equal."""


def hash_once(cls: T) -> T:
    """Class decorator for a frozen dataclass: each object computes its hash once and keeps it.

    Objects also keep that they are equal: they share a mark, and objects with the same mark are not
    compared again. So a cache finds an equal key quickly, although it is another object.

    For values with many parts that are used as keys of caches. The hash and the mark are not
    pickled, because the hash of a string differs between processes.
    """
    made = cast(Any, cls)
    computed: Callable[[Any], int] = made.__hash__
    compared: Callable[[Any, object], Any] = made.__eq__

    def kept(self: Any) -> int:
        fields = self.__dict__
        if _KEPT not in fields:
            fields[_KEPT] = computed(self)
        return fields[_KEPT]

    def equal(self: Any, other: Any) -> Any:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        mine, its = self.__dict__, other.__dict__
        mark = mine.get(_ALIKE)
        if mark is not None and its.get(_ALIKE) is mark:
            return True
        known = mine.get(_KEPT)
        if known is not None and its.get(_KEPT, known) != known:
            return False
        if compared(self, other) is not True:
            return False
        mine[_ALIKE] = its[_ALIKE] = mark or its.get(_ALIKE) or object()
        return True

    def state(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in (_KEPT, _ALIKE)}

    made.__hash__ = kept
    made.__eq__ = equal
    made.__getstate__ = state
    return cls
