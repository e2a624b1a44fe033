"""Long lines of IR text as several lines, broken where a reader expects it."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 120
"""Columns. A line is longer only if it has no place to break it."""

INDENT = 4
"""Columns by which the second and all later lines of one operation are indented further."""

_LEAST = 24
"""Characters that a line holds at least before an early break is worth having."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|<[\w ,#.]+>|<\{|\}>|[<({\[]|[>)}\]]|[ ](?!\{?$)')
"""Strings, arrows, short angle brackets, brackets, and the spaces at which a line may break."""

_OPEN = frozenset(("<", "(", "{", "[", "<{"))
_CLOSED = frozenset((">", ")", "}", "]", "}>"))

# A clause begins with a colon, an arrow, a location or a word.
_CLAUSE = re.compile(r":(?= )|->|loc\(|[a-z_]+(?=[ ])")

# These belong to what is after them, and to what is before them.
_TIES = re.compile(r"(?:[:=]|->|of)$")
_TIED = re.compile(r"=|of ")


def wrapped(text: str, inside: bool = False) -> str:
    """A text in which lines of more than WIDTH columns are broken.

    Only spaces become line breaks, so the text means the same. Strings stay whole, and so does
    what is in angle brackets, which belongs to a dialect; inside: break within them too.
    """
    if all(len(line) <= WIDTH for line in text.split("\n")):
        return text
    return "\n".join(
        "\n".join(_pieces(line, inside)) if len(line) > WIDTH else line for line in text.split("\n")
    )


def _pieces(line: str, inside: bool) -> Iterator[str]:
    indent = len(line) - len(line.lstrip(" "))
    gaps = [gap for gap in _gaps(line, inside) if gap[0] > indent]
    margin, start = indent, indent
    while margin + len(line) - start > WIDTH:
        last = start + WIDTH - margin
        ahead = [(cost, -at) for at, cost in gaps if at > start]
        fitting = [each for each in ahead if -each[1] <= last]
        filling = [each for each in fitting if -each[1] - start >= _LEAST]
        # If nothing fits, the nearest break is the best.
        best = min(filling or fitting or [(0, at) for _, at in ahead[:1]], default=None)
        if best is None:
            break
        at = -best[1]
        yield " " * margin + line[start:at]
        margin, start = indent + INDENT, at + 1
    yield " " * margin + line[start:]


def _gaps(line: str, inside: bool) -> Iterator[tuple[int, int]]:
    """The spaces at which a line may break, each with its cost: the depth of brackets first."""
    depth = 0
    # Where what belongs to a dialect ends: its depth is one more than this.
    opaque = -1
    for token in _TOKEN.finditer(line):
        found, at = token[0], token.start()
        if found in _OPEN:
            if found == "<" and opaque < 0 and not inside:
                opaque = depth
            depth += 1
        elif found in _CLOSED:
            depth -= 1
            if depth == opaque:
                opaque = -1
        elif found == " " and opaque < 0:
            before = line[at - 1]
            if _TIES.search(line, at - 2, at) or _TIED.match(line, at + 1):
                continue
            if before == "," or _CLAUSE.match(line, at + 1):
                yield at, 2 * depth
            elif depth <= inside:
                yield at, 2 * depth + 1
