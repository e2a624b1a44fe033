"""The locations in a text of MLIR: what they say of the name and of the line of an operation.

MLIR prints each location once, at the end of the text: `#loc5 = loc("net.py":8:6 to :58)`. Those of
JAX say the name of the operation and the chain of calls that led to it. abele keeps the name and
the innermost place, which is the user's own line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntAttr, StringAttr

from .provenance import named
from .upstream import UNKNOWN_LOC, FileLineColLoc, LocationAttr

MOST_STEPS = 64
"""The most locations within locations that are followed. Assumed: what is deeper was not written by
a compiler of a user's program."""

MOST_NUMBER = 1 << 31
"""Lines and columns below this number are kept."""

_DEFINED = re.compile(r"^#(loc\w*)[ \t]*=[ \t]*(loc\([^\n]*\))[ \t]*\r?$", re.MULTILINE)

_STRING = r'"((?:[^"\\\n]|\\.)*)"'

_TOKEN = re.compile(
    rf"\s*(?:{_STRING}|#(loc\w*)|(callsite|fused|unknown|at|to)\b|([0-9]+)|([()\[\],:<>]))"
)

_ESCAPE = re.compile(r"\\([0-9a-fA-F]{2}|.)")


@dataclass(frozen=True)
class Said:
    """What a location says.

    Attributes:
        name: of the operation; "" if it says none.
        place: the innermost line of a file, with its column; None if it says none.
    """

    name: str = ""
    place: tuple[str, int, int] | None = None


_NOTHING = Said()


class _Unreadable(Exception):
    """A text that is no location."""


@dataclass
class LocationTable:
    """The locations that a text defines by name.

    Attributes:
        texts: what stands in `loc(...)`, by name.
    """

    texts: dict[str, str]
    _said: dict[str, Said] = field(default_factory=dict[str, Said])
    _made: dict[str, LocationAttr] = field(default_factory=dict[str, LocationAttr])

    @classmethod
    def taken_from(cls, text: str) -> tuple[str, LocationTable]:
        """A text whose definitions of locations are replaced by spaces, and these definitions."""
        found: dict[str, str] = {}

        def take(match: re.Match[str]) -> str:
            found[match[1]] = match[2]
            return " " * len(match[0])

        return _DEFINED.sub(take, text), cls(found)

    def read(self, text: str, start: int) -> tuple[LocationAttr, int] | None:
        """The location `loc(...)` at a place of a text, and the place after it; None if what is
        there is no location.
        """
        if not text.startswith("loc(", start):
            return None
        try:
            said, end = self._within(text, start + 4, 0)
            end = _expect(text, end, ")")
        except _Unreadable:
            return None
        key = text[start:end]
        if key not in self._made:
            self._made[key] = _attribute(said)
        return self._made[key], end

    def _within(self, text: str, at: int, steps: int) -> tuple[Said, int]:
        """What is said between the brackets from a place on, and the place after it."""
        if steps > MOST_STEPS:
            raise _Unreadable
        token = _TOKEN.match(text, at)
        if token is None:
            raise _Unreadable
        string, alias, word, _, _ = token.groups()
        at = token.end()
        if alias is not None:
            return self._named(alias, steps), at
        if string is not None:
            return self._of_string(_plain(string), text, at, steps)
        if word == "unknown":
            return _NOTHING, at
        if word == "callsite":
            callee, at = self._within(text, _expect(text, at, "("), steps + 1)
            caller, at = self._within(text, _expect(text, at, "at"), steps + 1)
            # A name of a function is no name of an operation.
            return Said("", callee.place or caller.place), _expect(text, at, ")")
        if word == "fused":
            return self._fused(text, at, steps)
        raise _Unreadable

    def _named(self, alias: str, steps: int) -> Said:
        if alias not in self._said:
            held = self.texts.get(alias)
            if held is None:
                return _NOTHING
            # A location that names itself says nothing.
            self._said[alias] = _NOTHING
            try:
                self._said[alias] = self._within(held, 4, steps + 1)[0]
            except _Unreadable:
                pass
        return self._said[alias]

    def _of_string(self, string: str, text: str, at: int, steps: int) -> tuple[Said, int]:
        token = _TOKEN.match(text, at)
        mark = None if token is None else token[5]
        if token is not None and mark == "(":
            inner, at = self._within(text, token.end(), steps + 1)
            return Said(string, inner.place), _expect(text, at, ")")
        if token is None or mark != ":":
            return Said(string), at
        line, at = _number(text, token.end())
        column, at = _number(text, _expect(text, at, ":"))
        token = _TOKEN.match(text, at)
        # A place may be a range: the last line, if it is another, and the last column follow.
        if token is not None and token[3] == "to":
            at = token.end()
            while (token := _TOKEN.match(text, at)) is not None and (token[4] or token[5] == ":"):
                at = token.end()
        return Said("", (string, line, column)), at

    def _fused(self, text: str, at: int, steps: int) -> tuple[Said, int]:
        """The first name and the first place of several locations."""
        token = _TOKEN.match(text, at)
        if token is not None and token[5] == "<":
            end = text.find(">", at)
            if end < 0:
                raise _Unreadable
            at = end + 1
        at, found = _expect(text, at, "["), _NOTHING
        while True:
            said, at = self._within(text, at, steps + 1)
            found = Said(found.name or said.name, found.place or said.place)
            token = _TOKEN.match(text, at)
            if token is None or token[5] != ",":
                return found, _expect(text, at, "]")
            at = token.end()


def _expect(text: str, at: int, word: str) -> int:
    token = _TOKEN.match(text, at)
    if token is None or word not in (token[3], token[5]):
        raise _Unreadable
    return token.end()


def _number(text: str, at: int) -> tuple[int, int]:
    token = _TOKEN.match(text, at)
    if token is None or token[4] is None or len(token[4]) > len(str(MOST_NUMBER)):
        raise _Unreadable
    return min(int(token[4]), MOST_NUMBER), token.end()


def _plain(string: str) -> str:
    """The text of a string literal."""

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 16)) if len(code) == 2 else {"n": "\n", "t": "\t"}.get(code, code)

    return _ESCAPE.sub(plain, string)


def _attribute(said: Said) -> LocationAttr:
    place = None
    if said.place is not None:
        file, line, column = said.place
        place = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
    if said.name:
        return named(said.name, place)
    return UNKNOWN_LOC if place is None else place
