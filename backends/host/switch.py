"""Whether compiled kernels are used. Without them, NumPy computes the same bytes."""

from __future__ import annotations

import os
from importlib.util import find_spec

SWITCH = "ABELE_FAST"
"""The environment variable that turns kernels off if it is 0."""


def is_wanted() -> bool:
    """Whether to use kernels: if numba is installed, and the switch is not off."""
    return os.environ.get(SWITCH, "1") != "0" and find_spec("numba") is not None
