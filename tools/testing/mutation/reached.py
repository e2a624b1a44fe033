"""Line coverage of a few files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any


def reached_lines(run: Callable[[], None], files: Collection[str]) -> dict[str, set[int]]:
    """The lines that `run` executes, by file path.

    Code in other files is slowed down only at function calls.
    """
    found: dict[str, set[int]] = {file: set() for file in files}

    def line(frame: FrameType, event: str, value: Any) -> Any:
        if event == "line":
            found[frame.f_code.co_filename].add(frame.f_lineno)
        return line

    def call(frame: FrameType, event: str, value: Any) -> Any:
        return line if frame.f_code.co_filename in found else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        run()
    finally:
        sys.settrace(before)
    return found
