"""Locks of this process: threads take turns, and the process never forks during a turn.

A forked process has a copy of the forking thread only. Work that other threads have half done stays
half done in it, and their locks stay locked. So a fork waits until all other threads have ended
their turns, and turns that would begin meanwhile wait for the fork.
"""

from __future__ import annotations

# These modules take locks of their own before a fork. Python calls the last registered function
# first, so our wait for other threads, which may need these locks, must be registered after them.
import concurrent.futures.thread
import logging
import os
import sys
from collections.abc import Callable
from threading import Condition, RLock, get_ident
from typing import Any, Generic, Self, TypeVar, overload

LOOK_AGAIN = 0.1
"""Seconds after which a fork looks whether a thread that it waits for has ended."""


class _Door:
    """Counts the threads that are in a turn, and admits no thread while the process forks.

    inside: the number of nested turns of each thread, by thread number. Only the thread itself
    changes its entry, and it takes the lock only to begin its outermost turn and to end it.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._inside: dict[int, int] = {}
        self._forking: set[int] = set()

    def enter(self) -> None:
        """Begin a turn. A thread that is already in a turn never waits."""
        thread = get_ident()
        depth = self._inside.get(thread, 0)
        if depth:
            self._inside[thread] = depth + 1
            return
        with self._lock:
            while self._forking - {thread}:
                self._changed.wait()
            self._inside[thread] = 1

    def leave(self) -> None:
        """End a turn."""
        thread = get_ident()
        depth = self._inside[thread] - 1
        if depth:
            self._inside[thread] = depth
            return
        with self._lock:
            del self._inside[thread]
            if self._forking:
                self._changed.notify_all()

    def begin_fork(self) -> None:
        """Wait until no other thread is in a turn, and keep the lock until the fork is done."""
        thread = get_ident()
        self._lock.acquire()
        self._forking.add(thread)
        while self._others():
            self._changed.wait(LOOK_AGAIN)

    def _others(self) -> set[int]:
        """The threads in turns that a fork has to wait for.

        Two threads that both fork in a turn would wait for each other. A thread that has ended in
        a turn never leaves it.
        """
        others = self._inside.keys() - self._forking
        alive = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        return others & alive.keys()

    def end_fork(self) -> None:
        """Admit other threads again."""
        self._forking.discard(get_ident())
        self._changed.notify_all()
        self._lock.release()

    def end_fork_in_child(self) -> None:
        """In the forked process, forget the threads that it does not have."""
        depth = self._inside.get(get_ident())
        self.__init__()
        if depth is not None:
            self._inside[get_ident()] = depth


_DOOR = _Door()

_BEFORE = concurrent.futures.thread, logging
"""Modules that register functions for forks; they must be imported before this one registers its
own.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_DOOR.begin_fork,
        after_in_parent=_DOOR.end_fork,
        after_in_child=_DOOR.end_fork_in_child,
    )


class Turns:
    """A lock: `with turns:` is a turn, which one thread has at a time.

    A thread may begin a turn inside its own turn. A thread that needs several locks takes them in
    this order: that of a session, `COMPILING`, that of an executable, that of kernels.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        """Begin a turn."""
        _DOOR.enter()
        try:
            self._lock.acquire()
        except BaseException:
            _DOOR.leave()
            raise

    def __exit__(self, *_: object) -> None:
        """End the turn."""
        self._lock.release()
        _DOOR.leave()


COMPILING = Turns()
"""The turns of threads that parse, compile, load or price programs.

Passes and xDSL have state that all programs share: tables of types and definitions, the rules of
users, the pause of Python's garbage collector. Python runs one thread at a time anyway, so waiting
costs no time in all.
"""


T = TypeVar("T")


class computed_once(Generic[T]):
    """A property that is computed once, in a turn of COMPILING.

    The property of functools has a lock of its own in Python 3.11, so two threads could wait for
    each other: one has that lock and needs COMPILING, and one has COMPILING and needs that lock.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: object | None, kind: type) -> Self | T:
        """The value, which the object keeps under the name of the property."""
        if owner is None:
            return self
        known = vars(owner)
        with COMPILING:
            if self._name not in known:
                known[self._name] = self._compute(owner)
            return known[self._name]
