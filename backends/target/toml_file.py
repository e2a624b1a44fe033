"""The text of a target's TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass

from .dotted_keys import members


def written(target: object, sources: Mapping[str, str]) -> str:
    """Every value of a target with its source as a comment.

    Args:
        sources: by dotted key.
    """
    lines: list[str] = []
    _write(target, "", sources, lines)
    return "\n".join(lines) + "\n"


def _write(part: object, prefix: str, sources: Mapping[str, str], lines: list[str]) -> None:
    tables: list[tuple[str, object]] = []
    for name, value in ((each.name, each.value) for each in members(part)):
        if is_dataclass(value):
            tables.append((prefix + name, value))
        elif isinstance(value, str):
            lines.append(f'{name} = "{value}"')
        else:
            lines.append(f"{name} = {value!r}  # {sources[prefix + name]}")
    for name, value in tables:
        lines.extend(["", f"[{name}]"])
        _write(value, name + ".", sources, lines)


def line_of(text: str, key: str) -> int:
    """The line of a TOML text that sets a dotted key, counted from 1; 0 if none does."""
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            section = _plain(stripped.strip("[]").partition("]")[0]) + "."
            if key == section[:-1]:
                return number
        name = section + _plain(stripped.partition("=")[0])
        if "=" in stripped and (name == key or key.startswith(name + ".")):
            return number
    return 0


def _plain(key: str) -> str:
    """A dotted TOML key without blanks and quotes."""
    return ".".join(part.strip().strip("\"'") for part in key.split("."))
