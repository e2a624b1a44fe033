"""Reads how many replicas a user asks for."""

from __future__ import annotations

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...passes.replicas.rounds import AUTO, METHODS, Way
from ...passes.replicate import Replicate


def read_replicas(given: int | str, axes: tuple[str, ...] = ()) -> Replicate:
    """The pass that cuts a batch across chips, from a number of replicas or "NUMBER:WAY".

    Raises InputError.

    Args:
        axes: as batch_axes of the pass.
    """
    number, colon, way = str(given).partition(":")
    if not (number.isascii() and number.isdecimal() and 0 < len(number) < 10 and int(number)):
        raise InputError(f"--replicas {given}; need a number from 1 up, or NUMBER:WAY")
    ways: dict[str, Way] = {each: each for each in (AUTO, *METHODS)}
    if colon and way not in ways:
        raise InputError(f"--replicas {given}: no way {way!r}{suggestion(way, ways)}")
    return Replicate(int(number), ways[way] if colon else AUTO, axes)
