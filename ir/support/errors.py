"""Errors that are not bugs of abele: bad input, and programs too large for machine or host."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from textwrap import fill


def one_line(error: BaseException) -> str:
    """The type of an error and the first line of its message."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


MOST_CHARACTERS = 2_000
"""The longest line of a message. A name in a damaged file can fill many pages."""


def shortened(line: str) -> str:
    """A line without its middle if it is longer than MOST_CHARACTERS."""
    left_out = len(line) - MOST_CHARACTERS
    if left_out <= 0:
        return line
    half = MOST_CHARACTERS // 2
    return f"{line[:half]} [... {left_out:,} characters ...] {line[-half:]}"


def short_notes(error: BaseException) -> tuple[str, ...]:
    """The notes added to an error, such as the rule that raised it.

    Notes of several lines are left out: xDSL's walker prints the whole module in one.
    """
    notes: tuple[str, ...] = tuple(getattr(error, "__notes__", ()))
    return tuple(note for note in notes if "\n" not in note)


def one_line_with_notes(error: BaseException) -> str:
    """An error in one line, with its short notes."""
    return "; ".join([one_line(error), *short_notes(error)])


class InputError(ValueError):
    """The user's input is wrong. The message names the place and what is allowed there."""


class DoesNotFit(Exception):
    """A program needs more of a resource than the machine has.

    Attributes:
        what: what needs it, by the user's name for it.
        needed, available: in units.
        tile: the tile that lacks it, or None if no single tile does.
        remedy: what to change, or "".
        details: what takes the resource; each becomes a paragraph below the message.
    """

    def __init__(
        self,
        what: str,
        needed: int,
        available: int,
        *,
        units: str = "bytes",
        tile: int | None = None,
        remedy: str = "",
        details: Sequence[str] = (),
    ) -> None:
        super().__init__(what, needed, available)
        self.what = what
        self.needed = needed
        self.available = available
        self.units = units
        self.tile = tile
        self.remedy = remedy
        self.details = tuple(details)

    def __str__(self) -> str:
        where = "" if self.tile is None else f"tile {self.tile}: "
        what = f"{where}{self.what} needs {self.needed} {self.units}, {self.available} available"
        if not self.details:
            return f"{what}; {self.remedy}" if self.remedy else what
        return "\n".join([what, *map(_paragraph, filter(None, (*self.details, self.remedy)))])


def _paragraph(text: str) -> str:
    """A text indented and wrapped at 100 columns. Names stay whole."""
    return fill(
        text,
        100,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


class NotEnoughMemory(MemoryError):
    """This host has too little memory. The message names the task: "reading net.onnx"."""


@contextmanager
def naming_memory_errors(what: str) -> Generator[None]:
    """Turn a MemoryError raised in the block into NotEnoughMemory(what).

    A NotEnoughMemory passes through unchanged.
    """
    try:
        yield
    except NotEnoughMemory:
        raise
    except MemoryError as error:
        raise NotEnoughMemory(what) from error
