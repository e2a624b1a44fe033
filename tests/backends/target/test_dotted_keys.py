"""Values of nested dataclasses by dotted key."""

from dataclasses import dataclass, field
from typing import ClassVar

from abele.backends.target.dotted_keys import (
    facts_by_key,
    flattened,
    nested,
    values_by_key,
    with_values,
)


@dataclass(frozen=True)
class Wheel:
    spokes: int = field(default=32, metadata={"unit": "one"})
    size: float = 28.0


@dataclass(frozen=True)
class Bicycle:
    name: str = "b"
    front: Wheel = field(default=Wheel())


@dataclass(frozen=True)
class Bell:
    kind: ClassVar[str] = "bell"
    kind_key: ClassVar[str] = "make"

    volume: int = field(default=3, metadata={"unit": "dB"})


@dataclass(frozen=True)
class Tandem:
    parts: tuple[Wheel | Bell, ...] = (Bell(),)


def test_parts_of_a_tuple_are_named_by_their_kinds():
    found = {"parts": "bell", "bell.make": "bell", "bell.volume": 3}
    assert dict(values_by_key(Tandem())) == found
    assert nested(Tandem()) == {"parts": "bell", "bell": {"make": "bell", "volume": 3}}
    assert with_values(Tandem(), {"bell.volume": 7}) == Tandem((Bell(7),))
    assert with_values(same := Tandem(), {"volume": 7}) is same
    assert dict(facts_by_key(Tandem())) == {"bell.volume": (int, {"unit": "dB"})}


def test_values_are_listed_by_key():
    assert dict(values_by_key(Bicycle())) == {"name": "b", "front.spokes": 32, "front.size": 28.0}
    assert nested(Bicycle()) == {"name": "b", "front": {"spokes": 32, "size": 28.0}}
    assert dict(flattened(nested(Bicycle()))) == dict(values_by_key(Bicycle()))


def test_other_values_are_put_in_by_key():
    changed = with_values(Bicycle(), {"front.size": 20, "name": "c"})
    assert changed == Bicycle("c", Wheel(32, 20.0))
    assert isinstance(changed.front.size, float)
    assert with_values(changed, {}) is changed


def test_only_fields_with_metadata_are_described():
    assert dict(facts_by_key(Bicycle())) == {"front.spokes": (int, {"unit": "one"})}
