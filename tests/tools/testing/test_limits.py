"""Work that does not end is cut off, by the time that it takes of the processor."""

import gc
import time

import pytest

from abele.tools.testing import limits
from abele.tools.testing.limits import TooLong, at_most


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
