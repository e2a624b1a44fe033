"""A line that shows what a long command is doing."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console

from ..driver.on_step import OnStep


@contextmanager
def progress() -> Generator[OnStep]:
    """A function that shows a step of the work on standard error; silent unless on a terminal."""
    terminal = Console(stderr=True)
    if terminal.is_terminal:
        with terminal.status("") as status:
            yield status.update
    else:
        yield lambda _: None
