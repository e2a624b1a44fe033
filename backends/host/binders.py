"""Chooses a binder."""

from __future__ import annotations

from ..evaluate.binder import Binder
from .fast import FastBinder
from .fusion import FusedBinder
from .load import has_kernels
from .switch import is_wanted


def best_binder(is_watched: bool = False) -> type[Binder]:
    """The fastest binder of this host.

    Args:
        is_watched: whether the machine has observers, which may read every byte between supersteps.
    """
    # Kernels need those that share work among threads.
    if not is_wanted() or not has_kernels("sharing"):
        return Binder
    return FastBinder if is_watched else FusedBinder
