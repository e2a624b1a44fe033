"""The memory of all tiles on the host, and copies into it in another thread."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import numpy as np
from numpy.typing import NDArray

from ..codelets.calls import Array


def tile_memory(tiles: int, row: int) -> NDArray[np.uint8]:
    """Zeroed memory of all tiles, uint8[tiles, row]. Untouched pages take no memory.

    Raises MemoryError if the host has too little.

    Args:
        row: bytes from one tile to the next.
    """
    if sys.platform != "linux":
        return np.zeros((tiles, row), np.uint8)
    # NumPy asks for huge pages. Touching one byte of such a page takes the memory of three tiles.
    try:
        pages = mmap.mmap(-1, tiles * row, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{tiles:,} tiles of {row:,} bytes: {error.strerror}") from None
    # Some systems have no huge pages, or no setting for them.
    with suppress(OSError, AttributeError):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.uint8).reshape(tiles, row)


def copy_all(pairs: Iterable[tuple[Array, Array]]) -> None:
    """For each pair, copy the second array into the first."""
    for target, source in pairs:
        np.copyto(target, source)


@contextmanager
def copying(pairs: Sequence[tuple[Array, Array]]) -> Generator[None]:
    """Copy in another thread during the block, or before it if no thread can be started."""
    if not pairs:
        yield
        return
    with ThreadPoolExecutor(1) as executor:
        writing = None
        try:
            writing = executor.submit(copy_all, pairs)
        except RuntimeError:
            # The host has no more threads, or the interpreter is ending.
            copy_all(pairs)
        yield
    if writing is not None:
        writing.result()
