"""The batteries of all tasks, and how a task is proved by its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from time import process_time

from .comparing import Battery, Differs

NEEDS: Mapping[str, Sequence[str]] = {
    "sharing": (),
    "products": ("sharing",),
    "chains": ("sharing",),
    "functions": ("sharing", "chains"),
    "copies": ("sharing",),
    "routes": ("sharing",),
    "lookups": ("sharing",),
    "bounds": (),
    "equality": (),
}
"""All tasks of kernels, each with those that it is called by, which are proved before it."""


def battery_of(task: str) -> Battery:
    """The groups of cases of a task, by name."""
    return import_module(f".{task}", __package__).BATTERY


def prove(task: str, begin: Callable[[str], object]) -> tuple[int, float]:
    """Make all cases of a task's battery; returns how many there are, and the CPU seconds.

    begin: called with the name of each group before its cases are made.
    Raises Differs, whose message names the case.
    """
    count, start = 0, process_time()
    for name, group in battery_of(task).items():
        begin(name)
        try:
            count += group()
        except Differs:
            raise
        except Exception as error:
            # What kernels have written may break anything.
            raise Differs(f"{type(error).__name__}: {error}") from error
    return count, process_time() - start
