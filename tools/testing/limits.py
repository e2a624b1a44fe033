"""How long something may take: work that does not end is cut off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class TooLong(BaseException):
    """The time is over. No Exception, so that no pass catches it with its own."""


@contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Raise TooLong inside the block once it has taken so long.

    By the alarm of the process, so only in its main thread, and where there are alarms; elsewhere
    there is no limit. Limits nest: the outer one goes on, less what the inner block has taken.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        rest, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if left:
            # At least a moment, so that the outer alarm rings after all.
            signal.setitimer(signal.ITIMER_REAL, max(left - (seconds - rest), 0.001))
