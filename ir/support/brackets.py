"""How deeply the brackets of a text are nested, found before a parser recurses into them."""

from __future__ import annotations

import re

from .limits import NESTED_BRACKETS

Pattern = re.Pattern[str]

WITH_STRINGS: Pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|[(\[{<>}\])]|->|=>|<=|>=')
"""Tokens of a text with strings and `//` comments. Arrows and comparisons are no brackets."""

TOML: Pattern = re.compile(
    r'"""(?s:.*?)"""|\'\'\'(?s:.*?)\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[{}\]]'
)
"""Tokens of TOML: strings, comments and brackets."""

OPENING, CLOSING = "([{<", ")]}>"


def too_deep(text: str, opening: str = "([{", tokens: Pattern = WITH_STRINGS) -> int | None:
    """The position of the first bracket that is nested too deeply; None if there is none.

    Args:
        opening: the brackets that count.
    """
    closing = "".join(CLOSING[OPENING.index(each)] for each in opening)
    depth, most = 0, NESTED_BRACKETS.most
    # Most text has fewer brackets than the limit allows to nest.
    if sum(map(text.count, opening)) <= most:
        return None
    for found in tokens.finditer(text):
        token = found[0]
        if len(token) > 1:
            continue
        if token in opening:
            depth += 1
            if depth > most:
                return found.start()
        elif token in closing:
            depth = max(depth - 1, 0)
    return None
