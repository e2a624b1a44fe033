"""Finds the lines of the tested passes that programs reach.

A pattern is a row of conditions. A program that reaches a later line of it than all programs before
is worth changing a little. So lines are watched while passes run. From Python 3.12 on, each line is
reported once and costs nothing after that. Python 3.11 calls a function for each call that a pass
makes; so if programs reach no new lines for a while, only some of them are watched.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any

from ....ir.upstream import ModulePass
from .named import Home
from .run import is_abeles

PATIENT = 24
"""The number of programs in a row without new lines after which half as many are watched."""
SELDOM = 16
"""At least one program in this many is watched, for each pass under test."""
OF_PIPELINE = 2
"""Where tracing costs time, one program in this many is watched for each pass of a pipeline."""
MOST_EVENTS = 2000
"""The most lines of a function that are reported on Python 3.11 while a pass runs; a loop may
execute many more."""
OWN_PACKAGE = "abele.passes"
"""The modules of this package are under test with those of abele's passes that import them."""

_NAME = "abele"


class Reached:
    """Watches the passes under test, and counts the lines reached for the first time.

    Nothing is watched in threads, or while a debugger or a coverage tool is at work.

    Attributes:
        passes: the passes under test.
    """

    def __init__(self, passes: Iterable[ModulePass]) -> None:
        self.passes = tuple(passes)
        self.files = {file for each in self.passes for file in _files_of(each)}
        self.way = _WAY(self)
        self.lines = 0
        self.of: dict[CodeType, set[int] | None] = {}
        self._counted = 0
        self._idle = 0
        self._least = self.way.share(len(self.passes))
        self._every = self._least
        self._turn = 0

    def has_news(self) -> bool:
        """Whether lines were reached for the first time since the last call.

        Call it once per program.
        """
        news = self.lines > self._counted
        self._counted = self.lines
        if self._turn % self._every == 0:
            self._idle = 0 if news else self._idle + 1
        if news:
            self._every = self._least
        elif self._idle >= PATIENT:
            self._idle, self._every = 0, min(2 * self._every, SELDOM * self._least)
        self._turn += 1
        return news

    def session(self) -> AbstractContextManager[None]:
        """A context manager in which passes are watched, one after another."""
        return self.way.session()

    @contextmanager
    def watching(self, each: ModulePass) -> Generator[None]:
        """Watch a pass inside the `with` block, if it is under test."""
        if not self.files or self._turn % self._every or not self._is_tested(each):
            yield
            return
        with self.way.watching():
            yield

    def _is_tested(self, each: ModulePass) -> bool:
        # A pipeline makes its passes anew for each machine.
        return any(type(each) is type(other) for other in self.passes)

    def left(self, code: CodeType) -> set[int] | None:
        """The unreached lines of a function; None if it belongs to no pass."""
        if code not in self.of:
            own = code.co_filename in self.files
            lines = {line for _, _, line in code.co_lines() if line} if own else None
            self.of[code] = lines
        return self.of[code]

    def reach(self, code: CodeType, line: int) -> None:
        """Record a reached line."""
        left = self.left(code)
        if left and line in left:
            left.discard(line)
            self.lines += 1


def _files_of(each: ModulePass) -> set[str]:
    """The files of a pass's code: its module, and other modules that belong to the pass."""
    first = sys.modules.get(type(each).__module__)
    if is_abeles(each):
        return {str(m.__file__) for m in _modules(first, _is_of_passes)}
    home = Home.of(type(each))
    files = {str(m.__file__) for m in _modules(first, lambda m: home.has(m.__name__, m.__file__))}
    for cls in type(each).__mro__:
        code: CodeType | None = getattr(vars(cls).get("apply"), "__code__", None)
        if code is not None and cls.__module__ == type(each).__module__:
            files.add(code.co_filename)
    return files


def _is_of_passes(module: ModuleType) -> bool:
    return module.__name__.startswith(OWN_PACKAGE)


