"""How many threads a run may use: all cores of this process, unless the user says otherwise."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

from ...ir.support.errors import InputError

VARIABLE = "ABELE_THREADS"
"""The environment variable that says how many threads a run uses."""

LONGEST = 9
"""Digits of a number of threads. Python takes long to read more."""

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""Of this process's control group: microseconds of processor time, or `max`, per period."""

UNLIMITED = 1 << 20
"""More processors than any host has."""


@cache
def cores() -> int:
    """The processors that this process may use, at least one.

    A control group may allow fewer than the system has, such as two and a half: that is three.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min(count, allowed(CPU_MAX)))


def allowed(path: Path) -> int:
    """The processors that a control group allows; UNLIMITED if it has no limit."""
    try:
        quota, period = path.read_text().split()
        return math.ceil(int(quota) / int(period)) if quota != "max" else UNLIMITED
    except (OSError, ValueError, ZeroDivisionError):
        return UNLIMITED


def thread_count(text: str, name: str) -> int:
    """The number of threads that an option or a variable of this name says, at most the cores.

    Raises InputError unless it is a whole number from 1 on.
    """
    plain = text.strip()
    if not (plain.isascii() and plain.isdigit() and plain.strip("0")):
        raise InputError(f"{name}: {text[:40]!r} threads; need a whole number from 1 on")
    return min(int(plain) if len(plain.lstrip("0")) <= LONGEST else cores(), cores())


def default_threads() -> int:
    """The number of threads that ABELE_THREADS says; without it, or if it is empty, all cores.

    Raises InputError.
    """
    given = os.environ.get(VARIABLE, "")
    return thread_count(given, VARIABLE) if given.strip() else cores()
