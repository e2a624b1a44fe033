"""Suggestions for a mistyped name."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES = 12
"""If no name is similar, a message lists all names, unless there are more than this."""


def suggestion(name: str, names: Iterable[str]) -> str:
    """Text to append to "no such name": the most similar names, or all names if there are few."""
    known = sorted(set(names))
    # Operations of one dialect share a prefix, which must not make their names similar.
    dialect, dot, own = name.rpartition(".")
    parts = {each.removeprefix(dialect + dot): each for each in known}
    similar = [parts[each] for each in get_close_matches(own, parts, n=3, cutoff=0.65)]
    similar = similar or get_close_matches(name, known, n=1, cutoff=0.8)
    if similar:
        return f"; did you mean {' or '.join(similar)}?"
    if not known:
        return "; there are none"
    if len(known) > MOST_NAMES:
        return ""
    return f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