def _modules(
    first: ModuleType | None, belongs: Callable[[ModuleType], bool]
) -> Iterable[ModuleType]:
    """A module and the modules that belong to a pass among its direct and indirect imports."""
    left, seen = [first], set[str]()
    while left:
        module = left.pop()
        if module is None or not getattr(module, "__file__", None) or module.__name__ in seen:
            continue
        if module is not first and not belongs(module):
            continue
        seen.add(module.__name__)
        yield module
        for value in tuple(vars(module).values()):
            home = value.__name__ if isinstance(value, ModuleType) else None
            home = home or getattr(value, "__module__", None)
            if isinstance(home, str) and home not in seen:
                left.append(sys.modules.get(home))


class _Traced:
    """Watches lines with sys.settrace, for Python 3.11."""

    def __init__(self, reached: Reached) -> None:
        self.reached = reached

    def share(self, passes: int) -> int:
        """The interval of watching: one program in this many is watched at first."""
        return 1 if passes == 1 else OF_PIPELINE * passes

    @contextmanager
    def session(self) -> Generator[None]:
        """A context manager around several `watching` blocks."""
        yield

    @contextmanager
    def watching(self) -> Generator[None]:
        """A context manager that watches lines."""
        if sys.gettrace() is not None:
            yield
            return
        left, reach = self.reached.left, self.reached.reach
        seen: Counter[CodeType] = Counter()

        def follows(code: CodeType) -> bool:
            """Whether a function has unreached lines and is not in a long loop."""
            return bool(left(code)) and seen[code] < MOST_EVENTS

        def at_line(frame: FrameType, event: str, argument: Any) -> Any:
            code = frame.f_code
            if event == "line":
                seen[code] += 1
                reach(code, frame.f_lineno)
            # Returning None would not stop the reports.
            frame.f_trace_lines = follows(code)
            return at_line

        def at_call(frame: FrameType, event: str, argument: Any) -> Any:
            return at_line if follows(frame.f_code) else None

        sys.settrace(at_call)
        try:
            yield
        finally:
            sys.settrace(None)


class _Monitored:
    """Watches lines with sys.monitoring, which reports each line once."""

    def __init__(self, reached: Reached) -> None:
        self.reached = reached
        self.monitoring: Any = getattr(sys, "monitoring")  # noqa: B009
        self.tool: int | None = None

    def share(self, passes: int) -> int:
        """The interval of watching: one program in this many is watched at first."""
        return 1

    @contextmanager
    def session(self) -> Generator[None]:
        """A context manager around several `watching` blocks.

        Nothing is watched if Python has no free number for one more monitoring tool.
        """
        monitoring = self.monitoring
        tool = next((i for i in range(6) if monitoring.get_tool(i) is None), None)
        if tool is None:
            yield
            return
        events = monitoring.events
        left, reach, disable = self.reached.left, self.reached.reach, monitoring.DISABLE

        def at_start(code: CodeType, offset: int) -> Any:
            if left(code):
                monitoring.set_local_events(tool, code, events.LINE)
            return disable

        def at_line(code: CodeType, line: int) -> Any:
            reach(code, line)
            return disable

        monitoring.use_tool_id(tool, _NAME)
        monitoring.register_callback(tool, events.PY_START, at_start)
        monitoring.register_callback(tool, events.LINE, at_line)
        # Events that an earlier session has disabled are reported again.
        monitoring.restart_events()
        self.tool = tool
        try:
            yield
        finally:
            self.tool = None
            monitoring.set_events(tool, 0)
            for code, lines in self.reached.of.items():
                if lines is not None:
                    monitoring.set_local_events(tool, code, 0)
            monitoring.free_tool_id(tool)

    @contextmanager
    def watching(self) -> Generator[None]:
        """A context manager that watches the functions that start in it."""
        if self.tool is None:
            yield
            return
        self.monitoring.set_events(self.tool, self.monitoring.events.PY_START)
        try:
            yield
        finally:
            self.monitoring.set_events(self.tool, 0)


_WAY = _Monitored if hasattr(sys, "monitoring") else _Traced
