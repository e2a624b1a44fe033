"""Predicted cycles of an exchange whose schedule is known.

Only what a phase takes beside its schedule is predicted. So these rows test that constant, and say
nothing about orders of messages.
"""

from __future__ import annotations

from ....backends.target import Target
from .cases import Schedule


def schedule(case: Schedule, target: Target) -> dict[str, float]:
    """The cycles from the entry of the last tile to the exit of the last one."""
    return {"schedule": float(case.cycles), "phase": float(target.exchange.phase_cycles)}
