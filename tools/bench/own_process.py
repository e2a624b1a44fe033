"""Measurements in processes of their own, so that one does not affect the next."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from ..executors.limits import THREAD_VARIABLES

T = TypeVar("T")


def in_own_process(function: Callable[..., T], *arguments: object) -> T:
    """A function's result, computed in a new process with one thread per library."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
