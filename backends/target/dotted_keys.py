"""The values of nested dataclasses by dotted key, such as "exchange.sync_cycles".

A dataclass may hold a tuple of parts, each of a class with a `kind`. Then the part is named by its
kind, and the name of the tuple stands for the kinds, joined. A part whose class was chosen says so
under the key `kind_key` of the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from ..facts import JOIN

T = TypeVar("T")

_NO_METADATA: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Member:
    """A value or a part of a dataclass.

    Attributes:
        metadata: of the field.
        kind: the type of its default.
    """

    name: str
    value: object
    metadata: Mapping[str, Any]
    kind: type


def members(part: object) -> Iterator[Member]:
    """The values and parts of a dataclass, in the order of its fields."""
    key = str(getattr(part, "kind_key", ""))
    if key:
        yield Member(key, str(getattr(part, "kind", "")), _NO_METADATA, str)
    for each in fields(cast(Any, part)):
        value = cast(object, getattr(part, each.name))
        if isinstance(value, tuple):
            parts = cast("tuple[Any, ...]", value)
            yield Member(each.name, JOIN.join(p.kind for p in parts), _NO_METADATA, str)
            for one in parts:
                yield Member(one.kind, cast(object, one), _NO_METADATA, object)
        else:
            kind = cast(type, type(cast(object, each.default)))
            yield Member(each.name, value, each.metadata, kind)


def values_by_key(part: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Each value of a dataclass and of the dataclasses inside it, by dotted key."""
    for each in members(part):
        key = prefix + each.name
        if is_dataclass(each.value):
            yield from values_by_key(each.value, key + ".")
        else:
            yield key, each.value


def flattened(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Each value of nested mappings, by dotted key."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flattened(cast(dict[str, object], value), f"{prefix}{name}.")
        else:
            yield prefix + name, value


def nested(part: object) -> dict[str, Any]:
    """The values of a dataclass as nested dictionaries."""
    return {
        each.name: nested(each.value) if is_dataclass(each.value) else each.value
        for each in members(part)
    }


def with_values(part: T, values: Mapping[str, object]) -> T:
    """A copy of a dataclass with other values.

    Args:
        values: checked values by dotted key; what chooses a class is not among them.
    """
    return cast(T, _replaced(part, "", values))


def _replaced(part: object, prefix: str, values: Mapping[str, object]) -> object:
    changes: dict[str, object] = {}
    for each in fields(cast(Any, part)):
        value = cast(object, getattr(part, each.name))
        new = _changed(value, prefix + each.name, prefix, values)
        if new is not value:
            changes[each.name] = new
    return cast(object, replace(cast(Any, part), **changes)) if changes else part


def _changed(value: object, key: str, prefix: str, values: Mapping[str, object]) -> object:
    """A field's value with the values that belong to it; the same object if none does."""
    if isinstance(value, tuple):
        parts = cast("tuple[Any, ...]", value)
        new = tuple(_changed(one, prefix + one.kind, prefix, values) for one in parts)
        return parts if all(a is b for a, b in zip(new, parts, strict=True)) else new
    if is_dataclass(value):
        inside = any(name.startswith(key + ".") for name in values)
        return _replaced(value, key + ".", values) if inside else value
    if key not in values:
        return value
    given = values[key]
    return float(cast(float, given)) if isinstance(value, float) else given


def facts_by_key(
    part: object, prefix: str = ""
) -> Iterator[tuple[str, tuple[type, Mapping[str, Any]]]]:
    """The type and metadata of each field that has metadata, by dotted key.

    Args:
        part: a dataclass whose parts are there.
    """
    for each in members(part):
        if is_dataclass(each.value):
            yield from facts_by_key(each.value, f"{prefix}{each.name}.")
        elif each.metadata:
            yield prefix + each.name, (each.kind, each.metadata)
