"""Choose how many tiles of each chip are kept aside for the host, by the items a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from ...backends.target import Target
from ...ir.support.errors import DoesNotFit, InputError
from .executable import Executable
from .request import AUTO_IO

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
    *,
    unbounded: bool,
) -> Executable:
    """The program that handles the most items a second, of those with some numbers of I/O tiles.

    Without I/O tiles, all tiles compute, but transfers add to the time of a run. Few I/O tiles may
    be slower than none, because their copies take long. So more are tried until a number gives no
    more items a second than the number before it, whatever the rate without any. A program that
    does not fit is left out. If the one without I/O tiles does not fit, no other is tried.

    Args:
        compile_with: compiles the program with so many I/O tiles. Raises DoesNotFit and InputError.
        tell: takes a note about the choice, which the program gets, too.
        unbounded: whether compile_with also gives a program that does not fit.
    """

    def fits(exe: Executable) -> bool:
        return not unbounded or exe.memory.problem() is None

    best = compile_with(0)
    if not fits(best):
        return best
    rates: dict[int, float] = {0: _rate(best)}
    before = 0.0
    for number in numbers(best.target):
        try:
            made = compile_with(number)
        except (DoesNotFit, InputError):
            continue
        if not fits(made):
            continue
        rates[number] = _rate(made)
        if rates[number] > _rate(best):
            best = made
        if rates[number] <= before:
            break
        before = rates[number]
    shown = ", ".join(f"{rate:,.0f} with {number}" for number, rate in rates.items())
    note = f"{best.target.io_tiles} I/O tiles of each chip: items a second are {shown}"
    best.note(note)
    tell((note,))
    return best


def _rate(exe: Executable) -> float:
    return float(exe.profile["items_per_s"])
