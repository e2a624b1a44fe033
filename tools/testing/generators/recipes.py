"""Recipes found by exploring classes of operations, kept in a file for later processes.

Exploring abele's own classes takes 6 s in each process of a test suite or of `abele fuzz`. The
result follows from the sources of abele's definitions, so the file is named after their digest.
Each class is one line. Processes may add lines at any time, and a damaged line is ignored. Classes
of other packages are explored in each process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from xdsl.ir import Attribute, Operation

from ....ir.rules.choices import ELEMENTS
from ....ir.support.cache_folder import cache_folder
from ....ir.support.sealed_file import open_regular

Kind = tuple[int, Attribute]
"""The rank and element type of an operand."""

Ways = Mapping[str, str]
"""A recipe: the way in which each choice is made, by the name of the choice."""

ROOT = Path(__file__).parents[3]
"""The folder of abele's packages."""

DEFINING = ("ir", "dialects", "tools/testing/generators/instances.py")
"""The packages and the module whose sources determine the recipes."""

_NAMES = {element: name for name, element in ELEMENTS.items()}


@dataclass
class Recipes:
    """The result of exploring a class.

    Attributes:
        by_kind: its recipes, by the kind of the first operand.
        texts: the strings that its verifier has listed as allowed.
    """

    by_kind: dict[Kind, list[Ways]] = field(default_factory=dict[Kind, "list[Ways]"])
    texts: tuple[str, ...] = ()

    @property
    def all(self) -> list[Ways]:
        """The recipes of every kind."""
        return [each for some in self.by_kind.values() for each in some]

    def line(self, name: str) -> bytes:
        """The line of the file for a class with this name."""
        kinds = [(rank, _NAMES[element], some) for (rank, element), some in self.by_kind.items()]
        return json.dumps([name, self.texts, kinds]).encode() + b"\n"


@dataclass
class _Kept:
    """A file of recipes.

    Attributes:
        read: the number of bytes read so far.
        found: the recipes read, by class name.
    """

    path: Path
    read: int = 0
    found: dict[str, Recipes] = field(default_factory=dict[str, Recipes])

    def get(self, name: str) -> Recipes | None:
        """The recipes of a class, including those that another process has added meanwhile."""
        if name not in self.found:
            self.found.update(self._more())
        return self.found.get(name)

    def _more(self) -> Iterator[tuple[str, Recipes]]:
        begin = self.read
        try:
            with open_regular(self.path) as stream:
                stream.seek(begin)
                text = stream.read()
        except OSError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        # Two threads may read the same lines.
        self.read = begin + len(whole)
        for line in whole.splitlines():
            try:
                name, texts, kinds = cast("tuple[str, Any, Any]", json.loads(line))
                by_kind = {(int(rank), ELEMENTS[element]): some for rank, element, some in kinds}
            except (ValueError, TypeError, KeyError):
                continue
            yield name, Recipes(cast("dict[Kind, list[Ways]]", by_kind), tuple(texts))

    def add(self, name: str, recipes: Recipes) -> None:
        """Add a class, if the file can be written."""
        self.found[name] = recipes
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # One write at the end of the file, so that lines of several processes stay whole.
            kind = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK
            descriptor = os.open(self.path, kind, 0o600)
        except OSError:
            return
        try:
            os.write(descriptor, recipes.line(name))
        except OSError:
            return
        finally:
            os.close(descriptor)


def kept_recipes(cls: type[Operation]) -> Recipes | None:
    """The recipes of a class that a process has kept; None if there are none."""
    return _file(cache_folder()).get(cls.name) if _is_own(cls) else None


def keep_recipes(cls: type[Operation], recipes: Recipes) -> None:
    """Keep the recipes of a class for other processes, if it is one of abele's own."""
    if _is_own(cls):
        _file(cache_folder()).add(cls.name, recipes)


@cache
def _file(folder: Path) -> _Kept:
    return _Kept(folder / f"recipes-{_digest()}.jsonl")


@cache
def _digest() -> str:
    """A digest of everything that the recipes of abele's own classes depend on."""
    found = sha256(f"{sys.version_info[:2]} {version('xdsl')}\n".encode())
    for place in (ROOT / each for each in DEFINING):
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            found.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:24]


def _is_own(cls: type[Operation]) -> bool:
    return cls.__module__.startswith("abele.")
