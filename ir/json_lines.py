"""JSON that people write: what it says, and the line of every key, for messages about it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .errors import InputError

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\n{}\[\],:]')

Way = tuple[str | int, ...]
"""The keys, and numbers in lists, that lead to a value."""


@dataclass(frozen=True)
class JsonText:
    """A JSON file that was read. value: what it says. lines: of each key, by the way to it."""

    file: str
    value: object
    lines: Mapping[Way, int] = field(default_factory=dict[Way, int])

    def place(self, *way: str | int) -> str:
        """Where a value stands, for the head of a message: "plans.json:4: operators.conv1"."""
        line = next(
            (self.lines[way[:n]] for n in range(len(way), 0, -1) if way[:n] in self.lines), 1
        )
        return f"{self.file}:{line}: {'.'.join(map(str, way))}".removesuffix(": ")


def read_json(path: str | os.PathLike[str]) -> JsonText:
    """A JSON file. Raises InputError for one that cannot be read, and as parse_json."""
    file = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: no UTF-8 text: byte {error.start}") from None
    return parse_json(text, file)


def parse_json(text: str, file: str = "<json>") -> JsonText:
    """What a text of JSON says. Raises InputError for bad syntax and for a key given twice."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{file}:{error.lineno}:{error.colno}: no JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply") from None
    except ValueError as error:
        # A number of thousands of digits.
        raise InputError(f"{file}: no JSON: {error}") from None
    return JsonText(file, value, _lines(text, file))


def _lines(text: str, file: str) -> dict[Way, int]:
    """The line of every key of a text that is JSON."""
    lines: dict[Way, int] = {}
    way: list[str | int] = []
    line, is_key = 1, False
    for found in TOKEN.finditer(text):
        match token := found[0]:
            case "\n":
                line += 1
            case "{":
                way.append("")
                is_key = True
            case "[":
                way.append(0)
                is_key = False
            case "}" | "]":
                way.pop()
            case ":":
                is_key = False
            case ",":
                last = way[-1]
                is_key = isinstance(last, str)
                way[-1] = last if isinstance(last, str) else last + 1
            case _ if is_key:
                way[-1] = str(json.loads(token))
                where = tuple(way)
                if where in lines:
                    raise InputError(
                        f"{file}:{line}: {way[-1]!r} a second time, after line {lines[where]}"
                    )
                lines[where] = line
            case _:
                pass
    return lines
