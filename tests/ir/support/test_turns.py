"""Threads take turns, and a process forks between two turns."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from time import sleep

from abele.ir.support.turns import COMPILING, Turns, computed_once

SETTING = """
import os, signal
from threading import Barrier, Event, Thread
from time import sleep
from abele.ir.support.turns import Turns

turns, begun, done = Turns(), Event(), []

def slow():
    with turns, turns:
        begun.set(); sleep(0.2); done.append(True)

def forked(child=lambda: 0):
    number = os.fork()
    if not number:
        signal.alarm(20)
        os._exit(child())
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])

other = Thread(target=slow)
signal.alarm(60)
"""


def told(script: str) -> list[str]:
    """What a script prints, by words, in a Python of its own."""
    command = [sys.executable, "-c", SETTING + script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_one_thread_has_a_turn_at_a_time():
    turns, inside, most = Turns(), 0, 0

    def work(_: int) -> None:
        nonlocal inside, most
        with turns, turns:
            inside += 1
            most = max(most, inside)
            sleep(0.001)
            inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))
    assert most == 1


def test_a_turn_ends_with_an_error():
    turns = Turns()
    try:
        with turns:
            raise KeyError
    except KeyError:
        pass

    def begin() -> bool:
        with turns:
            return True

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(begin).result(10)


def test_a_process_does_not_wait_for_a_thread_that_has_ended_in_its_turn():
    script = (
        "other = Thread(target=Turns().__enter__); other.start(); other.join(); print(forked())"
    )
    assert told(script) == ["0"]


def test_a_process_forks_after_the_turns_of_other_threads():
    script = (
        "other.start(); begun.wait(); print(forked(lambda: len(done)), len(done)); other.join()"
    )
    assert told(script) == ["1", "1"]


def test_a_child_and_its_parent_have_turns_of_their_own():
    script = (
        "def child():\n"
        "    with turns: return 7\n"
        "other.start(); begun.wait(); print(forked(child)); slow(); other.join(); print(len(done))"
    )
    assert told(script) == ["7", "2"]


def test_a_thread_can_fork_in_its_own_turn():
    script = (
        "def child():\n"
        "    with turns: return 7\n"
        "with turns: print(forked(child))\n"
        "other.start(); other.join(); print(len(done))"
    )
    assert told(script) == ["7", "1"]


def test_two_threads_can_both_fork_in_turns():
    script = (
        "both = Barrier(2)\n"
        "def fork():\n"
        "    with Turns(): both.wait(); print(forked(), flush=True)\n"
        "threads = [Thread(target=fork) for _ in range(2)]\n"
        "[each.start() for each in threads]; [each.join() for each in threads]"
    )
    assert told(script) == ["0", "0"]


def test_no_turn_begins_while_the_process_waits_to_fork():
    """Else a process whose threads always run something would never fork."""
    script = (
        "stop = Event()\n"
        "def busy(own):\n"
        "    while not stop.is_set():\n"
        "        with own: sleep(0.002)\n"
        "threads = [Thread(target=busy, args=[Turns()]) for _ in range(4)]\n"
        "[each.start() for each in threads]; print(*[forked() for _ in range(5)]); stop.set()\n"
        "[each.join() for each in threads]"
    )
    assert told(script) == ["0"] * 5


def test_locks_that_python_takes_before_a_fork_do_not_stop_turns():
    script = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "stop = Event()\n"
        "def busy(own):\n"
        "    while not stop.is_set():\n"
        "        with own, ThreadPoolExecutor(1) as pool: pool.submit(sleep, 0.0001).result()\n"
        "threads = [Thread(target=busy, args=[Turns()]) for _ in range(4)]\n"
        "[each.start() for each in threads]; print(*[forked() for _ in range(30)]); stop.set()\n"
        "[each.join() for each in threads]"
    )
    assert told(script) == ["0"] * 30


class Counting:
    def __init__(self) -> None:
        self.calls = 0

    @computed_once
    def answer(self) -> object:
        """The answer."""
        self.calls += 1
        sleep(0.02)
        return object()


def test_threads_compute_a_property_once():
    each = Counting()
    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(lambda _: each.answer, range(4))}) == each.calls == 1
    assert Counting.answer.__doc__ == "The answer."


def test_two_threads_that_compile_and_compute_do_not_wait_for_each_other():
    """One of them has COMPILING when it asks for the property, and one has not."""

    def compile_and_ask(each: Counting) -> object:
        with COMPILING:
            sleep(0.01)
            return each.answer

    each = Counting()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(compile_and_ask, Counting())
        second = pool.submit(lambda: each.answer)
        assert first.result(10) is not second.result(10)
