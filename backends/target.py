"""The machine as a parameter: a target is a set of facts, from a preset or from a user's TOML file.

Every number has a source and a confidence (see `facts.py`). No other part of abele knows how many
tiles a machine has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, cast

from ..ir.support.errors import InputError
from ..ir.support.hash_once import hash_once
from ..ir.support.suggestions import suggestion
from ..ir.support.toml_text import read_toml
from ..ir.support.user_entries import add_entry
from .dotted_keys import defaults_by_key, flattened, nested, values_by_key, with_values
from .facts import (
    MEASURED,
    PUBLISHED,
    Amp,
    Code,
    ConvUnits,
    Copy,
    Exchange,
    Fitted,
    Host,
    Lookup,
    Mac,
    Measuring,
    Memory,
    Outer,
    Reduction,
    Slic,
    Sorting,
    Vector,
    fact,
)
from .presets import DEFAULT_TARGET as DEFAULT_TARGET
from .presets import PRESET_SOURCES, PRESET_VALUES, WITHOUT_CHIP
from .target_toml import line_of, written

MOST_TILES = 1_000_000
"""Tiles that a target may have. A round bound of ours, far above any chip."""

MOST_DIGITS = 100
"""Digits of a number of tiles that is read at all."""


@hash_once
@dataclass(frozen=True)
class Target:
    """A tile machine.

    base: the preset it started from. name: what reports call it (letters, digits, `_.-`).
    Raises InputError when a value is outside what its field allows.
    """

    base: str
    name: str
    tiles: int = fact(1472, PUBLISHED, "Graphcore, Hot Chips 2021", (1, MOST_TILES))
    workers: int = fact(6, PUBLISHED, "8832 threads on 1472 tiles", (1, 64))
    clock_hz: float = fact(1.325e9, MEASURED, "Elk artifact; 1.33e9 also quoted", (1, 1e12))
    memory: Memory = field(default=Memory())
    code: Code = field(default=Code())
    exchange: Exchange = field(default=Exchange())
    amp: Amp = field(default=Amp())
    slic: Slic = field(default=Slic())
    mac: Mac = field(default=Mac())
    outer: Outer = field(default=Outer())
    vector: Vector = field(default=Vector())
    reduction: Reduction = field(default=Reduction())
    lookup: Lookup = field(default=Lookup())
    sorting: Sorting = field(default=Sorting())
    copy: Copy = field(default=Copy())
    host: Host = field(default=Host())
    measuring: Measuring = field(default=Measuring())
    fitted: Fitted = field(default=Fitted())

    def __post_init__(self) -> None:
        for path, value in _flat(self):
            problem = _problem(path, value)
            if problem:
                raise InputError(f"target {self.name!r}: {problem}")
        if self.memory.reserved_bytes >= self.memory.bytes_per_tile:
            raise InputError(
                f"target {self.name!r}: memory.reserved_bytes: {self.memory.reserved_bytes}; "
                f"need less than memory.bytes_per_tile: {self.memory.bytes_per_tile}"
            )

    @property
    def bytes_per_tile(self) -> int:
        """The memory of a tile."""
        return self.memory.bytes_per_tile

    @property
    def usable_bytes_per_tile(self) -> int:
        """The bytes of a tile that variables may occupy."""
        return self.memory.bytes_per_tile - self.memory.reserved_bytes

    def conv_units(self, dtype_name: str, partials_name: str) -> ConvUnits | None:
        """The conv units for these dtypes, or None if the machine has none.

        Assumed: bfloat16 costs what float16 costs, and all 8-bit floats cost the same.
        """
        table = {
            ("float16", "float16"): self.amp.float16_float16,
            ("float16", "float32"): self.amp.float16_float32,
            ("bfloat16", "bfloat16"): self.amp.float16_float16,
            ("bfloat16", "float32"): self.amp.float16_float32,
            ("float32", "float32"): self.amp.float32_float32,
            ("float8", "float16"): self.amp.float8_float16,
        }
        operand = "float8" if dtype_name.startswith("float8") else dtype_name
        units = table.get((operand, partials_name))
        return units if units is not None and units.units else None

    @property
    def chips(self) -> int:
        """How many chips of the preset have as many tiles; 1 for a preset that is no chip."""
        if self.base in WITHOUT_CHIP:
            return 1
        return -(-self.tiles // PRESETS[self.base].tiles)

    @property
    def unpriced(self) -> str:
        """What no price of a program on this target includes, in a sentence; "" if there is
        nothing to say."""
        if self.chips == 1:
            return ""
        return (
            f"{self.label()} has as many tiles as {self.chips} chips, and no links between chips "
            "are priced: cycles are those of one chip of that size"
        )

    def uncalibrated(self) -> Target:
        """The same machine without its fitted constants."""
        return with_values(self, {f"fitted.{each.name}": 0 for each in fields(Fitted)})

    def overrides(self) -> dict[str, object]:
        """The values that differ from the preset, by dotted key, sorted."""
        preset = dict(_flat(_preset(self.base)))
        return {key: value for key, value in sorted(_flat(self)) if value != preset[key]}

    def spelling(self) -> str:
        """The shortest text that `resolve_target` reads back as an equal target.

        Example: `mk2:64,exchange.sync_cycles=200`
        """
        return self._spelled

    @cached_property
    def _spelled(self) -> str:
        overrides = self.overrides()
        tiles = overrides.pop("tiles", None)
        head = self.base if tiles is None else f"{self.base}:{tiles}"
        return ",".join([head, *(f"{key}={value}" for key, value in overrides.items())])

    @property
    def file(self) -> str:
        """The TOML file that the target was read from; "" if there is none."""
        return self.__dict__.get("_file", "")

    def read_from(self, path: str) -> Target:
        """An equal target that says from which file it was read."""
        copy = replace(self)
        # Not a field: two files may describe the same machine.
        object.__setattr__(copy, "_file", path)
        return copy

    def label(self) -> str:
        """What reports call the target: its name and file if it has a file, else its spelling."""
        own = USERS_TARGETS.get(self.name)
        file = self.file or (own.file if own is not None and own == self else "")
        if not file:
            return self.spelling()
        return f"{file} (from {self.base})" if self.name == self.base else f"{self.name} ({file})"

    def to_dict(self) -> dict[str, Any]:
        """Every value, nested as the fields are."""
        return nested(self)

    def to_toml(self) -> str:
        """Every value with its confidence and source, as a file that `from_toml` reads."""
        sources = {
            key: f"{metadata['confidence']}: {metadata['source']}"
            for key, (_, metadata) in _facts().items()
        }
        sources |= PRESET_SOURCES.get(self.base, {})
        sources |= dict.fromkeys(self.overrides(), f"given, not the preset's of {self.base}")
        return written(self, sources)

    @staticmethod
    def from_toml(text: str, file: str = "<text>") -> Target:
        """A target from TOML: `base`, the name of a preset, and the values that differ from it.

        Raises InputError that names the file, line and key, and says what is allowed.
        """
        values = read_toml(text, file)
        if "base" not in values:
            raise InputError(
                f'{file}: no base; need a line such as base = "mk2", with one of {_preset_names()}'
            )
        base = values.pop("base")
        if not isinstance(base, str) or base not in PRESETS:
            line = line_of(text, "base")
            where = f"{file}:{line}" if line else file
            raise InputError(f"{where}: base: {base!r}; need one of {_preset_names()}")
        overrides: dict[str, object] = {}
        preset = _preset(base)
        known = dict(_flat(preset))
        for key, value in flattened(values):
            problem = _unknown(key, known) or _problem(key, value)
            if problem:
                raise InputError(f"{file}:{line_of(text, key)}: {problem}")
            overrides[key] = value
        try:
            return with_values(preset, overrides)
        except InputError as error:
            # Values that are allowed one by one may contradict each other.
            lines = (line_of(text, key) for key in overrides if f"{key}:" in str(error))
            where = f"{file}:{line}" if (line := next(lines, 0)) else file
            raise InputError(f"{where}: {error}") from error


# Which keys and values a target has.


def _flat(target: Target) -> Iterator[tuple[str, object]]:
    """Every value by dotted key, without `base`."""
    return (pair for pair in values_by_key(target) if pair[0] != "base")


@lru_cache(maxsize=1)
def _facts() -> dict[str, tuple[type, Mapping[str, Any]]]:
    """The type and metadata of every number, by dotted key."""
    return dict(defaults_by_key(Target))


def _unknown(key: str, known: Mapping[str, object]) -> str:
    """Why a key names no value, or ''."""
    if key in known:
        return ""
    if any(name.startswith(key + ".") for name in known):
        return f"{key}: a table, not a value"
    section = key.rpartition(".")[0]
    near = [name for name in known if name.rpartition(".")[0] == section]
    near = near or list(dict.fromkeys(name.partition(".")[0] for name in known))
    return f"{key}: no such key; need one of {', '.join(near)}{suggestion(key, list(known))}"


def _problem(key: str, value: object) -> str:
    """Why a value is not allowed for a key, or ''."""
    if key == "name":
        good = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w.-]*", value, re.ASCII)
        return "" if good else f"name: {value!r}; need a letter, then letters, digits, '_.-'"
    kind, metadata = _facts()[key]
    low, high = cast(tuple[float, float], metadata["allowed"])
    needed = f"need {'an integer' if kind is int else 'a number'} in {low:g}..{high:g}"
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        return f"{key}: {_shown(value)}; {needed}"
    return "" if low <= value <= high else f"{key}: {_shown(value)}; {needed}"


def _shown(value: object) -> str:
    """A value for a message. Python prints no integer of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return "an integer of thousands of digits"


