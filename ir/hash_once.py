"""Values that are asked for their hash all the time, and are long to hash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T", bound=type[Any])

_KEPT = "_hash"


def hash_once(cls: T) -> T:
    """A frozen dataclass whose objects compute their hash once and keep it.

    For values made of many others, which are keys of caches. A hash is no part of what is pickled:
    that of a text differs between processes.
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
