"""Progress messages."""

from collections.abc import Callable

Tell = Callable[[str], None]
"""Takes a short message about the current step."""


def silent(_: str) -> None:
    """Show nothing."""


def within(tell: Tell, what: str) -> Tell:
    """A function that shows messages as steps of a larger task."""
    return lambda text: tell(f"{what}: {text}")
