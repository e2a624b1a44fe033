"""Telling what is going on."""

from collections.abc import Callable

Tell = Callable[[str], None]
"""Told what is going on, in a few words."""


def silent(_: str) -> None:
    """Say nothing."""


def within(tell: Tell, what: str) -> Tell:
    """Tell it as a part of something."""
    return lambda text: tell(f"{what}: {text}")
