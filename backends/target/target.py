"""The machine as a parameter: a target is a set of facts, from a preset or from a user's TOML file.

Every number has a source and a confidence (see `facts.py`). No other part of abele knows how many
tiles a machine has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.support.hash_once import hash_once
from ...ir.support.suggestions import suggestion
from ...ir.support.user_entries import add_entry
from ..fabrics.crossbar import Crossbar
from ..fabrics.fabric import Fabric
from ..fabrics.table import FABRICS, fabric_named
from ..facts import (
    ASSUMED,
    JOIN,
    MEASURED,
    PUBLISHED,
    UNITS,
    Amp,
    Area,
    Blocks,
    Code,
    ConvUnits,
    Copy,
    Energy,
    Fitted,
    Host,
    Lookup,
    Mac,
    Measuring,
    Memory,
    Outer,
    Packed,
    Reduction,
    Remote,
    Rounding,
    Slic,
    Sorting,
    Storage,
    Unit,
    Vector,
    fact,
    pair_of,
)
from ..links.links import Links
from ..links.table import TOPOLOGIES, topology_named
from .dotted_keys import facts_by_key, flattened, nested, values_by_key, with_values
from .presets import CHIP_OF, JOINED, PRESET_SOURCES, PRESET_VALUES, WITHOUT_CHIP
from .presets import DEFAULT_TARGET as DEFAULT_TARGET

with deferred(__name__):
    from ...ir.support.toml_text import read_toml
    from ..links.some_chips import SomeChips
    from .partition import partition_links
    from .toml_file import line_of, written

MOST_TILES = 1_000_000
"""Tiles that a target may have. A round bound of ours, far above any chip."""

PARTITION = "partition"
"""The table of a target's TOML file that describes a partition of its base."""

MOST_DIGITS = 100
"""Digits of a number of tiles that is read at all."""


U = TypeVar("U", bound=Unit)


