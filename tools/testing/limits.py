"""Time limits: work that does not end is interrupted.

Limits count CPU time, so that a busy machine does not look like a hang. A longer limit on the wall
clock ends work that sleeps or waits.
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
"""The limit on the wall clock is this many times the limit of CPU time."""

MOMENT = 0.001
"""Seconds until an alarm is repeated that came while nothing could be raised."""


class TooLong(BaseException):
    """The time is over. Not an Exception, so that no pass catches it with its own errors."""


class _OuterTooLong(BaseException):
    """The time of a block around is over, which no handler inside it may take for its own.

    timer: the signal of its timer.
    """

    def __init__(self, timer: int) -> None:
        super().__init__()
        self.timer = timer


AGAIN = 1.0
"""Seconds, at least, after which a timer rings again if nothing has come of its first ring."""


@contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Raise TooLong inside the block after so many seconds of CPU time.

    This uses the timers of the process: in other threads than the main one, and on systems without
    timers, there is no limit. Limits nest: time in an inner block counts for the outer limit too,
    and what ends with it is the outer block.
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
    """Raise TooLong inside the block when a timer of the process expires."""

    def ring(number: int, frame: FrameType | None) -> None:
        if _would_be_ignored(frame):
            signal.setitimer(timer, MOMENT)
            return
        raise over() if is_own else _OuterTooLong(number)

    def over() -> TooLong:
        return TooLong(f"more than {seconds:g} s")

    left, _ = signal.getitimer(timer)
    is_own = not left or seconds <= left
    given = seconds if is_own else left
    previous = signal.signal(number, ring)
    # Code that Python calls in between may swallow an exception, so the timer rings again.
    signal.setitimer(timer, given, max(given, AGAIN))
    try:
        yield
    except _OuterTooLong as late:
        if late.timer == number and is_own:
            raise over() from None
        raise
    finally:
        rest, _ = signal.setitimer(timer, 0)
        signal.signal(number, previous)
        if left:
            # At least a moment, because 0 would switch the outer timer off.
            signal.setitimer(timer, max(left - (given - rest), MOMENT))


def _would_be_ignored(frame: FrameType | None) -> bool:
    """Whether Python would print an exception raised here and continue.

    It does so in destructors, in callbacks of weak references and in callbacks of the garbage
    collector.
    """
    watchers = {getattr(each, "__code__", None) for each in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename == weakref.__file__ or code in watchers:
            return True
        frame = frame.f_back
    return False


POLL = 1.0
"""Seconds between two checks of the guarded blocks. Two in a row have to find a block late."""


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
"""Processes that have a guard thread. A forked process inherits this set, but not the thread."""


@contextmanager
def guarded(seconds: float, message: Callable[[], str]) -> Generator[None]:
    """End the process if the block, in the main thread, takes too long and cannot be interrupted.

    seconds: as for `at_most`, which cannot interrupt C code. If C code never returns but has
    released the interpreter lock, as NumPy's loops do, another thread writes the message to
    standard error and ends the process with status 1. Code that keeps the lock cannot be ended from
    within the process; pytest's faulthandler_timeout shows where it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if os.getpid() not in _guarded:
        # Thread.start waits until the thread runs: for ever if it dies for lack of memory.
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
        # Outer blocks come first. Copying a list is atomic.
        for each in _going[:]:
            if not each.over:
                continue
            if each.late:
                try:
                    message = each.message()
                # The process ends in any case, but not without a message.
                except Exception as error:
                    message = f"stuck, and its message cannot be made: {error!r}"
                os.write(2, f"{message}\n".encode())
                os._exit(1)
            each.late = True
