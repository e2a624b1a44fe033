"""Colour on a terminal: for IR, and for the words that begin a message."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TextIO

from .languages import MLIR, Language

NO_COLOR = "NO_COLOR"
"""The environment variable that turns colour off if it is not empty. Source: no-color.org."""

COLOURS: Mapping[str, str] = {
    "Comment": "90",
    "String": "33",
    "Name.Function": "32",
    "Name.Variable": "36",
    "Name.Label": "36",
    "Name.Attribute": "35",
    "Name.Builtin": "1",
    "Name.Decorator": "35",
    "Keyword": "34",
    "Number": "35",
}
"""ANSI codes by token. Another token has the code of the longest prefix of its name in this
table."""

MESSAGES: Mapping[str, str] = {"error:": "1;31", "warning:": "1;33", "check failed:": "1;31"}
"""ANSI codes of the words that begin a message."""


def has_colour(stream: TextIO | None) -> bool:
    """Whether to write colour: only to a terminal that shows it, and not against NO_COLOR."""
    if stream is None or os.environ.get(NO_COLOR) or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def message_for(message: str, stream: TextIO | None) -> str:
    """A message, with its first word in colour if the stream shows colour."""
    if has_colour(stream):
        for word, code in MESSAGES.items():
            if message.startswith(word):
                return f"{_painted(word, code)}{message.removeprefix(word)}"
    return message


def ir_for(text: str, stream: TextIO | None) -> str:
    """IR, highlighted if the stream shows colour."""
    return highlighted(text, MLIR) if has_colour(stream) else text


def highlighted(text: str, language: Language) -> str:
    """Text of a language with ANSI codes around its words."""
    codes, words = _matcher(language)

    def paint(found: re.Match[str]) -> str:
        code = codes.get(found.lastgroup or "")
        return _painted(found[0], code) if code else found[0]

    return words.sub(paint, text)


@lru_cache
def _matcher(language: Language) -> tuple[Mapping[str, str], re.Pattern[str]]:
    """The code of each group, and a pattern with one group for each kind of word."""
    groups = {f"word{number}": each for number, each in enumerate(language.words)}
    pattern = "|".join(f"(?P<{name}>{each.pattern})" for name, each in groups.items())
    codes = {name: _code(each.token) for name, each in groups.items()}
    return codes, re.compile(pattern, re.MULTILINE)


def _code(token: str) -> str:
    while token and token not in COLOURS:
        token = token.rpartition(".")[0]
    return COLOURS.get(token, "")


def _painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
