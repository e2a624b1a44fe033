"""Time limits: interrupts work that does not end.

Limits count CPU time, so that a busy machine does not look like a hang. A longer limit on
wall-clock time ends work that sleeps or waits.
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import monotonic, process_time, sleep
from types import FrameType
from typing import Any

PATIENCE = 10
"""The limit on the wall clock is this many times the limit of CPU time."""

MOMENT = 0.001
"""Seconds after which a timer rings again if no exception could be raised."""


class TooLong(BaseException):
    """Raised when a time limit is over. Not an Exception, so no pass catches it by mistake."""


class _OuterTooLong(BaseException):
    """Raised when the time limit of an enclosing block is over. Inner handlers must not catch it.

    Attributes:
        limit: the limit of the enclosing block.
    """

    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self.limit = limit


AGAIN = 1.0
"""Seconds after which a timer rings again if its first ring had no effect, because some code has
swallowed the exception. After so many seconds the exception is raised wherever the program is."""


@dataclass(frozen=True)
class _Timer:
    """A timer of the process.

    Attributes:
        signal: its signal number.
        clock: returns the seconds that it counts.
        patience: the factor by which its limit is longer than the block's.
    """

    timer: int
    signal: int
    clock: Callable[[], float]
    patience: Callable[[], float]


_TIMERS = (
    (
        _Timer(signal.ITIMER_PROF, signal.SIGPROF, process_time, lambda: 1),
        _Timer(signal.ITIMER_REAL, signal.SIGALRM, monotonic, lambda: PATIENCE),
    )
    if hasattr(signal, "setitimer")
    else ()
)

_limits: list[_Limit] = []
"""The limits of the blocks that are running, from the outside in. A timer raises nothing once its
block has left this list, so no exception comes late."""

_previous: dict[int, tuple[Any, float]] = {}
"""The state that the outermost block has replaced, by signal: the handler, and the time at which
its timer would have rung by the timer's clock, or 0."""


def at_most(seconds: float) -> AbstractContextManager[None]:
    """A context manager whose block is ended by TooLong after this many seconds of CPU time.

    It uses the timers of the process: outside of the main thread, and on systems without timers,
    there is no limit. Limits nest: time in an inner block counts for the outer limit too. When the
    outer limit is over, the whole outer block ends.
    """
    if threading.current_thread() is not threading.main_thread() or not _TIMERS:
        return nullcontext()
    return _Limit(seconds)


