"""Reading string literals in linear time.

xDSL finds the end of a string literal by a regular expression that tries every way to cut the
string into pieces. If the quotation mark at the end is missing, it tries 2^n ways for a line of n
characters. The expression here accepts the same literals, and never tries again.
"""

from __future__ import annotations

import re

EXPRESSION = "_unescaped_characters_regex"
"""The attribute of xDSL's lexer that holds its expression."""

LITERAL = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
"""A string literal. The last + makes the repetition possessive: it gives no character back."""


def read_strings_in_linear_time(lexer: type[object]) -> None:
    """Replace the expression of xDSL's lexer, for the whole process."""
    if not hasattr(lexer, EXPRESSION):
        raise AttributeError(f"xDSL's lexer has no {EXPRESSION}; need another way to replace it")
    setattr(lexer, EXPRESSION, LITERAL)
