"""Groups of neighbouring chips, where a picture or a table has no room for each."""

from __future__ import annotations

from collections.abc import Iterator

MOST = 32
"""The most chips that are shown one by one. Assumed: as many as a small picture shows."""


def chip_group(chips: int) -> int:
    """Neighbouring chips in a group: 1 where there is room for each."""
    return max(-(-chips // MOST), 1)


def chip_groups(chips: int) -> Iterator[tuple[str, slice]]:
    """The name of each group, and its chips."""
    size = chip_group(chips)
    for first in range(0, chips, size):
        last = min(first + size, chips)
        yield f"chip {first}" if size == 1 else f"chips {first}-{last - 1}", slice(first, last)
