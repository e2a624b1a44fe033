"""What a worker may use."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

from ...backends.host.cores import VARIABLE
from ...backends.host.threads import THREADS

THREAD_VARIABLES = (VARIABLE, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""The environment variables that set the number of threads of abele and libraries."""


@dataclass(frozen=True)
class Limits:
    """What each worker may use.

    Attributes:
        seconds: wall-clock time for one task; None for no limit.
        memory_bytes: of address space; None for no limit. A task that needs more fails with a
            MemoryError.
        tasks: after as many, another process takes the place of one; None for no limit. With 1, no
            task finds what another one has left in memory.
    """

    seconds: float | None = None
    memory_bytes: int | None = None
    tasks: int | None = None


def one_thread(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a process in which each library uses one thread."""
    return environment | dict.fromkeys(THREAD_VARIABLES, "1")


def set_limits(memory_bytes: int | None) -> None:
    """Set the limits of this process, which is a worker: its memory, and one thread."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    THREADS.count = 1
    if memory_bytes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
