"""Progress messages of a part of the work."""

from __future__ import annotations

from ....ir.support.on_step import OnStep


def within(on_step: OnStep, what: str) -> OnStep:
    """A function that shows messages as steps of a larger task."""
    return lambda text: on_step(f"{what}: {text}")
