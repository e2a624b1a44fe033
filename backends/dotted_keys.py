"""The values of nested dataclasses by dotted key, such as "exchange.sync_cycles"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

T = TypeVar("T")


def values_by_key(part: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Each value of a dataclass and of the dataclasses inside it, by dotted key."""
    for each in fields(cast(Any, part)):
        key, value = prefix + each.name, cast(object, getattr(part, each.name))
        if is_dataclass(value):
            yield from values_by_key(value, key + ".")
        else:
            yield key, value


def flattened(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Each value of nested mappings, by dotted key."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flattened(cast(dict[str, object], value), f"{prefix}{name}.")
        else:
            yield prefix + name, value


def nested(part: object) -> dict[str, Any]:
    """The values of a dataclass as nested dictionaries."""
    result: dict[str, Any] = {}
    for each in fields(cast(Any, part)):
        value = cast(object, getattr(part, each.name))
        result[each.name] = nested(value) if is_dataclass(value) else value
    return result


def with_values(part: T, values: Mapping[str, object]) -> T:
    """A copy of a dataclass with other values. values: checked values by dotted key."""
    return cast(T, _replaced(part, "", values))


def _replaced(part: object, prefix: str, values: Mapping[str, object]) -> object:
    changes: dict[str, object] = {}
    for each in fields(cast(Any, part)):
        key, value = prefix + each.name, cast(object, getattr(part, each.name))
        if is_dataclass(value):
            if any(name.startswith(key + ".") for name in values):
                changes[each.name] = _replaced(value, key + ".", values)
        elif key in values:
            new = values[key]
            changes[each.name] = float(cast(float, new)) if isinstance(value, float) else new
    return cast(object, replace(cast(Any, part), **changes)) if changes else part


def defaults_by_key(
    kind: object, prefix: str = ""
) -> Iterator[tuple[str, tuple[type, Mapping[str, Any]]]]:
    """The type and metadata of each field that has metadata, by dotted key.

    kind: a dataclass or an instance of one; fields that are dataclasses need a default.
    """
    for each in fields(cast(Any, kind)):
        default = cast(object, each.default)
        if is_dataclass(default):
            yield from defaults_by_key(default, f"{prefix}{each.name}.")
        elif each.metadata:
            yield prefix + each.name, (type(default), each.metadata)
