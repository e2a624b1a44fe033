"""The fields of a message by name and type, as Caffe declares them.

A field that no message of its kind has is an error, as in Caffe: a misspelt kernel_size would
otherwise leave the default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion
from .text_format import Message, Value, Word

T = TypeVar("T")

MOST_DIGITS = 20
"""The most characters of an integer. None that fits 64 bits has more."""

LARGEST = float(np.finfo(np.float32).max)
"""The largest number. Caffe holds all in 32 bits."""

TRUTH = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


class Fields:
    """A message of a known kind.

    Attributes:
        message: as read.
        place: the file, and what the message belongs to, in messages.
    """

    def __init__(self, message: Message, known: frozenset[str] | None, place: str) -> None:
        """Raise InputError for a field that the kind does not have.

        Args:
            known: the names of its fields; None for a message that is not looked at.
        """
        self.message = message
        self.place = place
        for name, values in message.fields.items():
            if known is not None and name not in known:
                line = values[0].line if values else message.line
                near = suggestion(name[:60], sorted(known))
                raise InputError(f"{place}: line {line}: no field {name[:60]!r}{near}")

    @property
    def line(self) -> int:
        """The line where the message begins."""
        return self.message.line

    def line_of(self, name: str) -> int:
        """The line of a field; that of the message if it is not given."""
        values = self.values(name)
        return values[0].line if values else self.line

    def bad(self, name: str, message: str) -> InputError:
        """An error in a field."""
        return InputError(f"{self.place}: line {self.line_of(name)}: {name}: {message}")

    def values(self, name: str) -> Sequence[Value]:
        """The values of a field, in the order of the file."""
        return self.message.fields.get(name, ())

    def has(self, name: str) -> bool:
        """Whether a field is given."""
        return bool(self.values(name))

    # Words

    def _words(self, name: str) -> list[Word]:
        found = [each for each in self.values(name) if isinstance(each, Word)]
        if len(found) != len(self.values(name)):
            raise self.bad(name, "is a message; need a value")
        return found

    def _last(self, name: str) -> Word | None:
        """The value of a field that is given once; of several, protobuf takes the last."""
        words = self._words(name)
        return words[-1] if words else None

    def _read(self, name: str, word: Word, kind: str, read: Callable[[str], T | None]) -> T:
        found = None if word.is_string else read(word.text)
        if found is None:
            raise InputError(
                f"{self.place}: line {word.line}: {name} is {word.text[:60]!r}; need {kind}"
            )
        return found

    def integer(self, name: str, default: int = 0, least: int = -(1 << 31)) -> int:
        """An integer of 32 bits. Raises InputError for one below the least."""
        word = self._last(name)
        if word is None:
            return default
        found = self._read(name, word, "an integer", _integer)
        if not least <= found < 1 << 32:
            raise self.bad(name, f"is {found}; need {least} or more, and less than 2^32")
        return found

    def integers(self, name: str, least: int = 0) -> list[int]:
        """A list of integers."""
        found = [self._read(name, each, "an integer", _integer) for each in self._words(name)]
        if any(not least <= n < 1 << 32 for n in found):
            raise self.bad(name, f"is {found[:8]}; need {least} or more, and less than 2^32")
        return found

    def number(self, name: str, default: float = 0.0) -> float:
        """A finite number of 32 bits."""
        word = self._last(name)
        return default if word is None else self._read(name, word, "a finite number", _number)

    def numbers(self, name: str) -> list[float]:
        """A list of finite numbers."""
        return [self._read(name, each, "a finite number", _number) for each in self._words(name)]

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        word = self._last(name)
        return default if word is None else self._read(name, word, "true or false", TRUTH.get)

    def choice(self, name: str, names: Sequence[str], default: str) -> str:
        """One of some names, or its number among them; "" among them stands for no name."""
        word = self._last(name)
        if word is None:
            return default
        listed = [each for each in names if each]
        return self._read(name, word, f"one of {', '.join(listed)}", lambda t: _choice(t, names))

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        texts = self.texts(name)
        return texts[-1] if texts else default

    def texts(self, name: str) -> list[str]:
        """A list of strings."""
        for word in self._words(name):
            if not word.is_string:
                raise InputError(
                    f"{self.place}: line {word.line}: {name} is {word.text[:60]!r}; need a string "
                    "in quotes"
                )
        return [word.text for word in self._words(name)]

    # Messages

    def messages(self, name: str, known: frozenset[str] | None) -> list[Fields]:
        """The messages in a field."""
        found = [each for each in self.values(name) if isinstance(each, Message)]
        if len(found) != len(self.values(name)):
            raise self.bad(name, f"is a value; need a message, {name} {{ ... }}")
        return [Fields(each, known, self.place) for each in found]

    def inner(self, name: str, known: frozenset[str] | None) -> Fields:
        """The message in a field; one without fields if it is not given.

        Protobuf merges a message that is given more than once; here that is an error.
        """
        found = self.messages(name, known)
        if len(found) > 1:
            raise self.bad(name, "is given twice; need one message")
        return found[0] if found else Fields(Message(self.line), known, self.place)


def _integer(text: str) -> int | None:
    if len(text) > MOST_DIGITS:
        return None
    body = text.lstrip("+-")
    base = 16 if body[:2] in ("0x", "0X") else 8 if body[:1] == "0" and body != "0" else 10
    try:
        return None if "_" in text else int(text, base)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    try:
        found = float("x" if "_" in text else text[:-1] if text[-1:] in "fF" else text)
    except ValueError:
        return None
    return found if abs(found) <= LARGEST else None


def _choice(text: str, names: Sequence[str]) -> str | None:
    if text in names:
        return text
    number = _integer(text)
    return names[number] if number is not None and 0 <= number < len(names) else None
