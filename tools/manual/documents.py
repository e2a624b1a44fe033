"""Docstrings in parts: meaning, example, and meanings of fields."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from dataclasses import dataclass, field

_EXAMPLE = re.compile(r"(?:^|(?<=[\s.]))Example: ?")
_SECTION = re.compile(r"(?:Args|Attributes):\n(?=[ \t])")


@dataclass(frozen=True)
class Document:
    """A docstring in parts.

    Attributes:
        text: the remaining paragraphs.
        example: the text after "Example:", or "".
        fields: the text after "name: ", up to the next name or the end of the paragraph.
    """

    text: str = ""
    example: str = ""
    fields: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def summary(self) -> str:
        """The first sentence."""
        first = " ".join(self.text.partition("\n\n")[0].split())
        return re.split(r"(?<=[.;]) (?=[A-Z])", first)[0]


def document(obj: object, names: Collection[str] = ()) -> Document:
    """The docstring of an object in parts. A class without a meaning of its own has its base's.

    Args:
        names: the fields whose meanings are wanted.
    """
    own = parsed(_docstring(obj), names)
    if own.text or not isinstance(obj, type):
        return own
    inherited = (parsed(_docstring(base), names) for base in obj.__mro__[1:-1])
    base = next((each for each in inherited if each.text), own)
    return Document(base.text, own.example or base.example, base.fields)


def parsed(text: str, names: Collection[str] = ()) -> Document:
    """A docstring in parts."""
    body, found = text, ""
    match = _EXAMPLE.search(text)
    if match:
        rest, _, after = text[match.end() :].partition("\n\n")
        body = f"{text[: match.start()].rstrip()}\n\n{after}".strip("\n")
        found = _example(rest)
    paragraphs: list[str] = []
    fields: dict[str, str] = {}
    for paragraph in re.split(r"\n[ \t]*\n", body):
        before, described = _fields(paragraph, names)
        fields |= described
        paragraphs.append(before)
    return Document("\n\n".join(p for p in paragraphs if p.strip()), found, fields)


def _docstring(obj: object) -> str:
    own = vars(obj).get("__doc__") if isinstance(obj, type) else obj.__doc__
    text = inspect.cleandoc(own or "")
    # A dataclass without a docstring has its signature as docstring.
    signature = isinstance(obj, type) and text.startswith(f"{obj.__name__}(")
    return "" if signature else text


def _example(text: str) -> str:
    """An example: the lines below the word, and lines that continue beside it, indented."""
    if text.startswith("\n"):
        return inspect.cleandoc(text)
    return "\n    ".join(line.strip() for line in text.splitlines()).removesuffix(".")


def _fields(paragraph: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """A paragraph without the meanings of fields, and these meanings.

    They are lines of a section, or end a paragraph. Several names may share a meaning.
    """
    header = _SECTION.match(paragraph)
    paragraph = paragraph[header.end() if header else 0 :]
    if not names or (paragraph.startswith(" ") and header is None):
        return paragraph, {}
    one = "|".join(map(re.escape, names))
    start = re.compile(rf"(?:^|(?<=\s))((?:{one})(?:, (?:{one}))*):\s")
    matches = list(start.finditer(paragraph))
    if not matches:
        return paragraph, {}
    ends = [*(m.start() for m in matches[1:]), len(paragraph)]
    found = {
        name: " ".join(paragraph[m.end() : end].split()).rstrip(".;")
        for m, end in zip(matches, ends)
        for name in m[1].split(", ")
    }
    return paragraph[: matches[0].start()].rstrip(), found


def without_errors(text: str) -> str:
    """The paragraphs up to the errors raised, which concern Python and not programs."""
    cut = (re.split(r"\s*\bRaises [A-Z]", each)[0] for each in text.split("\n\n"))
    return "\n\n".join(each for each in cut if each)
