"""When Python looks for garbage: operations form cycles, and looking through them takes time."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Look for none inside: for work whose operations live as long as their module. What is made
    inside counts as old, and is looked through with all else that is."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def left_behind() -> Generator[None]:
    """Look for none any more after this: for what a process does last, whose memory goes back to
    the host as a whole. Python would look through all of it as it ends."""
    try:
        yield
    finally:
        gc.freeze()


@contextmanager
def set_aside() -> Generator[None]:
    """Look only through what is made inside, for work that makes much garbage beside much that
    stays. Where something is set aside already, that is left to who has done it."""
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
