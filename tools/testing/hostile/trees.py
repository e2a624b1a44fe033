"""Damages JSON and TOML values: tables, lists, numbers and strings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import numpy as np

Tree: TypeAlias = Any
"""Tables with text keys, lists, numbers, strings, booleans and None."""

NUMBERS: tuple[Tree, ...] = (
    *(0, -1, 1, 2, 3, 7, 255, 65536, 2**31, 2**32, 2**53 + 1, 2**60, 2**63, 2**64, -(2**70)),
    *(10**30, 10**400, 10**4999, 0.5, -0.0, 1e308, 1e-320, float("nan"), float("inf")),
)
STRINGS: tuple[str, ...] = (
    *("", " ", "\0", "a" * 70_000, "[/b]", "../../x", "/etc/passwd", "nan", "1e400", "\u202e"),
    *("{{DATA}}", "float32", "object", "V8", "mk2", "tiny:4", "amp", "*", "**", "[!", "9" * 5000),
)
WHOLE: tuple[Tree, ...] = ({}, [], None, True, False, [[]], {"": {}}, [0] * 1000, {"x": 1})

NESTED = (20, 200)
"""How deep nested lists are."""


def damage_tree(tree: Tree, random: np.random.Generator) -> tuple[Tree, str]:
    """A copy of a tree with one to three changes, and a description of them."""
    copy: Tree = json.loads(json.dumps(tree))
    done: list[str] = []
    for _ in range(int(random.integers(1, 4))):
        places = list(_places(copy))
        if not places:
            return hostile_value(random), "replace everything"
        path, holder, key = places[int(random.integers(len(places)))]
        done.append(f"{path}: {_change(holder, key, random)}")
    return copy, "; ".join(done)


def hostile_value(random: np.random.Generator) -> Tree:
    """A value that hardly any field allows."""
    choices = (NUMBERS, NUMBERS, STRINGS, WHOLE)
    chosen = choices[int(random.integers(len(choices)))]
    if random.random() < 0.02:
        value: Tree = 0
        for _ in range(NESTED[int(random.integers(len(NESTED)))]):
            value = [value]
        return value
    return chosen[int(random.integers(len(chosen)))]


def _change(holder: Any, key: Any, random: np.random.Generator) -> str:
    value = holder[key]
    what = int(random.integers(10))
    if what == 0:
        del holder[key]
        return "removed"
    if what == 1 and isinstance(holder, dict):
        table = cast("dict[str, Tree]", holder)
        new = STRINGS[int(random.integers(len(STRINGS)))] if random.random() < 0.5 else f"{key}x"
        table[new] = table.pop(key)
        return f"renamed {_short(new)}"
    if what <= 4 and isinstance(value, int | float) and not isinstance(value, bool):
        by = (-1, 1, 2, -2)[int(random.integers(4))]
        holder[key] = value + by if random.random() < 0.7 else value * by
        return f"{_short(value)} is {_short(holder[key])}"
    if what == 5 and isinstance(value, list):
        holder[key] = value * 2 if random.random() < 0.5 else value[:-1]
        return "longer or shorter"
    holder[key] = hostile_value(random)
    return f"is {_short(holder[key])}"


def _places(tree: Tree, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every value in a tree, as its path, its container, and its key in the container."""
    if isinstance(tree, dict):
        for key, value in cast("dict[str, Tree]", tree).items():
            yield f"{path}.{key}"[-60:], tree, key
            yield from _places(value, f"{path}.{key}")
    elif isinstance(tree, list):
        for key, value in enumerate(cast("list[Tree]", tree)[:20]):
            yield f"{path}[{key}]", tree, key
            yield from _places(value, f"{path}[{key}]")


def _short(value: object) -> str:
    if isinstance(value, int) and abs(value) > 10**40:
        return "a huge number"
    text = ascii(value)
    return text if len(text) <= 30 else f"{text[:27]}..."


def json_text(tree: Tree) -> bytes:
    """The JSON text of a tree, with integers of any length."""
    return _with_digits(tree).encode("utf-8", "surrogatepass")


def _with_digits(tree: Tree) -> str:
    # json.dumps fails on whole numbers of more than 4300 digits, which are hostile enough to try.
    if isinstance(tree, bool) or tree is None:
        return json.dumps(tree)
    if isinstance(tree, int):
        return digits(tree)
    if isinstance(tree, dict):
        table = cast("dict[str, Tree]", tree)
        return f"{{{', '.join(f'{json.dumps(k)}: {_with_digits(v)}' for k, v in table.items())}}}"
    if isinstance(tree, list):
        return _list_text(cast("list[Tree]", tree))
    return json.dumps(tree)


def _list_text(values: list[Tree]) -> str:
    depth = 0
    while len(values) == 1 and isinstance(values[0], list):
        values, depth = cast("list[Tree]", values[0]), depth + 1
    inner = ", ".join(_with_digits(each) for each in values)
    return "[" * (depth + 1) + inner + "]" * (depth + 1)


def digits(number: int) -> str:
    """The decimal digits of a number of any length."""
    if abs(number) < 10**4000:
        return str(number)
    high, low = divmod(abs(number), 10**4000)
    return f"{'-' if number < 0 else ''}{high}{low:04000d}"


def toml_text(tree: Tree) -> bytes:
    """The TOML text of a tree. Tables become sections; None becomes null, which is not TOML."""
    lines: list[str] = []
    is_table = isinstance(tree, dict)
    _section(cast("dict[str, Tree]", tree) if is_table else {"x": tree}, "", lines)
    return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass")


def _section(table: dict[str, Tree], path: str, lines: list[str]) -> None:
    later: list[tuple[str, dict[str, Tree]]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            later.append((key, cast("dict[str, Tree]", value)))
        else:
            lines.append(f"{_key(key)} = {_toml_value(value)}")
    for key, value in later:
        name = f"{path}.{_key(key)}" if path else _key(key)
        lines.append(f"[{name}]")
        _section(value, name, lines)


def _key(key: str) -> str:
    return key if key.isidentifier() and key.isascii() else json.dumps(key)


def _toml_value(value: Tree) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return digits(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        table = cast("dict[str, Tree]", value)
        return f"{{{', '.join(f'{_key(k)} = {_toml_value(v)}' for k, v in table.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, cast('list[Tree]', value)))}]"
    return json.dumps(value)
