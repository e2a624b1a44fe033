# pyright: basic
"""What the host's vector units can do, and how kernels are compiled for them. Needs numba."""

from __future__ import annotations

from typing import Any, cast

from llvmlite import binding
from numba import config

from .tables import LANES

OPTIONS = {"error_model": "numpy", "boundscheck": False, "nogil": True}
"""Options of every kernel. They release Python's lock, and `Threads` makes one call at a time."""


def _has_wide_vectors():
    """Whether kernels may use vectors of 512 bits: by numba's settings, else by the host."""
    set_ = cast(Any, config)
    if set_.CPU_FEATURES is None and set_.CPU_NAME in (None, "host"):
        return bool(binding.get_host_cpu_features().get("avx512f"))
    return "+avx512f" in (set_.CPU_FEATURES or "").split(",")


WIDE = _has_wide_vectors()

ROWS, VECTORS = (12, 2) if WIDE else (6, 1)
"""The tile of results that stays in registers: its rows, and the vectors of each row."""

COLUMNS = VECTORS * LANES