@hash_once
@dataclass(frozen=True)
class Target:
    """A tile machine.

    Raises InputError when a value is outside what its field allows.

    Attributes:
        base: the preset it started from.
        name: what reports call it (letters, digits, `_.-`).
        exchange: the fabric, which prices exchanges and syncs.
        tiles: of all chips.
        units: what computes contractions; they decide which methods the machine has.
        links: how many chips there are, and what joins them.
    """

    base: str
    name: str
    tiles: int = fact(1472, PUBLISHED, "Graphcore, Hot Chips 2021", (1, MOST_TILES))
    workers: int = fact(6, PUBLISHED, "8832 threads on 1472 tiles", (1, 64))
    io_tiles: int = fact(
        0,
        ASSUMED,
        "a choice: tiles of each chip that are kept aside for traffic with the host",
        (0, MOST_TILES),
    )
    clock_hz: float = fact(1.325e9, MEASURED, "Elk artifact; 1.33e9 also quoted", (1, 1e12))
    memory: Memory = field(default=Memory())
    code: Code = field(default=Code())
    exchange: Fabric = field(default=Crossbar())
    links: Links = field(default=Links())
    units: tuple[Unit, ...] = (Amp(), Slic(), Mac(), Outer())
    vector: Vector = field(default=Vector())
    reduction: Reduction = field(default=Reduction())
    lookup: Lookup = field(default=Lookup())
    sorting: Sorting = field(default=Sorting())
    blocks: Blocks = field(default=Blocks())
    packed: Packed = field(default=Packed())
    copy: Copy = field(default=Copy())
    rounding: Rounding = field(default=Rounding())
    host: Host = field(default=Host())
    storage: Storage = field(default=Storage())
    remote: Remote = field(default=Remote())
    energy: Energy = field(default=Energy())
    area: Area = field(default=Area())
    measuring: Measuring = field(default=Measuring())
    fitted: Fitted = field(default=Fitted())

    def __post_init__(self) -> None:
        known = _facts(self)
        for path, value in _flat(self):
            problem = "" if path in _CHOICES else _problem(path, value, known)
            if problem:
                raise InputError(f"target {self.name!r}: {problem}")
        if self.exchange.timetables and not self.exchange.has_timetables:
            raise InputError(
                f"target {self.name!r}: exchange.timetables: 1 with a {self.exchange.kind}, whose "
                "links a timetable does not know; need 0"
            )
        if problem := self._problem_of_chips():
            raise InputError(f"target {self.name!r}: {problem}")
        if self.memory.reserved_bytes >= self.memory.bytes_per_tile:
            raise InputError(
                f"target {self.name!r}: memory.reserved_bytes: {self.memory.reserved_bytes}; "
                f"need less than memory.bytes_per_tile: {self.memory.bytes_per_tile}"
            )

    def _problem_of_chips(self) -> str:
        """Why the machine cannot have its number of chips; "" if it can."""
        if self.links.problem:
            return f"links.chips: {self.links.problem}"
        if self.links.chips > 1 and not self.exchange.several_chips:
            return f"links.chips: {self.links.chips} with a {self.exchange.kind}; need one chip"
        if self.tiles % self.links.chips:
            return f"tiles: {self.tiles} on {self.links.chips} chips; need a multiple"
        return self._problem_of_io_tiles()

    def _problem_of_io_tiles(self) -> str:
        """Why the machine cannot keep its number of tiles aside; "" if it can."""
        if self.io_tiles >= self.tiles_per_chip:
            return f"io_tiles: {self.io_tiles} of a chip of {self.tiles_per_chip}; need fewer"
        return ""

    @property
    def chips(self) -> int:
        """The number of chips."""
        return self.links.chips

    @cached_property
    def one_chip(self) -> Target:
        """A target with one of the chips; itself if it has no more."""
        if self.chips == 1:
            return self
        return replace(self, tiles=self.tiles_per_chip, links=Links())

    def with_chips(self, chips: int) -> Target:
        """The machine of its first chips; if it has one chip, a machine of several.

        Raises InputError for more chips than it has, and for a number that its topology cannot
        have.
        """
        if chips == self.chips:
            return self
        if self.chips > 1:
            if chips > self.chips:
                raise InputError(f"{chips:,} chips; {self.called} has {self.chips:,}")
            links = self.links.part(chips)
        elif self.links.kind != Links.kind:
            links = replace(self.links, chips=chips)
        else:
            joined = {key: own.value for key, own in JOINED[CHIP_OF[self.base]].items()}
            pod = _with(self, joined, lambda _, problem: InputError(problem))
            links = pod.links.part(chips)
        if links.problem:
            raise InputError(links.problem)
        found = replace(self, tiles=chips * self.tiles_per_chip, links=links)
        return found.as_preset()

    def as_preset(self) -> Target:
        """The preset that is the same machine; itself if there is none, or if it has a name of its
        own."""
        if self.name != self.base:
            return self
        for name, values in PRESET_VALUES.items():
            own = values.get("links.chips")
            if (1 if own is None else own.value) == self.chips:
                preset = PRESETS[name]
                if replace(self, base=name, name=name) == preset:
                    return preset
        return self

    def some_chips(self, first: int, count: int, apart: int) -> Target:
        """A target with some of the chips, which keep the links of this one.

        Raises InputError for chips that this target does not have.

        Args:
            first: the first chip.
            count: how many chips.
            apart: the distance from a chip to the next.
        """
        last = first + (count - 1) * apart
        if last >= self.chips:
            raise InputError(
                f"chips up to {last}; target {self.called} has "
                + (f"chips 0..{self.chips - 1}" if self.chips > 1 else "one chip, 0")
            )
        if count == 1:
            return self.one_chip
        if count == self.chips:
            return self
        links = SomeChips(chips=count, first=first, apart=apart, whole=self.links)
        return replace(self, tiles=count * self.tiles_per_chip, links=links)

    @cached_property
    def computing(self) -> Target:
        """The machine without the tiles that are kept aside; itself if there are none.

        Its chips have the first tiles of those of this one.
        """
        if not self.io_tiles:
            return self
        return replace(self, tiles=self.tiles - self.io_tiles * self.chips, io_tiles=0)

    def is_aside(self, tile: int) -> bool:
        """Whether a tile is kept aside."""
        return bool(self.are_aside(np.array([tile]))[0])

    def are_aside(self, tiles: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each tile is kept aside. Tiles that the machine does not have are not."""
        first = self.tiles_per_chip - self.io_tiles
        return (tiles < self.tiles) & (tiles % self.tiles_per_chip >= first)

    @property
    def remote_bytes(self) -> int:
        """The bytes of remote memory of all chips."""
        return self.remote.bytes * self.chips

    @property
    def tiles_per_chip(self) -> int:
        """The tiles of one chip. Tile t is on chip t // tiles_per_chip."""
        return self.tiles // self.links.chips

    @property
    def bytes_per_tile(self) -> int:
        """The memory of a tile."""
        return self.memory.bytes_per_tile

    @property
    def usable_bytes_per_tile(self) -> int:
        """The bytes of a tile that variables may occupy."""
        return self.memory.bytes_per_tile - self.memory.reserved_bytes

    def unit(self, kind: type[U]) -> U:
        """One of the units. Raises InputError if the machine has none of this kind."""
        for each in self.units:
            if isinstance(each, kind):
                return each
        raise InputError(
            f"target {self.called}: no unit {kind.kind!r}; it has "
            f"{', '.join(each.kind for each in self.units)}"
        )

    def has_unit(self, kind: type[Unit]) -> bool:
        """Whether the machine has a unit of this kind."""
        return any(isinstance(each, kind) for each in self.units)

    @cached_property
    def amp(self) -> Amp:
        """The conv units. Raises InputError if the machine has none."""
        return self.unit(Amp)

    @cached_property
    def slic(self) -> Slic:
        """The window mode of the conv units. Raises InputError if the machine has none."""
        return self.unit(Slic)

    @cached_property
    def mac(self) -> Mac:
        """Dot products on the workers. Raises InputError if the machine has none."""
        return self.unit(Mac)

    @cached_property
    def outer(self) -> Outer:
        """Outer products on the workers. Raises InputError if the machine has none."""
        return self.unit(Outer)

    def conv_units(self, dtype_name: str, partials_name: str) -> ConvUnits | None:
        """The conv units for these dtypes, or None if the machine has none."""
        pair = pair_of(dtype_name, partials_name)
        if pair is None or not self.has_unit(Amp):
            return None
        units = cast(ConvUnits, getattr(self.amp, pair))
        return units if units.units else None

    def terms_of_a_pass(self, dtype_name: str) -> int:
        """How many products of floats of 8 or 16 bits the conv units add before they round the sum
        to 16 bits; 1 if the machine has no units that do."""
        sums = "float16" if dtype_name.startswith("float8") else dtype_name
        units = self.conv_units(dtype_name, sums)
        return 1 if units is None else units.in_grain

    @property
    def unpriced(self) -> str:
        """What no price of a program on this target includes, in a sentence; "" if there is
        nothing to say."""
        if self.base in WITHOUT_CHIP:
            return ""
        own = PRESETS[self.base].tiles_per_chip
        if self.tiles_per_chip <= own:
            return ""
        have = -(-self.tiles_per_chip // own)
        return (
            f"{self.label()} has as many tiles as {have} chips, and no links between them are "
            "priced: cycles are those of one chip of that size; give it links.chips and "
            "links.topology to price links"
        )

    def uncalibrated(self) -> Target:
        """The same machine without its fitted constants."""
        return with_values(self, {f"fitted.{each.name}": 0 for each in fields(Fitted)})

    def overrides(self) -> dict[str, object]:
        """The values that differ from the preset, by dotted key, sorted."""
        preset = _preset(self.base)
        usual = dict(_flat(_with_classes(preset, _Classes.of(self))))
        usual |= {key: value for key, value in _flat(preset) if key in _CHOICES}
        return {key: value for key, value in sorted(_flat(self)) if value != usual[key]}

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

    @property
    def called(self) -> str:
        """What messages call the target: its own name, or else what reports call it.

        A target that is read from a file without a name has the name of its base, which is another
        machine.
        """
        return self.label() if self.name == self.base else self.name

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
            for key, (_, metadata) in _facts(self).items()
        }
        own = PRESET_SOURCES.get(self.base, {})
        sources |= {key: source for key, source in own.items() if key in sources}
        sources |= dict.fromkeys(self.overrides(), f"given, not the preset's of {self.base}")
        return written(self, sources)

    @staticmethod
    def from_toml(text: str, file: str = "<text>") -> Target:
        """A target from TOML: `base`, the name of a preset, the values that differ from it, and
        perhaps a partition of it.

        Raises InputError that names the file, line and key, and says what is allowed.
        """
        values = read_toml(text, file)
        if "base" not in values:
            raise InputError(
                f'{file}: no base; need a line such as base = "mk2", with one of {_preset_names()}'
            )
        base, partition = values.pop("base"), values.pop(PARTITION, None)
        if not isinstance(base, str) or base not in PRESETS:
            line = line_of(text, "base")
            where = f"{file}:{line}" if line else file
            raise InputError(f"{where}: base: {base!r}; need one of {_preset_names()}")
        overrides = dict(flattened(values))

        def refuse(key: str, problem: str) -> InputError:
            return InputError(f"{file}:{line_of(text, key)}: {problem}")

        target, numbers = _checked(_preset(base), overrides, refuse)
        try:
            target = with_values(target, numbers)
        except InputError as error:
            # Values that are allowed one by one may contradict each other.
            lines = (line_of(text, key) for key in overrides if f"{key}:" in str(error))
            where = f"{file}:{line}" if (line := next(lines, 0)) else file
            raise InputError(f"{where}: {error}") from error

        def refuse_inside(key: str, problem: str) -> InputError:
            name = f"{PARTITION}.{key}" if key else PARTITION
            return refuse(name, f"{name}: {problem}")

        if partition is None:
            return target
        links = partition_links(
            target.base,
            target.chips,
            lambda chips: target.with_chips(chips).links,
            partition,
            refuse_inside,
        )
        return replace(target.with_chips(links.chips), links=links)


# Which keys and values a target has.

_FABRIC, _UNITS, _LINKS = "exchange.fabric", "units", "links.topology"
_CHOICES: Mapping[str, Mapping[str, object]] = {
    _FABRIC: FABRICS,
    _UNITS: UNITS,
    _LINKS: TOPOLOGIES,
}
"""The keys that name classes of parts. The other keys of such a part follow from its class."""

Facts = Mapping[str, tuple[type, Mapping[str, Any]]]


def _flat(target: Target) -> Iterator[tuple[str, object]]:
    """Every value by dotted key, without `base`, and without those of a machine of more chips."""
    return (
        pair
        for pair in values_by_key(target)
        if pair[0] != "base" and not pair[0].startswith("links.whole.")
    )


class _Classes(NamedTuple):
    """The classes of the parts whose class a target names."""

    exchange: type[Fabric]
    units: tuple[type[Unit], ...]
    links: type[Links]

    @staticmethod
    def of(target: Target) -> _Classes:
        units = tuple(type(each) for each in target.units)
        return _Classes(type(target.exchange), units, type(target.links))


_FACTS: dict[_Classes, Facts] = {}


def _facts(target: Target) -> Facts:
    """The type and metadata of every number, by dotted key."""
    classes = _Classes.of(target)
    if classes not in _FACTS:
        _FACTS[classes] = dict(facts_by_key(target))
    return _FACTS[classes]


Refuse = Callable[[str, str], InputError]
"""The error for a key, or the text of a key, and its problem."""


def changed_target(target: Target, values: Mapping[str, object]) -> Target:
    """A target with other values, by dotted key. Raises InputError for what is not allowed."""
    return _with(target, values, lambda _, problem: InputError(problem))


def known_keys(target: Target) -> Iterator[str]:
    """The dotted keys of the values that changed_target can change, without renaming it."""
    return (key for key, _ in _flat(target) if key != "name")


def _with(target: Target, values: Mapping[str, object], refuse: Refuse) -> Target:
    """A target with other values, by dotted key. Raises InputError."""
    return with_values(*_checked(target, values, refuse))


def _checked(
    target: Target, values: Mapping[str, object], refuse: Refuse
) -> tuple[Target, dict[str, object]]:
    """A target with the parts that values name, and the other values, all allowed.

    A part that the target does not have yet begins with the defaults of its class.
    """
    for key in _CHOICES:
        if key in values and (problem := _no_choice(key, values[key])):
            raise refuse(key, problem)
    classes = _Classes.of(target)
    if _FABRIC in values:
        classes = classes._replace(exchange=fabric_named(str(values[_FABRIC])))
    if _UNITS in values:
        units = tuple(UNITS[kind] for kind in str(values[_UNITS]).split(JOIN))
        classes = classes._replace(units=units)
    if _LINKS in values:
        classes = classes._replace(links=topology_named(str(values[_LINKS])))
    target = _with_classes(target, classes)
    known, facts = dict(_flat(target)), _facts(target)
    numbers = {key: value for key, value in values.items() if key not in _CHOICES}
    for key, value in numbers.items():
        problem = _unknown(key, known) or _problem(key, value, facts)
        if problem:
            raise refuse(key, problem)
    return target, numbers


def _with_classes(target: Target, classes: _Classes) -> Target:
    """A target whose parts are of these classes. A part that it has stays as it is."""
    changes: dict[str, Any] = {}
    own = _Classes.of(target)
    if own.exchange is not classes.exchange:
        changes["exchange"] = classes.exchange()
    if own.links is not classes.links:
        changes["links"] = classes.links()
    if own.units != classes.units:
        have = {type(each): each for each in target.units}
        changes["units"] = tuple(have.get(each) or each() for each in classes.units)
    return replace(target, **changes) if changes else target


def _no_choice(key: str, value: object) -> str:
    """Why a value names no class of a part; or ''."""
    several, table = key == _UNITS, _CHOICES[key]
    names = str(value).split(JOIN) if several else [str(value)]
    if isinstance(value, str) and len(set(names)) == len(names) and table.keys() >= set(names):
        return ""
    joined = f", or several, joined by {JOIN!r}" if several else ""
    need = f"need one of {', '.join(table)}{joined}, or --load the file that defines it"
    return f"{key}: {_shown(value)}; {need}"


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


def _problem(key: str, value: object, facts: Facts) -> str:
    """Why a value is not allowed for a key, or ''."""
    if key == "name":
        good = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w.-]*", value, re.ASCII)
        return "" if good else f"name: {value!r}; need a letter, then letters, digits, '_.-'"
    kind, metadata = facts[key]
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
    values = {key: own.value for key, own in PRESET_VALUES[name].items()}
    return _with(Target(base=name, name=name), values, lambda _, problem: InputError(problem))


