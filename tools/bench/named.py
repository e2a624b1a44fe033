"""Names in the options of a benchmark, and numbers that follow them."""

from __future__ import annotations

from collections.abc import Collection

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion


def names_in(option: str, text: str, known: Collection[str]) -> list[str]:
    """The names of a list with commas. Raises InputError for an unknown one, and if there is none.

    Args:
        option: where the list is given, for messages.
    """
    names = list(filter(None, text.split(",")))
    for name in names:
        if name not in known:
            near = suggestion(name, known) or f"; need some of {', '.join(known)}"
            raise InputError(f"{option}: there is no {name!r}{near}")
    if not names:
        raise InputError(f"{option}: names nothing; need some of {', '.join(known)}")
    return names


def name_and_numbers(
    spec: str, known: Collection[str], counts: Collection[int], form: str
) -> tuple[str, list[int]]:
    """The name and the numbers of NAME:NUMBER:..., all of them positive.

    Raises InputError for another name, and for numbers that are none.

    Args:
        known: names of networks.
        counts: how many numbers there may be.
        form: what to write, in words.
    """
    name, *numbers = spec.split(":")
    if name not in known:
        raise InputError(f"--networks {spec}: no network {name!r}{suggestion(name, known)}")
    if len(numbers) not in counts or not all(
        n.isascii() and n.isdigit() and int(n) for n in numbers
    ):
        raise InputError(f"--networks {spec}: need {form}")
    return name, [int(n) for n in numbers]
