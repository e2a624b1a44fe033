"""Find the extensions of installed packages by their entry points."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "abele.extensions"
"""The group of entry points for packages that extend abele."""


@lru_cache(maxsize=1)
def extension_points() -> tuple[EntryPoint, ...]:
    """The entry points of all installed extensions."""
    return tuple(entry_points(group=GROUP))
