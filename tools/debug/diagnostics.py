"""Compare errors with the errors that a text of IR expects, for --verify-diagnostics.

    // expected-error@+1 {{need a tensor}}
    %0 = nn.relu %x : (i32) -> i32

`@+N` and `@-N` count lines from the line of the comment, which is the default. `@above` and
`@below` are the nearest lines without such a comment. `@unknown` is an error without a line. A
number before the braces expects the error that many times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.support.errors import InputError

_EXPECTED = re.compile(
    r"\bexpected-(?P<kind>[a-z-]+)\s*(?:@(?P<where>[-+]\d+|\w+))?\s*(?P<times>\d+)?\s*"
    r"(?P<braces>\{\{(?P<text>.*?)\}\})?"
)


@dataclass
class _Expectation:
    """An expected error.

    Attributes:
        line: None for an error without a line.
        written: the line of the comment.
        left: the number of times that it is still expected.
    """

    line: int | None
    text: str
    written: int
    left: int = 1


class Expectations:
    """The errors that a text expects.

    Raises InputError for a comment that cannot be understood.

    Attributes:
        path: the name of the text in messages.
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
                f"{place}: expected-{match['kind']}: abele reports errors only; need expected-error"
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

    def match(self, error: BaseException) -> str:
        """Match an error with an expected error. Returns the problem if none is expected, else
        ""."""
        message = str(error) or type(error).__name__
        found = re.search(re.escape(self._path) + r":(\d+)", message)
        line = int(found[1]) if found else None
        for each in self._expected:
            if each.left and each.line == line and each.text in message:
                each.left -= 1
                return ""
        return f"{self._path}:{line or '?'}: unexpected error: {message}"

    def unmatched(self) -> list[str]:
        """The problems of expected errors that did not occur."""
        return [
            f"{self._path}:{each.written}: expected error {each.text!r} did not occur"
            for each in self._expected
            if each.left
        ]


def _comment(line: str) -> str:
    """The comment at the end of a line, or ""."""
    return line.partition("//")[2]


def _line(where: str, number: int, lines: Sequence[str]) -> int | None:
    """The line that a comment refers to, from 1; None for no line, 0 if no such line exists."""
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
