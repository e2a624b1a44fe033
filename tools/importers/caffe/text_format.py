"""Reads messages in the text format of Protocol Buffers, with the line of each field.

Nothing here knows which fields exist: `fields.py` asks for them by name.

    name: "net"
    layer { name: "conv1" type: "Convolution" convolution_param { num_output: 96 } }
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from ....ir.support.errors import InputError
from ....ir.support.limits import NESTED_BRACKETS

MOST_BYTES = 1 << 26
"""The most bytes of a text. Assumed: published networks have at most 300 kB."""

MOST_WORD = 1 << 16
"""The most characters of one word or string."""


@dataclass(frozen=True)
class Word:
    """A value of a field that is no message: a number, a name such as MAX, or a string.

    Attributes:
        text: what the file says, without quotes.
        is_string: whether it is in quotes.
    """

    text: str
    is_string: bool
    line: int


@dataclass
class Message:
    """A message: the values of its fields, in the order of the file.

    Attributes:
        line: where it begins.
        fields: the values of a field, by its name.
    """

    line: int
    fields: dict[str, list[Value]] = field(default_factory=dict[str, "list[Value]"])


Value: TypeAlias = Word | Message

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+)
    |(?P<comment>\#[^\n]*)
    |(?P<newline>\n)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[-+]?[\w.][\w.+-]*|-)
    |(?P<mark>[{}<>:;,\[\]])""",
    re.VERBOSE,
)

ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}

_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", re.DOTALL)

CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Token:
    """A piece of the text.

    Attributes:
        kind: string, word, mark, or end.
    """

    kind: str
    text: str
    line: int

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else repr(self.text[:60])


def read_text(data: bytes, place: str) -> Message:
    """The message in a text. Raises InputError, with the line.

    Args:
        place: the file in messages.
    """
    if len(data) > MOST_BYTES:
        raise InputError(f"{place}: {len(data):,} bytes; at most {MOST_BYTES:,} are read")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{place}: line {line}: no UTF-8; need a network as text") from None
    return _Reader(_tokens(text, place), place).whole()


def _tokens(text: str, place: str) -> list[Token]:
    found: list[Token] = []
    start, line = 0, 1
    while start < len(text):
        match = TOKEN.match(text, start)
        if match is None:
            raise InputError(f"{place}: line {line}: {text[start]!r} begins nothing")
        kind, piece = match.lastgroup or "", match.group()
        if len(piece) > MOST_WORD and kind in ("string", "word"):
            raise InputError(f"{place}: line {line}: a word of {len(piece):,} characters")
        if kind in ("string", "word", "mark"):
            found.append(Token(kind, piece, line))
        line += piece.count("\n")
        start = match.end()
    found.append(Token("end", "", line))
    return found


@dataclass
class _Reader:
    tokens: list[Token]
    place: str
    at: int = 0

    def bad(self, token: Token, wanted: str) -> InputError:
        return InputError(f"{self.place}: line {token.line}: {token}; need {wanted}")

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def takes(self, *marks: str) -> str:
        """The next token, if it is one of some marks; "" if not."""
        token = self.tokens[self.at]
        if token.kind == "mark" and token.text in marks:
            self.at += 1
            return token.text
        return ""

    def whole(self) -> Message:
        """The message of the whole text. Messages within others are kept on a list, not on the
        stack of calls.
        """
        message, ends = Message(1), [""]
        around: list[Message] = []
        while True:
            token = self.next()
            if token.kind == "end" and not around:
                return message
            if token.kind == "mark" and token.text == ends[-1]:
                message = around.pop()
                ends.pop()
                _ = self.takes(";", ",")
                continue
            if token.kind != "word":
                raise self.bad(token, f"the name of a field{' or ' + ends[-1] if around else ''}")
            values = message.fields.setdefault(token.text, [])
            colon = self.takes(":")
            opening = self.takes("{", "<")
            if opening:
                if len(around) >= NESTED_BRACKETS.most:
                    nested = NESTED_BRACKETS.refusal(f"messages {len(around) + 1} deep")
                    raise InputError(f"{self.place}: line {token.line}: {nested}")
                around.append(message)
                ends.append(CLOSING[opening])
                message = Message(token.line)
                values.append(message)
                continue
            if not colon:
                raise self.bad(self.tokens[self.at], f": or {{ after {token.text!r}")
            values += self._listed() if self.takes("[") else [self._word()]
            _ = self.takes(";", ",")

    def _listed(self) -> list[Word]:
        """The words of a list, up to its end."""
        found: list[Word] = []
        if self.takes("]"):
            return found
        while True:
            found.append(self._word())
            if self.takes("]"):
                return found
            if not self.takes(","):
                raise self.bad(self.tokens[self.at], ", or ]")

    def _word(self) -> Word:
        """A number, a name, or strings one after another."""
        token = self.next()
        if token.kind == "word":
            text = token.text
            if text == "-":
                text += self.next().text
            return Word(text, is_string=False, line=token.line)
        if token.kind != "string":
            raise self.bad(token, "a value")
        parts = [self._unquoted(token)]
        while self.tokens[self.at].kind == "string":
            parts.append(self._unquoted(self.next()))
        return Word("".join(parts), is_string=True, line=token.line)

    def _unquoted(self, token: Token) -> str:
        def replaced(match: re.Match[str]) -> str:
            octal, hexadecimal, letter = match.groups()
            if octal or hexadecimal:
                return chr(int(octal, 8) & 255 if octal else int(hexadecimal, 16))
            if letter not in ESCAPES:
                raise self.bad(token, "no escape but those of C")
            return ESCAPES[letter]

        return _ESCAPE.sub(replaced, token.text[1:-1])
