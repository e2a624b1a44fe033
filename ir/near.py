"""What to say of a name that there is not."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES = 12
"""Of how many names all are said, where none is near."""


def nearest(name: str, names: Iterable[str]) -> str:
    """What to say after "no such name": the nearest ones, or all if they are few."""
    known = sorted(set(names))
    # Operations of one dialect share its name: that alone makes none of them near.
    dialect, dot, own = name.rpartition(".")
    parts = {each.removeprefix(dialect + dot): each for each in known}
    near = [parts[each] for each in get_close_matches(own, parts, n=3, cutoff=0.65)]
    near = near or get_close_matches(name, known, n=1, cutoff=0.8)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    if not known:
        return "; there are none"
    if len(known) > MOST_NAMES:
        return ""
    return f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
