"""Choose how many tiles of each chip are kept aside for the host, by the items a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from ...backends.target import Target
from ...ir.support.deferred import deferred
from ...ir.support.errors import DoesNotFit, InputError
from .executable import MACHINE, Executable
from .request import AUTO_IO

with deferred(__name__):
    from ..importers.notes import read_notes, write_notes

LEAST_SHARE = 64
"""The first number to try is a chip's tiles divided by this. Assumed: with fewer, copies from and
to these tiles take longer than the link does."""


def read_io_tiles(text: str | None) -> int | Literal["auto"] | None:
    """The number of I/O tiles that a text asks for. Raises InputError."""
    if text is None or text == AUTO_IO:
        return None if text is None else "auto"
    if not (text.isascii() and text.isdecimal() and len(text) < 8 and int(text)):
        raise InputError(f"--io-tiles {text}; need a number from 1 up, or {AUTO_IO}")
    return int(text)


def numbers(target: Target) -> Iterator[int]:
    """The numbers of I/O tiles of each chip to try: few first, and up to a quarter of a chip."""
    number = max(target.tiles_per_chip // LEAST_SHARE, 1)
    while number <= target.tiles_per_chip // 4:
        yield number
        number *= 2


def with_best_io_tiles(
    compile_with: Callable[[int], Executable],
    tell: Callable[[Iterable[str]], None],
) -> Executable:
    """The program that handles the most items a second, of those with some numbers of I/O tiles.

    More are tried as long as the rate grows. Without any, all tiles compute, but transfers add to
    the time of a run.

    Args:
        compile_with: compiles the program with so many I/O tiles. Raises DoesNotFit and InputError.
        tell: takes a note about the choice, which the program gets, too.
    """
    best = compile_with(0)
    rates: dict[int, float] = {0: _rate(best)}
    for number in numbers(best.target):
        try:
            made = compile_with(number)
        except (DoesNotFit, InputError):
            continue
        rates[number] = _rate(made)
        if rates[number] <= _rate(best):
            break
        best = made
    shown = ", ".join(f"{rate:,.0f} with {number}" for number, rate in rates.items())
    note = f"{best.target.io_tiles} I/O tiles of each chip: items a second are {shown}"
    module = best.module_at(MACHINE)
    write_notes(module, (*read_notes(module), note))
    tell((note,))
    return best


def _rate(exe: Executable) -> float:
    return float(exe.profile["items_per_s"])
