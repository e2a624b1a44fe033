"""How long something may take: work that does not end is cut off.

Time is the processor's, so that a busy machine makes no hang; but who waits is not waited for.
"""

from __future__ import annotations

import _thread
import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, process_time, sleep
from types import FrameType

PATIENCE = 10
"""How many times its limit something may take on the wall clock."""


MOMENT = 0.001
"""Seconds until an alarm rings again that came at a bad time."""


class TooLong(BaseException):
    """The time is over. No Exception, so that no pass catches it with its own."""


@contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Raise TooLong inside the block once it has taken so long, in seconds of the processor.

    By the alarms of the process, so only in its main thread, and where there are alarms; elsewhere
    there is no limit. Limits nest: the outer one goes on, less what the inner block has taken.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return
    with (
        _alarm(signal.SIGPROF, signal.ITIMER_PROF, seconds),
        _alarm(signal.SIGALRM, signal.ITIMER_REAL, PATIENCE * seconds),
    ):
        yield


@contextmanager
def _alarm(number: int, timer: int, seconds: float) -> Generator[None]:
    """Raise TooLong inside the block once a timer of the process has run so long."""

    def ring(number: int, frame: FrameType | None) -> None:
        if _is_unheard(frame):
            signal.setitimer(timer, MOMENT)
            return
        raise TooLong(f"more than {seconds:g} s")

    previous = signal.signal(number, ring)
    left, _ = signal.getitimer(timer)
    given = min(seconds, left) if left else seconds
    signal.setitimer(timer, given)
    try:
        yield
    finally:
        rest, _ = signal.setitimer(timer, 0)
        signal.signal(number, previous)
        if left:
            # At least a moment, so that the outer alarm rings after all.
            signal.setitimer(timer, max(left - (given - rest), MOMENT))


def _is_unheard(frame: FrameType | None) -> bool:
    """Whether Python would print what is raised here and go on: while something is forgotten, or
    who watches that is told."""
    watchers = {getattr(each, "__code__", None) for each in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename == weakref.__file__ or code in watchers:
            return True
        frame = frame.f_back
    return False


POLL = 1.0
"""Seconds between two looks at what goes on; both have to find it late."""


@dataclass
class _Guarded:
    end: float
    wall_end: float
    message: Callable[[], str]
    late: bool = False

    @property
    def over(self) -> bool:
        return process_time() >= self.end or monotonic() >= self.wall_end


_going: list[_Guarded] = []
_guarded: set[int] = set()
"""Processes that a thread of theirs looks after. A forked one has this list, but no such thread."""


@contextmanager
def guarded(seconds: float, message: Callable[[], str]) -> Generator[None]:
    """End the process if the block, in the main thread, takes longer and does not come back.

    Seconds are those of `at_most`, whose alarm waits for C code to return. Where that never does
    but has let go of the interpreter, as NumPy's loops do, another thread writes to standard error
    the message, and ends the process with status 1. Code that holds the interpreter cannot be
    ended from within: pytest's own faulthandler_timeout shows where it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if os.getpid() not in _guarded:
        # A Thread waits until it runs, for ever where it has died for want of memory.
        _thread.start_new_thread(_guard, ())
        _guarded.add(os.getpid())
    _going.append(_Guarded(process_time() + seconds, monotonic() + PATIENCE * seconds, message))
    try:
        yield
    finally:
        _going.pop()


def _guard() -> None:
    while True:
        sleep(POLL)
        # The outermost began first; a list's own operations are not torn.
        for each in _going[:]:
            if not each.over:
                continue
            if each.late:
                try:
                    message = each.message()
                # The process ends in any case; it must not end without a word.
                except Exception as error:
                    message = f"stuck, and its message cannot be made: {error!r}"
                os.write(2, f"{message}\n".encode())
                os._exit(1)
            each.late = True
