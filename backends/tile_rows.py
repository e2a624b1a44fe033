"""How far apart the memories of tiles are on the host."""

from __future__ import annotations

PAGE_BYTES = 4096
ROW_PADDING_BYTES = 64


def row_bytes(bytes_per_tile: int) -> int:
    """Bytes from one tile's memory to the next in the host's memory.

    Never a multiple of a page: equal addresses of all tiles would share a cache set. A word may be
    read at the last byte of a tile.
    """
    row = -(-(bytes_per_tile + 3) // ROW_PADDING_BYTES) * ROW_PADDING_BYTES
    return row if row % PAGE_BYTES else row + ROW_PADDING_BYTES