def _of_preset(name: str) -> Target:
    return with_values(
        Target(base=name, name=name), {key: own.value for key, own in PRESET_VALUES[name].items()}
    )


PRESETS: Mapping[str, Target] = {name: _of_preset(name) for name in PRESET_VALUES}
MK2 = PRESETS["mk2"]

USERS_TARGETS: dict[str, Target] = {}
"""Targets of extensions, by name. A target is spelled by what differs from its preset."""


def register_target(target: Target, owner: str) -> None:
    """Let users refer to a target by its name. Raises InputError if the name is taken."""
    add_entry(USERS_TARGETS, "target", target.name, target, owner, reserved=PRESETS)


def resolve_target(text: str) -> Target:
    """The target that a user names. Only text that a user gives may name a file.

    text: a preset or a target of an extension (`mk2`), one with another tile count (`mk2:64`), one
    with other values (`mk2:64,exchange.sync_cycles=200`, as `Target.spelling` writes), or the path
    of a TOML file. A target counts before a file of the same name.
    Raises InputError.
    """
    if text.endswith(".toml") or (_start(text) is None and _is_file(text)):
        return _from_file(text)
    if _start(text) is None:
        raise _unknown_name(text, ", or the path of a .toml file")
    return named_target(text)


def named_target(text: str) -> Target:
    """The target that the text of a program or record names. No file is read.

    text: as for `resolve_target`, without the path of a file. Raises InputError.
    """
    start = _start(text)
    if start is not None:
        return _changed(start, text)
    if text.endswith(".toml"):
        raise InputError(
            f"target {text!r}: a program cannot name a file; need one of {_names()}, as NAME, "
            f"NAME:TILES or NAME,KEY=VALUE; or remove it and give --target {text}"
        )
    raise _unknown_name(text, "")


