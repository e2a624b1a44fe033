"""Signals that end a process, as exceptions: what was begun is put away, as it is for Ctrl-C."""

from __future__ import annotations

import os
import signal
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP)


def end_by_exception() -> None:
    """Let the signals that end this process raise SystemExit, of 128 and the signal's number.

    One that is ignored stays so, as nohup wants. Processes forked later end at once, as before:
    who waits for them may wait until native code has returned.
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