class _Limit:
    """The time limit of one block."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._depth = 0
        self.ends: tuple[float, ...] = ()

    def __enter__(self) -> None:
        self._depth = len(_limits)
        self.ends = tuple([each.clock() + each.patience() * self._seconds for each in _TIMERS])
        _limits.append(self)
        _set_timers()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        del _limits[self._depth :]
        _set_timers()
        if isinstance(error, _OuterTooLong) and error.limit is self:
            raise self.over() from None

    def over(self) -> TooLong:
        """The exception that ends the block."""
        return TooLong(f"more than {self._seconds:g} s")


def _set_timers() -> None:
    """Set each timer to the earliest end among all limits."""
    for at, each in enumerate(_TIMERS):
        if each.signal not in _previous:
            left, _ = signal.getitimer(each.timer)
            end = each.clock() + left if left else 0.0
            _previous[each.signal] = signal.signal(each.signal, _ring), end
        if _limits:
            left = min([limit.ends[at] for limit in _limits]) - each.clock()
            signal.setitimer(each.timer, max(left, MOMENT), AGAIN)
            continue
        # A pending signal is handled before its handler is removed.
        signal.setitimer(each.timer, 0)
        handler, end = _previous.pop(each.signal)
        signal.signal(each.signal, signal.SIG_DFL if handler is None else handler)
        if end:
            signal.setitimer(each.timer, max(end - each.clock(), MOMENT))


def _ring(number: int, frame: FrameType | None) -> None:
    """Raise the exception of the limit that is over, as soon as raising is safe."""
    at = [each.signal for each in _TIMERS].index(number)
    if not _limits:
        return
    first = min(_limits, key=lambda limit: limit.ends[at])
    left = first.ends[at] - _TIMERS[at].clock()
    # A timer and its clock may differ by a few milliseconds.
    if left > 0 or _is_at_an_end(frame) or (left > -AGAIN and _would_be_lost(frame)):
        signal.setitimer(_TIMERS[at].timer, max(left, MOMENT), AGAIN)
        return
    raise first.over() if first is _limits[-1] else _OuterTooLong(first)


def _is_at_an_end(frame: FrameType | None) -> bool:
    """Whether a block is being entered or left, which an exception would leave half done."""
    if frame is not None and frame.f_code.co_filename == contextlib.__file__:
        return True
    while frame is not None:
        if frame.f_code in _ENDS:
            return True
        frame = frame.f_back
    return False


def _would_be_lost(frame: FrameType | None) -> bool:
    """Whether an exception raised here would be lost, or would switch off tracing.

    Python prints and drops exceptions in destructors, in callbacks of weak references and of the
    garbage collector, and where a function of `sys.settrace` runs because a generator is destroyed.
    An exception in such a function also ends the tracing.
    """
    called = (*gc.callbacks, sys.gettrace(), sys.getprofile())
    watchers = {getattr(each, "__code__", None) for each in called}
    while frame is not None:
        code, caller = frame.f_code, frame.f_back
        if code.co_name == "__del__" or code.co_filename == weakref.__file__ or code in watchers:
            return True
        if caller is not None and getattr(caller.f_trace, "__code__", None) is code:
            return True
        frame = caller
    return False


POLL = 1.0
"""Seconds between two checks of the guarded blocks. A block is late if two checks in a row say
so."""


class _Guarded:
    """A block that the guard thread watches.

    Attributes:
        late: whether the latest check found it late.
    """

    def __init__(self, seconds: float, message: Callable[[], str]) -> None:
        self._seconds = seconds
        self.message = message
        self.late = False
        self._depth = 0
        self._end = self._wall_end = 0.0

    def __enter__(self) -> None:
        self._end = process_time() + self._seconds
        self._wall_end = monotonic() + PATIENCE * self._seconds
        self._depth = len(_going)
        _going.append(self)

    def __exit__(self, *error: object) -> None:
        del _going[self._depth :]

    @property
    def over(self) -> bool:
        """Whether the block has taken too long by now."""
        return process_time() >= self._end or monotonic() >= self._wall_end


_going: list[_Guarded] = []
_guarded: set[int] = set()
"""Processes that have a guard thread. A forked process inherits this set, but not the thread."""


def guarded(seconds: float, message: Callable[[], str]) -> AbstractContextManager[None]:
    """A context manager that ends the process if its block takes too long, even in C code.

    For the main thread.

    If C code never returns but has released the interpreter lock, as NumPy's loops do, another
    thread writes the message to standard error and ends the process with status 1. Code that keeps
    the lock cannot be ended from within the process; pytest's faulthandler_timeout shows its place.

    Args:
        seconds: as for `at_most`, which cannot interrupt C code.
    """
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    if os.getpid() not in _guarded:
        # Thread.start never returns if the new thread dies for lack of memory.
        _thread.start_new_thread(_guard, ())
        _guarded.add(os.getpid())
    return _Guarded(seconds, message)


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


_ENDS = {
    each.__code__
    for each in (
        _Limit.__enter__,
        _Limit.__exit__,
        _Guarded.__enter__,
        _Guarded.__exit__,
        _set_timers,
    )
}
"""The code that enters and leaves a block. An exception inside it would leave the block in the
list for ever, and end the process later."""

if hasattr(os, "register_at_fork"):
    # Neither timers nor the guard are inherited.
    os.register_at_fork(after_in_child=_limits.clear)
    os.register_at_fork(after_in_child=_going.clear)
