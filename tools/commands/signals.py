"""Turn signals that end the process into exceptions, so that it cleans up as it does for Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP)


def end_by_exception() -> None:
    """Make SIGTERM and SIGHUP raise SystemExit with code 128 plus the signal's number.

    A signal that is ignored stays ignored, as nohup expects. Processes forked later still end at
    once: an exception would wait until their native code returns, and so would their parent.
    """
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    os.register_at_fork(after_in_child=_restore)


def _end(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def _restore() -> None:
    for number in ENDING:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def delayed() -> Generator[None]:
    """A block that Ctrl-C and ending signals do not interrupt: they take effect when it ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        arrived.append(number)

    noticed = [e for e in (signal.SIGINT, *ENDING) if signal.getsignal(e) is not signal.SIG_IGN]
    before = {each: signal.signal(each, note) for each in noticed}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])
