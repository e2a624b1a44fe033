"""Long attributes under short names: `#layout0 = ...` at the top of a text, `#layout0` below."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping
from typing import ClassVar

from xdsl.ir import Attribute
from xdsl.parser import AttrParser

from .line_wrap import wrapped
from .upstream import MLIRTokenKind

LONGEST_INLINE = 40
"""Characters. A longer attribute gets an alias; one that is as short or shorter stays in place."""


class Aliased(Attribute):
    """An attribute that gets an alias where its text is long.

    alias: the first part of the alias; a number follows it.
    """

    alias: ClassVar[str]

    @abstractmethod
    def text(self) -> str:
        """The text between the angle brackets."""


class Aliases:
    """The aliases that have been given, and their definitions.

    Printers that share them give an attribute the same alias.
    """

    def __init__(self) -> None:
        self._names: dict[Aliased, str] = {}
        self._definitions: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()

    def of(self, attribute: Aliased) -> str:
        """The alias of an attribute, given when it is first asked for; "" if it is short."""
        known = self._names.get(attribute)
        if known is None:
            known = ""
            text = attribute.text()
            if len(text) > LONGEST_INLINE:
                known = f"#{attribute.alias}{self._numbers[attribute.alias]}"
                self._numbers[attribute.alias] += 1
                self._definitions[known] = f"#{attribute.name}<{text}>"
            self._names[attribute] = known
        return known

    def definitions(self, names: Mapping[str, str]) -> list[str]:
        """The definitions of some aliases, by kind and number; a long one has several lines.

        names: the aliases, each with the name that it is defined under.
        """
        ordered = sorted(names.items(), key=lambda each: _kind_and_number(each[1]))
        return [
            wrapped(f"{name} = {self._definitions[each]}", inside=True) for each, name in ordered
        ]


def _kind_and_number(alias: str) -> tuple[str, int]:
    kind = alias.rstrip("0123456789")
    return kind, int(alias.removeprefix(kind))


_STRING_OR_ALIAS = re.compile(r'"(?:[^"\\]|\\.)*"|(#[a-z]+)[0-9]+')


def numbered_by_appearance(text: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """A text with each kind of alias numbered from 0 in order of appearance, and the new names.

    names: the aliases in the text.
    """
    found: dict[str, str] = {}
    numbers = Counter[str]()

    def renamed(match: re.Match[str]) -> str:
        old, kind = match[0], match[1]
        if old in names and old not in found:
            found[old] = f"{kind}{numbers[kind]}"
            numbers[kind] += 1
        return found.get(old, old)

    return _STRING_OR_ALIAS.sub(renamed, text), found


def parse_alias(parser: AttrParser, cls: type[Aliased]) -> Attribute | None:
    """The attribute whose alias is next, or None if something else is next.

    Raises ParseError for an unknown alias, and for an alias of another class.
    """
    # xDSL has no public way to look at the next token.
    kind = parser._current_token.kind  # pyright: ignore[reportPrivateUsage]
    if kind is not MLIRTokenKind.HASH_IDENT:
        return None
    start = parser.pos
    found = parser.parse_attribute()
    if not isinstance(found, cls):
        parser.raise_error(f"{found} is no {cls.name}", start, parser.pos)
    return found