def _start(text: str) -> Target | None:
    """The target that a text begins with, or None."""
    base = text.partition(",")[0].partition(":")[0]
    return USERS_TARGETS.get(base) or PRESETS.get(base)


def _unknown_name(text: str, more: str) -> InputError:
    base = text.partition(",")[0].partition(":")[0]
    return InputError(
        f"target {text!r}: {base!r} is not a preset; need one of {_names()}, as NAME or "
        f"NAME:TILES{more}"
    )


def _names() -> str:
    return ", ".join([*PRESETS, *USERS_TARGETS])


@lru_cache(maxsize=256)
def _changed(start: Target, text: str) -> Target:
    """The target that a text describes: the name of a target, and what to change in it."""
    head, *settings = text.split(",")
    _, colon, tiles = head.partition(":")
    overrides: dict[str, object] = {}
    if colon:
        # Python reads no integer of thousands of digits.
        if not tiles.isascii() or not tiles.isdigit() or len(tiles) > MOST_DIGITS:
            raise InputError(f"target {text!r}: {_problem('tiles', tiles)}")
        overrides["tiles"] = int(tiles)
    known = dict(_flat(start)) if settings else {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        problem = "" if equals else f"{setting!r}: need KEY=VALUE"
        parsed = _value_of(value)
        problem = problem or _unknown(key, known) or _problem(key, parsed)
        if problem:
            raise InputError(f"target {text!r}: {problem}")
        overrides[key] = parsed
    return with_values(start, overrides)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        # Some texts are no paths, such as very long ones.
        return False


def _from_file(path: str) -> Target:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"target {path!r}: cannot be read: {_reason(error)}") from error
    return Target.from_toml(text, path).read_from(path)


def _preset(base: str) -> Target:
    if base not in PRESETS:
        raise InputError(f"target: base {base!r}; need one of {_preset_names()}")
    return PRESETS[base]


def _preset_names() -> str:
    return ", ".join(PRESETS)


def _value_of(text: str) -> object:
    """The value of a TOML literal; the text itself if it is not one."""
    try:
        return read_toml(f"value = {text}", "a value")["value"]
    except InputError:
        return text
