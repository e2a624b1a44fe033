"""Callbacks for the steps of long work, such as showing progress."""

from __future__ import annotations

from collections.abc import Callable

OnStep = Callable[[str], None]
"""A function that is called with each step of the work, in a few words."""


def ignore_step(_: str) -> None:
    """Do nothing at a step."""
