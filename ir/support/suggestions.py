"""Suggestions for a mistyped name."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES = 12
"""If no name is similar, a message lists all names, unless there are more than this."""

MOST_SIMILAR = 3
"""A message suggests at most this many names."""

SHORTEST_WORD = 3
"""Words with fewer letters do not make names similar."""


def suggestion(name: str, names: Iterable[str], listed: str = "") -> str:
    """Text to append to "no such name": the most similar names, or all names if there are few.

    Args:
        listed: where all names are, such as "abele plan lists them"; used if nothing is similar and
            there are too many names to list.
    """
    known = sorted(set(names))
    similar = _similar(name, known)
    if similar:
        return f"; did you mean {' or '.join(similar)}?"
    if not known:
        return "; there are none"
    if len(known) > MOST_NAMES:
        return listed and f"; {listed}"
    return f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"


def suggestion_or(name: str, names: Iterable[str], listed: str, otherwise: str) -> str:
    """A suggestion, followed by advice for the case that the name is meant to be the user's own."""
    hint = suggestion(name, names, listed)
    if hint.endswith("?"):
        return f"{hint} {otherwise[0].upper()}{otherwise[1:]}"
    return f"{hint}; {otherwise}"


def similar_names(name: str, names: Iterable[str]) -> list[str]:
    """The names that are most like a name, the nearest first; at most MOST_SIMILAR."""
    return _similar(name, sorted(set(names)))


def _similar(name: str, known: list[str]) -> list[str]:
    """The names that are spelled nearly the same, else those that share a word with the name."""
    # Operations of one dialect share a prefix, which must not make their names similar.
    dialect, dot, own = name.rpartition(".")
    parts = {each.removeprefix(dialect + dot): each for each in known}
    longest = len(name) + max(2, len(own) // 2)
    near = [each for each in parts if len(each) <= longest]
    close = get_close_matches(own, near, n=MOST_SIMILAR, cutoff=0.65)
    if close:
        return [parts[each] for each in close]
    folded = {each.lower(): each for each in parts}
    close = get_close_matches(own.lower(), folded, n=1, cutoff=0.8)
    if close:
        return [parts[folded[close[0]]]]
    words = _words(own)
    sharing = sorted(
        (each for each in parts if words & _words(each)),
        key=lambda each: (-len(words & _words(each)), len(each)),
    )
    return [parts[each] for each in sharing[:MOST_SIMILAR]] or get_close_matches(
        name, known, n=1, cutoff=0.8
    )


def _words(name: str) -> set[str]:
    """The words of a name such as fold-relu, conv_1 or /layer/Conv, in lower case."""
    return {each for each in re.split(r"[\W_]+", name.lower()) if len(each) >= SHORTEST_WORD}
