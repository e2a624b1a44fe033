"""A cached hash for values that are hashed often and slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T", bound=type[Any])

_KEPT = "_hash"


def hash_once(cls: T) -> T:
    """Class decorator for a frozen dataclass: each object computes its hash once and keeps it.

    For values with many parts that are used as keys of caches. The kept hash is not pickled,
    because the hash of a string differs between processes.
    """
    made = cast(Any, cls)
    computed: Callable[[Any], int] = made.__hash__

    def kept(self: Any) -> int:
        fields = self.__dict__
        if _KEPT not in fields:
            fields[_KEPT] = computed(self)
        return fields[_KEPT]

    def state(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _KEPT}

    made.__hash__ = kept
    made.__getstate__ = state
    return cls
