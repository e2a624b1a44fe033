"""The batteries of all tasks, and how a task is proved by its own."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from time import process_time

from ..proofs import Proof
from .comparing import Battery, Differs


def battery_of(task: str) -> Battery:
    """The groups of cases of a task, by name."""
    return import_module(f".{task}", __package__).BATTERY


def proved(task: str, begin: Callable[[str], object] = lambda name: None) -> Proof:
    """What the battery of a task finds, up to the first case that fails.

    begin: called with the name of each group before its cases are computed. Raises MemoryError.
    """
    cases, start = 0, process_time()
    for name, group in battery_of(task).items():
        begin(name)
        problem = ""
        try:
            cases += group()
        except Differs as error:
            problem = str(error)
        except MemoryError:
            # No kernel is to blame.
            raise
        except Exception as error:
            # What kernels have written may break anything.
            problem = f"{type(error).__name__}: {error}"
        if problem:
            return Proof(task, cases, process_time() - start, f"{name}: {problem}")
    return Proof(task, cases, process_time() - start)
