"""Aliases for long attributes: `#layout0 = ...` at the top of a text, `#layout0` below it."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping
from typing import ClassVar

from xdsl.ir import Attribute

from .blob import Blob
from .line_wrap import wrapped
from .upstream import AttrParser, MLIRTokenKind

LONGEST_INLINE = 40
"""Characters. An attribute with a longer text gets an alias; all others are printed in place."""


class Aliased(Attribute):
    """An attribute that is printed as an alias if its text is long.

    Attributes:
        alias: the first part of the alias; a number follows it.
    """

    alias: ClassVar[str]

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The blobs whose digests are in its text."""
        return ()

    @abstractmethod
    def text(self) -> str:
        """The text between the angle brackets."""


class Aliases:
    """The aliases assigned so far, and their definitions.

    Printers that share one such object give an attribute the same alias.
    """

    def __init__(self) -> None:
        self._names: dict[Aliased, str] = {}
        self._definitions: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()

    def of(self, attribute: Aliased) -> str:
        """The alias of an attribute, or "" if its text is short. Assigns it on the first call."""
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
        """The definitions of some aliases, sorted by kind and number. Long ones are broken.

        Args:
            names: the aliases, each with the name under which to define it.
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
    """Renumber aliases in order of appearance, each kind from 0.

    Returns the new text, and the new name of each alias.

    Args:
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
    """Parse an alias and return the attribute it stands for, or None if the next token is no alias.

    Raises ParseError for an unknown alias, and for an alias of an attribute of another class.
    """
    # xDSL has no public way to look at the next token.
    kind = parser._current_token.kind  # pyright: ignore[reportPrivateUsage]
    if kind is not MLIRTokenKind.HASH_IDENT:
        return None
    start = parser.pos
    found = parser.parse_attribute()
    if not isinstance(found, cls):
        parser.raise_error(f"found {found}; need {cls.name}", start, parser.pos)
    return found
