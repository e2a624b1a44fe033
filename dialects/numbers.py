"""Numbers as text: 1, -0.75, 1.0e-05, inf, nan. xDSL prints some numbers in a form it cannot
parse."""

from __future__ import annotations

from ..ir.upstream import AttrParser


def parse_number(parser: AttrParser) -> float:
    """Read a number."""
    sign = -1.0 if parser.parse_optional_punctuation("-") else 1.0
    for word in ("inf", "nan"):
        if parser.parse_optional_keyword(word) is not None:
            return sign * float(word)
    return sign * float(parser.parse_number(allow_boolean=False))


def number_text(value: float) -> str:
    """The shortest text that reads as the same number."""
    text = repr(float(value))
    return text if any(c in text for c in ".n") else text.replace("e", ".0e", 1)