class _Presets(Mapping[str, Target]):
    """The preset targets by name, each of which is made when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Target] = {}

    def __getitem__(self, name: str) -> Target:
        if name not in self._made:
            self._made[name] = _of_preset(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PRESET_VALUES)

    def __len__(self) -> int:
        return len(PRESET_VALUES)


PRESETS: Mapping[str, Target] = _Presets()
MK2 = PRESETS["mk2"]

USERS_TARGETS: dict[str, Target] = {}
"""Targets of extensions, by name. A target is spelled by what differs from its preset."""


def register_target(target: Target, owner: str) -> None:
    """Let users refer to a target by its name. Raises InputError if the name is taken."""
    add_entry(USERS_TARGETS, "target", target.name, target, owner, reserved=PRESETS)


def resolve_target(text: str) -> Target:
    """The target that a user names. Only text that a user gives may name a file.

    Raises InputError.

    Args:
        text: a preset or a target of an extension (`mk2`), one with another tile count (`mk2:64`),
            one with other values (`mk2:64,exchange.sync_cycles=200`, as `Target.spelling` writes),
            or the path of a TOML file. A target counts before a file of the same name.
    """
    if text.endswith(".toml") or (_start(text) is None and _is_file(text)):
        return _from_file(text)
    if _start(text) is None:
        raise _unknown_name(text, ", or the path of a .toml file")
    return named_target(text)


def named_target(text: str) -> Target:
    """The target that the text of a program or record names. No file is read.

    Raises InputError.

    Args:
        text: as for `resolve_target`, without the path of a file.
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
            raise InputError(f"target {text!r}: {_problem('tiles', tiles, _facts(start))}")
        overrides["tiles"] = int(tiles)

    def refuse(_: str, problem: str) -> InputError:
        return InputError(f"target {text!r}: {problem}")

    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise refuse(key, f"{setting!r}: need KEY=VALUE")
        overrides[key] = _value_of(value)
    return _with(start, overrides, refuse)


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
