"""The number of threads of a run: all cores of this process, unless the user sets another
number."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

from ...ir.support.errors import InputError

VARIABLE = "ABELE_THREADS"
"""The environment variable that sets the number of threads of a run."""

LONGEST = 9
"""The most digits of a number of threads, because Python parses long numbers slowly."""

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""The file with the limit of this process's control group: microseconds of processor time per
period, or `max`.
"""

UNLIMITED = 1 << 20
"""More processors than any host has."""


@cache
def cores() -> int:
    """The number of processors that this process may use, at least one.

    A control group may allow fewer than the system has, for instance 2.5, which counts as three.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min(count, allowed(CPU_MAX)))


def allowed(path: Path) -> int:
    """The number of processors that a control group allows; UNLIMITED if it has no limit."""
    try:
        quota, period = path.read_text().split()
        return math.ceil(int(quota) / int(period)) if quota != "max" else UNLIMITED
    except (OSError, ValueError, ZeroDivisionError):
        return UNLIMITED


def thread_count(text: str, name: str) -> int:
    """The number of threads in the text of an option or variable, but at most the number of cores.

    Raises InputError unless it is a whole number from 1 on.
    """
    plain = text.strip()
    if not (plain.isascii() and plain.isdigit() and plain.strip("0")):
        raise InputError(f"{name}: {text[:40]!r} threads; need a whole number from 1 on")
    return min(int(plain) if len(plain.lstrip("0")) <= LONGEST else cores(), cores())


def default_threads() -> int:
    """The number of threads that ABELE_THREADS sets; all cores if it is missing or empty.

    Raises InputError.
    """
    given = os.environ.get(VARIABLE, "")
    return thread_count(given, VARIABLE) if given.strip() else cores()
