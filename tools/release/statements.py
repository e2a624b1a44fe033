"""What a checkout says of its release: the version, the Python versions, and its changes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...ir.support.errors import InputError

PROJECT, CHANGES = "pyproject.toml", "CHANGELOG.md"

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)((a|b|rc)(0|[1-9]\d*))?", re.ASCII)
_PROMISED = re.compile(r"Programming Language :: Python :: (3\.\d+)")
_HEADING = re.compile(r"^## (.+?)[ \t]*$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
UNRELEASED = "Unreleased"
"""The heading of changes that belong to no release yet."""


@dataclass(frozen=True)
class Statements:
    """What a checkout says.

    Attributes:
        pythons: the versions of Python that it promises.
    """

    version: str
    pythons: tuple[str, ...]
    changes: str


def read_statements(root: Path) -> Statements:
    """The statements of the checkout in a folder. Raises InputError if files are missing."""
    try:
        project = tomllib.loads((root / PROJECT).read_text("utf-8"))["project"]
        changes = (root / CHANGES).read_text("utf-8")
        named = (_PROMISED.fullmatch(each) for each in project["classifiers"])
        pythons = tuple(found[1] for found in named if found)
        return Statements(str(project["version"]), pythons, changes)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}; need a checkout of abele") from None
    except (KeyError, ValueError) as error:
        raise InputError(f"{root / PROJECT}: {error}; need a project's version") from None


def problems(said: Statements) -> Iterator[str]:
    """What the statements lack for a release."""
    if not _VERSION.fullmatch(said.version):
        yield f"{PROJECT}: version {said.version!r}; need one such as 1.2.3 or 1.2.3rc1"
    sections = _sections(said.changes)
    named = [heading for heading in sections if heading.split()[0] == said.version]
    if not named:
        yield f"{CHANGES}: no section {said.version}; need '## {said.version} (date)'"
    for heading in named:
        date = heading.removeprefix(said.version).strip(" ()")
        if not _DATE.fullmatch(date):
            yield f"{CHANGES}: section {heading!r} has no date; need '## {said.version} (date)'"
        if not sections[heading]:
            yield f"{CHANGES}: section {heading!r} names no change"
    left = sections.get(UNRELEASED, 0)
    if left:
        yield f"{CHANGES}: {left} changes under {UNRELEASED}; move them to {said.version}"


def _sections(changes: str) -> dict[str, int]:
    """The number of changes under each heading, also under one that is repeated."""
    found: dict[str, int] = {}
    parts = _HEADING.split(changes)[1:]
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        found[heading] = found.get(heading, 0) + len(re.findall(r"^- ", text, re.MULTILINE))
    return found
