"""One hostile input: files in a folder of its own, and the command that reads them."""

from __future__ import annotations

import json
import os
import shlex
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast


class Damaged(NamedTuple):
    """The bytes of a damaged file, and a description of the damage."""

    data: bytes
    description: str


@dataclass(frozen=True)
class Case:
    """One hostile input and the command that reads it.

    Attributes:
        description: the damage, in words.
        arguments: the command line without the word abele. Bytes that are not UTF-8 are surrogates,
            as in sys.argv.
        files: contents by path, relative to the folder in which the command runs.
        links: targets of symbolic links by path.
        damaged: the path of the file that shrinking makes smaller, or "" to shrink the arguments.
        compare: the path of a model. If the command accepts it, all levels and the strict machine
            have to compute the same results.
        model: the path of the model that the command reads, or "" if it reads none.
        reads_only: whether the model is read and led to nn, and the command is left out.
        target: the target of the model, or None for the model's own.
        is_source: whether the model is above the levels that abele compiles to. Then a failed
            --check is a fault of abele's; below, it is a fault of the edited program, which the
            check has found.
    """

    description: str
    arguments: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    damaged: str = ""
    compare: str = ""
    model: str = ""
    reads_only: bool = False
    target: str | None = None
    is_source: bool = False

    def write(self, folder: Path) -> None:
        """Write the files and links to a folder."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for name, target in self.links.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)

    @property
    def command(self) -> str:
        """The command line as a shell takes it. Bytes that are not UTF-8 appear as escapes."""
        words = ("abele", *self.arguments)
        return " ".join(_quoted(word) for word in words)

    def record(self) -> dict[str, Any]:
        """The case as JSON, without the contents of its files."""
        return {
            "description": self.description,
            "arguments": [b64encode(os.fsencode(each)).decode() for each in self.arguments],
            "links": dict(self.links),
            "damaged": self.damaged,
            "compare": self.compare,
            "model": self.model,
            "reads_only": self.reads_only,
            "target": self.target,
            "is_source": self.is_source,
        }

    @staticmethod
    def read(folder: Path, record: Mapping[str, Any]) -> Case:
        """The case with the files of a folder and the settings of its record."""
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
        arguments = cast("list[str]", record["arguments"])
        return Case(
            str(record["description"]),
            tuple(os.fsdecode(b64decode(each)) for each in arguments),
            files,
            cast("dict[str, str]", record["links"]),
            str(record["damaged"]),
            str(record["compare"]),
            str(record["model"]),
            bool(record["reads_only"]),
            cast("str | None", record["target"]),
            bool(record["is_source"]),
        )


def _quoted(word: str) -> str:
    if word.isprintable() and word.isascii():
        return shlex.quote(word)
    return f"$'{json.dumps(os.fsencode(word).decode('latin-1'))[1:-1]}'"
