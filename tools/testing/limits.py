"""How long something may take: work that does not end is cut off."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
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


POLL = 1.0
"""Seconds between two looks at what goes on; both have to find it late."""


@dataclass
class _Guarded:
    end: float
    tell: Callable[[], str]
    late: bool = False


_going: list[_Guarded] = []
_guards: list[threading.Thread] = []


@contextmanager
def guarded(seconds: float, tell: Callable[[], str]) -> Generator[None]:
    """End the process if the block, in the main thread, takes longer and does not come back.

    An alarm waits for C code to return. Where that never does but has let go of the interpreter, as
    NumPy's loops do, another thread writes to standard error what tell says, and ends the process
    with status 1. Code that holds the interpreter cannot be ended from within: pytest's own
    faulthandler_timeout shows where it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A process that was forked has no other thread.
    if not any(each.is_alive() for each in _guards):
        _guards[:] = [threading.Thread(target=_guard, name="abele-guard", daemon=True)]
        _guards[0].start()
    _going.append(_Guarded(monotonic() + seconds, tell))
    try:
        yield
    finally:
        _going.pop()


def _guard() -> None:
    while True:
        sleep(POLL)
        # The outermost began first; a list's own operations are not torn.
        for each in _going[:]:
            if monotonic() < each.end:
                continue
            if each.late:
                try:
                    said = each.tell()
                # The process ends in any case; it must not end without a word.
                except Exception as error:
                    said = f"stuck; what it is about cannot be told: {error!r}"
                os.write(2, f"{said}\n".encode())
                os._exit(1)
            each.late = True
