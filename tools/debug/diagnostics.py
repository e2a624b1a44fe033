"""Errors that a text of IR says it expects: what --verify-diagnostics holds abele to.

    // expected-error@+1 {{need a tensor}}
    %0 = nn.relu %x : (i32) -> i32

@+N and @-N count lines from the comment's own, which is meant without them; @above and @below are
the nearest lines without such a comment; @unknown is an error without a line. A number before the
braces wants the error so many times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.errors import InputError

_EXPECTED = re.compile(
    r"\bexpected-(?P<kind>[a-z-]+)\s*(?:@(?P<where>[-+]\d+|\w+))?\s*(?P<times>\d+)?\s*"
    r"(?P<braces>\{\{(?P<text>.*?)\}\})?"
)


@dataclass
class _Expectation:
    """line: None where the error has none. written: the line of the comment. left: how often it is
    still to come."""

    line: int | None
    text: str
    written: int
    left: int = 1


class Expectations:
    """The errors that a text expects. path: what messages call the text.

    Raises InputError for a comment that says nothing that can be held.
    """

    def __init__(self, text: str, path: str) -> None:
        self._path = path
        lines = text.split("\n")
        self._expected = [
            self._read(match, number, lines)
            for number, line in enumerate(lines, start=1)
            for match in _EXPECTED.finditer(_comment(line))
        ]

    def _read(self, match: re.Match[str], number: int, lines: Sequence[str]) -> _Expectation:
        place = f"{self._path}:{number}"
        if match["kind"] != "error":
            raise InputError(
                f"{place}: expected-{match['kind']}: abele makes errors only; need expected-error"
            )
        if match["braces"] is None:
            raise InputError(f"{place}: expected-error without its text; need {{{{text}}}}")
        line = _line(match["where"] or "+0", number, lines)
        if line == 0:
            raise InputError(
                f"{place}: @{match['where']}: no such line; need @+N, @-N, @above, @below or "
                "@unknown"
            )
        return _Expectation(line, match["text"], number, int(match["times"] or 1))

    def meet(self, error: BaseException) -> str:
        """Take an error for one that is expected; the problem if none is like it, else ""."""
        message = str(error) or type(error).__name__
        found = re.search(re.escape(self._path) + r":(\d+)", message)
        line = int(found[1]) if found else None
        for each in self._expected:
            if each.left and each.line == line and each.text in message:
                each.left -= 1
                return ""
        return f"{self._path}:{line or '?'}: unexpected error: {message}"

    def unmet(self) -> list[str]:
        """The problems of expected errors that did not come."""
        return [
            f"{self._path}:{each.written}: expected error {each.text!r} did not come"
            for each in self._expected
            if each.left
        ]


def _comment(line: str) -> str:
    """The comment at the end of a line, or ""."""
    return line.partition("//")[2]


def _line(where: str, number: int, lines: Sequence[str]) -> int | None:
    """The line, from 1, that a comment on a line means; None for no line, 0 if there is none."""
    if where == "unknown":
        return None
    if where in ("above", "below"):
        step = -1 if where == "above" else 1
        line = number + step
        while 1 <= line <= len(lines) and _EXPECTED.search(_comment(lines[line - 1])):
            line += step
    else:
        line = number + int(where) if re.fullmatch(r"[-+]\d+", where) else 0
    return line if 1 <= line <= len(lines) else 0
