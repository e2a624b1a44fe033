"""JSON files that people write, parsed with the line number of every key for error messages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .errors import InputError

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\n{}\[\],:]')

KeyPath = tuple[str | int, ...]
"""The keys and list indices that lead from the top of a file to a value."""


@dataclass(frozen=True)
class JsonText:
    """A parsed JSON file.

    Attributes:
        value: its contents.
        lines: the line of each key, by its path.
    """

    file: str
    value: object
    lines: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int])

    def place(self, *path: str | int) -> str:
        """The place of a value, to begin a message with: "plans.json:4: operators.conv1"."""
        line = next(
            (self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), 1
        )
        return f"{self.file}:{line}: {'.'.join(map(str, path))}".removesuffix(": ")


def read_json(path: str | os.PathLike[str]) -> JsonText:
    """Read and parse a JSON file. Raises InputError if it cannot be read, and as parse_json."""
    file = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text: byte {error.start}") from None
    return parse_json(text, file)


def parse_json(text: str, file: str = "<json>") -> JsonText:
    """Parse JSON text. Raises InputError for bad syntax, and for a key that an object has twice."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply") from None
    except ValueError as error:
        # A number has thousands of digits.
        raise InputError(f"{file}: not JSON: {error}") from None
    return JsonText(file, value, _lines(text, file))


def _lines(text: str, file: str) -> dict[KeyPath, int]:
    """The line of every key in valid JSON text."""
    lines: dict[KeyPath, int] = {}
    path: list[str | int] = []
    line, is_key = 1, False
    for found in TOKEN.finditer(text):
        match token := found[0]:
            case "\n":
                line += 1
            case "{":
                path.append("")
                is_key = True
            case "[":
                path.append(0)
                is_key = False
            case "}" | "]":
                path.pop()
            case ":":
                is_key = False
            case ",":
                last = path[-1]
                is_key = isinstance(last, str)
                path[-1] = last if isinstance(last, str) else last + 1
            case _ if is_key:
                path[-1] = str(json.loads(token))
                where = tuple(path)
                if where in lines:
                    raise InputError(
                        f"{file}:{line}: key {path[-1]!r} is given twice, first on line "
                        f"{lines[where]}"
                    )
                lines[where] = line
            case _:
                pass
    return lines
