"""The battery of each task, and the proof of a task."""

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
    """The proof of a task: the result of its battery, up to the first case that fails.

    Raises MemoryError.

    Args:
        begin: called with the name of each group before its cases are computed.
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
            # This is not the fault of a kernel.
            raise
        except Exception as error:
            # A wrong kernel may have overwritten anything, so any error may follow.
            problem = f"{type(error).__name__}: {error}"
        if problem:
            return Proof(task, cases, process_time() - start, f"{name}: {problem}")
    return Proof(task, cases, process_time() - start)
