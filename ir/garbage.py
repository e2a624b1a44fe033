"""When Python looks for garbage: operations form cycles, and looking through them takes time."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

HELD_BYTES = 1 << 29
"""Bytes of arrays after which garbage is looked for, however few the objects are that hold them."""

OPEN_FILE_BYTES = 1 << 20
"""What an open file counts as: hosts have a thousand."""

_FROZEN_AT_START = gc.get_freeze_count()
"""Objects that Python itself sets aside at its start: some hundreds in Python 3.12, else none."""

_frozen_here: list[bool] = []
"""Holds one entry while a block of `heap_frozen` has the heap frozen."""


def _is_frozen() -> bool:
    """True if the heap is frozen, by `heap_frozen` or by somebody else.

    Python counts frozen objects one by one, which takes long for a large heap, so it is asked only
    if `heap_frozen` did not freeze it.
    """
    return bool(_frozen_here) or gc.get_freeze_count() > _FROZEN_AT_START


@dataclass
class _Count:
    """How many objects Python has to look through, and how many more there have been since; and
    bytes of arrays."""

    seen: int = 0
    more: int = 0
    held: int = 0


_COUNT = _Count()


def count_held(size: int) -> None:
    """Say that objects hold so many bytes that Python knows nothing of."""
    _COUNT.held += size


@contextmanager
def uncollected() -> Generator[None]:
    """Look for none inside: for work whose operations live as long as their module.

    What is made inside counts as old, without being looked through: Python does not know that it
    has become more, and `collect_if_much` is there for that.
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


def collect_if_much() -> None:
    """Look through everything if as much as there was has been made uncollected since, or much
    memory is held by what has been.

    For the begin of work that makes a network: what is left of others then is garbage, more often
    than not. A process that makes one network never waits for it.
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
    """Freeze the heap after the block, so that Python does not search it for garbage as it exits.

    For the last work of a process, whose memory goes back to the host as a whole.
    """
    try:
        yield
    finally:
        gc.freeze()


@contextmanager
def heap_frozen() -> Generator[None]:
    """Freeze the heap during the block, so that only objects made inside are searched for garbage.

    For work that makes much garbage while much else stays. Blocks may nest; the outermost counts.
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
