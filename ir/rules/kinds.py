"""The kinds of names and expressions in a rule: which can be used where, and their names."""

from __future__ import annotations

from typing import cast


def kind_of_value(value: object) -> str:
    """The kind of a literal."""
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        if any(isinstance(each, str) for each in items):
            return "any"
        return "ints" if all(isinstance(each, int) for each in items) else "floats"
    return _LITERALS.get(type(value), "any")


_LITERALS: dict[type, str] = {
    type(None): "none",
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
}

_WIDER: dict[str, tuple[str, ...]] = {
    "int": ("float",),
    "ints": ("floats",),
    "op": ("value",),
}
"""For each kind, other kinds that it can be used as."""


def fits(kind: str, wanted: str) -> bool:
    """True if a kind can be used where another is needed. "any" is checked when the rule runs."""
    return "any" in (kind, wanted) or kind == wanted or wanted in _WIDER.get(kind, ())


_WORDS = {
    "value": "a value",
    "values": "several values",
    "op": "an operation",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "ints": "a list of whole numbers",
    "floats": "a list of numbers",
    "attribute": "an attribute",
    "any": "anything",
    "none": "none",
}


def a_kind(kind: str) -> str:
    """A kind in words: "a whole number"."""
    return _WORDS[kind]
