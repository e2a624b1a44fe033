"""Breaks long lines of IR text where a reader expects a break."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 120
"""Columns. A line is longer only if there is no place to break it."""

INDENT = 4
"""Columns by which all lines of an operation but the first are indented further."""

_LEAST = 24
"""Characters. A break that leaves fewer than these on a line is used only if no other fits."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|<[\w ,#.]+>|<\{|\}>|[<({\[]|[>)}\]]|[ ](?!\{?$)')
"""Strings, arrows, short text in angle brackets, brackets, and spaces at which a line may break."""

_OPEN = frozenset(("<", "(", "{", "[", "<{"))
_CLOSED = frozenset((">", ")", "}", "]", "}>"))

# A clause begins with a colon, an arrow, a location, a word, or the attributes after operands.
_CLAUSE = re.compile(r":(?= )|->|loc\(|\{(?=[a-z]+ = )|[a-z_]+(?=[ ])")

# A line does not break after the first of these, nor before the second.
_TIES = re.compile(r"(?:[:=]|->|of)$")
_TIED = re.compile(r"=|of ")


def wrapped(text: str, inside: bool = False) -> str:
    """Break the lines of a text that have more than WIDTH columns.

    Only spaces become line breaks, so the text means the same. Strings stay whole. Text in angle
    brackets belongs to a dialect and stays whole too, unless inside is true.
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
    """The positions of spaces at which a line may break, each with the cost of breaking there.

    A break in fewer brackets costs less; with as many, one before a clause or after a comma does.
    """
    depth = 0
    # Text of a dialect lasts until the depth is back at this; -1 outside of such text.
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
            if line.startswith("attributes", at - 10):
                continue
            if _TIES.search(line, at - 2, at) or _TIED.match(line, at + 1):
                continue
            if before == "," or _CLAUSE.match(line, at + 1):
                yield at, 2 * depth
            elif depth <= inside:
                yield at, 2 * depth + 1
