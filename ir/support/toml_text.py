"""Reads TOML, with a message for everything that Python's parser stumbles over."""

from __future__ import annotations

import re
import tomllib
from typing import cast

from .brackets import TOML, too_deep
from .errors import InputError
from .limits import NESTED_BRACKETS

_LONG = re.compile(r"[0-9_]{4000,}")


def read_toml(text: str, file: str) -> dict[str, object]:
    """The values of a TOML text.

    Raises InputError for text that is not TOML, for nested brackets beyond the limit, and for
    integers of thousands of digits.
    """
    deep = too_deep(text, "[{", TOML)
    if deep is not None:
        line = text.count("\n", 0, deep) + 1
        raise InputError(NESTED_BRACKETS.refusal(f"{file}:{line}: nested too deeply"))
    try:
        values: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: not TOML: {error}") from error
    except ValueError as error:
        # An integer has more digits than Python converts.
        line = next((n for n, each in enumerate(text.split("\n"), 1) if _LONG.search(each)), 1)
        raise InputError(f"{file}:{line}: a number of too many digits") from error
    except RecursionError:
        # Dotted keys nest without brackets.
        raise InputError(f"{file}: nested too deeply") from None
    _check(values, file)
    return values


def _check(values: dict[str, object], file: str) -> None:
    """Raise InputError for tables nested beyond the limit."""
    most = NESTED_BRACKETS.most
    left: list[tuple[object, int, str]] = [(values, 0, "")]
    while left:
        value, depth, key = left.pop()
        if depth > most:
            raise InputError(NESTED_BRACKETS.refusal(f"{file}: {key[:40]}: nested too deeply"))
        if isinstance(value, dict):
            table = cast("dict[str, object]", value)
            left += ((inner, depth + 1, name) for name, inner in table.items())
        elif isinstance(value, list):
            left += ((inner, depth + 1, key) for inner in cast("list[object]", value))
