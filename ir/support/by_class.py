"""Tables by class, whose entries hold for subclasses too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def entry_for(table: Mapping[type[Any], T], cls: type[Any]) -> T | None:
    """The entry of a class, or of the first base class that has one; None without one."""
    return next((table[each] for each in cls.__mro__ if each in table), None)
