"""Control over the garbage collector, which restores its state."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from functools import wraps

import pytest

from abele.ir.support.garbage import (
    HELD_BYTES,
    collect_if_grown,
    collected_seldom,
    collection_paused,
    count_held,
    heap_frozen,
    heap_frozen_after,
)


def alone(test: Callable[[], None]) -> Callable[[], None]:
    """Run a test in a process of its own, whose heap is small.

    It looks at all objects, or makes as many as there are. A worker of the tests has millions.
    """

    @wraps(test)
    def run() -> None:
        script = (
            f"from runpy import run_path; run_path({__file__!r})[{test.__name__!r}].__wrapped__()"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    return run


class Cycle:
    def __init__(self) -> None:
        self.me = self
        self.others: list[Cycle] = []


def test_collection_is_off_inside_and_on_again_after_an_error():
    with pytest.raises(ValueError, match="inside"), collection_paused():
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()


def test_collection_that_was_off_stays_off():
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@alone
def test_objects_made_without_collection_are_in_the_oldest_generation():
    with collection_paused():
        made = Cycle()
    assert any(made is each for each in gc.get_objects(generation=2))
    gc.freeze()
    try:
        with collection_paused():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


@alone
def test_garbage_of_earlier_work_does_not_pile_up():
    many = len(gc.get_objects())
    left: list[weakref.ref[Cycle]] = []
    for _ in range(6):
        collect_if_grown()
        with collection_paused():
            made = Cycle()
            made.others = [Cycle() for _ in range(many)]
        left.append(weakref.ref(made))
        del made
    assert sum(reference() is not None for reference in left) <= 2


@alone
def test_a_few_objects_that_hold_much_memory_are_collected():
    collect_if_grown()
    with collection_paused():
        left = weakref.ref(Cycle())
        count_held(HELD_BYTES + 1)
    assert left() is not None
    collect_if_grown()
    assert left() is None


@alone
def test_nothing_is_collected_if_collection_is_off():
    gc.disable()
    try:
        with collection_paused():
            made = [Cycle() for _ in range(len(gc.get_objects()))]
        left = weakref.ref(made[0])
        del made
        collect_if_grown()
        assert left() is not None
    finally:
        gc.enable()
        gc.collect()


@alone
def test_a_frozen_heap_keeps_old_garbage_and_collects_new():
    before = Cycle()
    old = weakref.ref(before)
    with heap_frozen():
        del before
        new = weakref.ref(Cycle())
        gc.collect()
        assert new() is None
        assert old() is not None
    gc.collect()
    assert old() is None


@alone
def test_objects_frozen_by_others_stay_frozen():
    gc.freeze()
    try:
        with heap_frozen():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
    with pytest.raises(ValueError, match="inside"), heap_frozen():
        raise ValueError("inside")
    assert not gc.get_freeze_count()


@alone
def test_objects_frozen_after_a_block_are_not_collected():
    left = Cycle()
    reference = weakref.ref(left)
    try:
        with pytest.raises(SystemExit), heap_frozen_after():
            raise SystemExit
        del left
        gc.collect()
        assert reference() is not None
    finally:
        gc.unfreeze()


def test_garbage_is_collected_as_often_as_before_after_the_block():
    before = gc.get_threshold()
    with collected_seldom():
        assert gc.get_threshold()[0] >= max(20_000, before[0])
    assert gc.get_threshold() == before
