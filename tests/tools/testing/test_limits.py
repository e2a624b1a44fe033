"""Work that does not end is cut off, by the time that it takes of the processor."""

import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType

import pytest

from abele.tools.testing import limits
from abele.tools.testing.limits import TooLong, at_most, guarded


def busy(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_block_that_takes_too_long_is_cut_off():
    with pytest.raises(TooLong), at_most(0.05):
        busy(5)


def test_waiting_does_not_count_as_cpu_time():
    begin = time.monotonic()
    with at_most(0.05):
        time.sleep(0.1)
    assert time.monotonic() - begin >= 0.1


def test_a_block_that_only_waits_is_cut_off_later(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "PATIENCE", 2)
    with pytest.raises(TooLong), at_most(0.05):
        time.sleep(5)


def test_an_outer_limit_goes_on_after_an_inner_one():
    begin = time.process_time()
    with pytest.raises(TooLong), at_most(0.3):
        for _ in range(100):
            with at_most(0.2):
                busy(0.1)
    assert time.process_time() - begin < 2


def test_the_end_of_an_outer_limit_is_not_taken_for_that_of_an_inner_one():
    inner = 0
    with pytest.raises(TooLong, match=r"more than 0\.1 s"), at_most(0.1), at_most(3):
        try:
            with at_most(2):
                busy(5)
        except TooLong:
            inner += 1
    assert inner == 0


class Slow:
    """Takes its time to go."""

    def __del__(self) -> None:
        busy(0.1)


def test_an_alarm_that_python_would_not_hear_rings_again():
    # What is raised while something is forgotten is printed, and forgotten too.
    with pytest.raises(TooLong), at_most(0.05):
        Slow()
        busy(5)


def test_an_alarm_rings_again_that_came_while_garbage_was_looked_for():
    def watch(phase: str, info: dict[str, int]) -> None:
        busy(0.1)

    # Looking through a million objects of earlier tests would take seconds.
    gc.freeze()
    gc.callbacks.append(watch)
    try:
        with pytest.raises(TooLong), at_most(0.05):
            gc.collect()
            busy(5)
    finally:
        gc.callbacks.remove(watch)
        gc.unfreeze()


def test_an_alarm_that_comes_while_a_line_is_traced_rings_again(
    monkeypatch: pytest.MonkeyPatch,
):
    """A generator that is destroyed is traced too, and what is raised there is lost."""
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)

    def at_line(frame: FrameType, event: str, argument: object) -> object:
        sum(range(20))
        return at_line

    def endless() -> Iterator[int]:
        while True:
            yield 0

    before = sys.gettrace()
    for _ in range(10):
        sys.settrace(at_line)
        try:
            with pytest.raises(TooLong), at_most(0.02):
                while True:
                    next(endless())
            assert sys.gettrace() is at_line
        finally:
            sys.settrace(before)
    assert lost == []


class Endless:
    """Never ends being forgotten, unless somebody ends it."""

    def __del__(self) -> None:
        busy(60)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_destructor_that_hangs_is_cut_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "AGAIN", 0.1)
    with pytest.raises(TooLong), at_most(0.05):
        Endless()
        busy(60)


class Swallows:
    """Swallows the first exceptions that are raised while it is busy."""

    def __init__(self, times: int) -> None:
        self._times = times

    def wait(self) -> None:
        while self._times:
            with suppress(TooLong):
                self._times -= 1
                busy(60)


def test_an_alarm_that_somebody_has_swallowed_rings_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "AGAIN", 0.05)
    begin = time.process_time()
    with pytest.raises(TooLong), at_most(0.05):
        Swallows(2).wait()
        busy(60)
    assert time.process_time() - begin < 5


def test_no_alarm_comes_after_its_block(monkeypatch: pytest.MonkeyPatch):
    """Each of thousands of blocks ends at about the time of its alarm.

    A kernel that counts time by ticks rings up to a tick late, and so never in a block that ends
    before its limit. The last block of each round outlasts the limit by more than a tick.
    """
    monkeypatch.setattr(limits, "AGAIN", 0.002)
    cut, end = 0, time.process_time() + 1
    while time.process_time() < end:
        try:
            with at_most(5):
                for length in (*(0.0009,) * 19, 0.03):
                    with at_most(0.001):
                        busy(length)
        except TooLong:
            cut += 1
        # Here an exception that comes late would be nobody's.
        busy(0.001)
    assert cut
    assert limits._limits == []
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_block_that_was_late_once_does_not_end_the_process_later(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(limits, "POLL", 0.01)
    end = time.process_time() + 0.5
    while time.process_time() < end:
        with suppress(TooLong), at_most(0.002):
            while True:
                with guarded(10, lambda: "stuck"):
                    pass
        assert limits._going == []


def test_the_handler_and_the_timer_of_somebody_else_come_back():
    rung: list[int] = []
    before = signal.signal(signal.SIGPROF, lambda number, frame: rung.append(number))
    signal.setitimer(signal.ITIMER_PROF, 0.1)
    try:
        with pytest.raises(TooLong), at_most(0.05):
            busy(5)
        assert rung == []
        busy(0.3)
        assert rung == [signal.SIGPROF]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_a_forked_process_has_no_limit_of_its_parent():
    with at_most(60), guarded(60, lambda: "stuck"):
        child = os.fork()
        if not child:
            os._exit(len(limits._limits) + len(limits._going))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
