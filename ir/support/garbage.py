"""Control over Python's garbage collector.

Operations refer to each other in cycles, and searching a large program for garbage takes long.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

HELD_BYTES = 1 << 29
"""Bytes. If new arrays hold more than this, garbage is collected however few objects there are."""

OPEN_FILE_BYTES = 1 << 20
"""Bytes that an open file counts as, because hosts allow about a thousand of them."""

_FROZEN_AT_START = gc.get_freeze_count()
"""Objects that Python itself freezes at its start: some hundreds in Python 3.12, else none."""

_frozen_here: list[bool] = []
"""Holds one entry while a block of `heap_frozen` has the heap frozen."""


def _is_frozen() -> bool:
    """True if the heap is frozen, by `heap_frozen` or by other code.

    Python counts frozen objects one by one, which takes long for a large heap. So it is asked only
    if `heap_frozen` did not freeze the heap.
    """
    return bool(_frozen_here) or gc.get_freeze_count() > _FROZEN_AT_START


@dataclass
class _Count:
    """Counts since the last full search.

    Attributes:
        seen: objects that Python had at that search, 0 before the first one.
        more: objects made since while collection was paused.
        held: bytes of arrays held by objects made since.
    """

    seen: int = 0
    more: int = 0
    held: int = 0


_COUNT = _Count()


def count_held(size: int) -> None:
    """Record that objects hold this many bytes that Python's collector does not count."""
    _COUNT.held += size


@contextmanager
def collection_paused() -> Generator[None]:
    """Pause garbage collection in the block.

    For work that makes operations which live as long as their module. Objects made in the block
    move to the oldest generation without being searched. Python does not count them towards its
    next collection, so call `collect_if_grown` before the next such work.
    """
    enabled = gc.isenabled()
    gc.disable()
    before = gc.get_count()[0]
    try:
        yield
    finally:
        if enabled:
            _COUNT.more += max(gc.get_count()[0] - before, 0)
            if not _is_frozen():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def collect_if_grown() -> None:
    """Collect garbage if the number of objects has doubled, or if new ones hold much memory.

    Only objects made while collection was paused count; memory is much above HELD_BYTES. Call this
    before work on another network: most of the previous one is garbage by then. A process that
    makes only one network never waits for a collection.
    """
    if not gc.isenabled():
        return
    if _COUNT.more > _COUNT.seen > 0 or _COUNT.held > HELD_BYTES:
        gc.collect()
        _COUNT.seen = 0
    if not _COUNT.seen:
        _COUNT.seen, _COUNT.more, _COUNT.held = len(gc.get_objects()), 0, 0


@contextmanager
def heap_frozen_after() -> Generator[None]:
    """Freeze the heap after the block, so that Python does not search it for garbage at exit.

    For the last work of a process: its memory goes back to the host as a whole.
    """
    try:
        yield
    finally:
        gc.freeze()


SELDOM = 20_000
"""Objects that are made between two collections where much of them is garbage soon."""


@contextmanager
def collected_seldom() -> Generator[None]:
    """Collect garbage less often in the block than Python does.

    For many small programs, one after another: each is garbage before the next begins.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(SELDOM, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def heap_frozen() -> Generator[None]:
    """Freeze the heap during the block, so that only objects made in it are searched for garbage.

    For work that makes much garbage while many older objects stay alive. Blocks may nest; only the
    outermost one has an effect.
    """
    if _is_frozen():
        yield
        return
    gc.freeze()
    _frozen_here.append(True)
    try:
        yield
    finally:
        _frozen_here.clear()
        gc.unfreeze()
