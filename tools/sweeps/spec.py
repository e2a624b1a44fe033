"""The spec of a sweep: a TOML file with models, targets, options and a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import prod
from pathlib import Path
from typing import Any, cast

from ...backends.target import (
    DEFAULT_TARGET,
    PRESETS,
    USERS_TARGETS,
    Target,
    changed_target,
    known_keys,
    resolve_target,
)
from ...ir.pass_options import option_types
from ...ir.support.errors import InputError
from ...ir.support.limits import SWEEP_POINTS
from ...ir.support.suggestions import suggestion
from ...ir.support.toml_text import read_toml
from ...passes.train import Train
from ..driver.request import OPTIONS
from ..importers.light_networks import LIGHT_NAMES
from .axes import Values, length, values_of
from .choice import Choice, read_choice

MODEL, TARGET, OPTIONS_TABLE, PLAN, RESULT = "model", "target", "options", "plan", "result"

FILE, LIGHT, NAME = "file", "light", "name"
"""The keys that say which model a table is about."""

BASE, CHIPS = "base", "chips"
"""The keys of a target that are no facts: where it begins, and its number of chips."""

REQUESTED = (
    *("batch", "precision", "rounding", "partials", "recompute", "sparsity", "stash", "remote"),
    *("replicas", "shard", "pipeline", "schedule", "stage_chips", "micro_batches", "io_tiles"),
    *("memory_proportion", "vertices_per_tile", "passes", "constraints", "weights"),
    *("partial_weights", "lenient", "keep"),
)
"""The fields of a request that a model or the options may give."""

FILES = ("constraints", "weights")
"""Those of them that are paths."""

TABLES = ("dims", "training")
"""The tables of sizes of dimensions, and of options of the pass train. Each of their keys may have
several values."""

GRID, RANDOM, HALVING = "grid", "random", "halving"
"""The kinds of plans."""


@dataclass(frozen=True)
class Part:
    """One table of the spec: the values of each of its keys.

    Attributes:
        place: names it in messages.
        values: by key, with dots for tables inside it.
    """

    place: str
    values: Mapping[str, Values]

    @property
    def size(self) -> int:
        """How many combinations of values there are."""
        return prod(length(each) for each in self.values.values())

    def at(self, index: int) -> dict[str, Any]:
        """One combination; the last key changes fastest."""
        found: dict[str, Any] = {}
        for key, values in reversed(list(self.values.items())):
            index, digit = divmod(index, length(values))
            found[key] = values[digit]
        return dict(reversed(found.items()))


@dataclass(frozen=True)
class Plan:
    """Which points are computed.

    Attributes:
        kind: all of them, some at random, or those that stay among the best while the values of one
            key grow.
        points: of a random plan.
        seed: of a random plan.
        along: of halving: the key whose values grow from round to round.
        keep: of halving: the share of points that stays for the next round.
    """

    kind: str = GRID
    points: int = 0
    seed: int = 0
    along: str = ""
    keep: float = 0.5


@dataclass(frozen=True)
class Spec:
    """What a sweep computes, and what it chooses.

    Attributes:
        file: the name of the spec in messages.
        folder: relative paths begin here.
        load: extensions.
    """

    file: str
    folder: Path
    models: tuple[Part, ...]
    targets: tuple[Part, ...]
    options: Part
    plan: Plan = field(default_factory=Plan)
    choice: Choice = field(default_factory=Choice)
    load: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many points the grid has."""
        return (
            sum(p.size for p in self.models)
            * sum(p.size for p in self.targets)
            * (self.options.size)
        )

    @property
    def keys(self) -> dict[str, list[Values]]:
        """The values of each key in each part that has it, in the order of the spec."""
        found: dict[str, list[Values]] = {}
        for part in (*self.models, *self.targets, self.options):
            for key, values in part.values.items():
                found.setdefault(key, []).append(values)
        return found


def read_spec(path: Path) -> Spec:
    """The spec in a file. Raises InputError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: byte {error.start}") from None
    return spec_of(read_toml(text, str(path)), str(path), path.parent)


def spec_of(given: Mapping[str, object], file: str, folder: Path) -> Spec:
    """The spec in nested values. Raises InputError for what it cannot say.

    Args:
        file: its name in messages.
        folder: as Spec has it.
    """
    _only(given, (MODEL, TARGET, OPTIONS_TABLE, PLAN, RESULT, "load"), file)
    load = given.get("load", [])
    if not _is_texts(load):
        raise InputError(f"{file}: load: need a list of paths")
    models = tuple(_models(_tables(given, MODEL, file), folder))
    targets = tuple(_targets(_tables(given, TARGET, file), folder))
    options = _options(_table(given, OPTIONS_TABLE, file), f"{file}: {OPTIONS_TABLE}", folder)
    plan = _plan(_table(given, PLAN, file), f"{file}: {PLAN}")
    choice = read_choice(_table(given, RESULT, file), f"{file}: {RESULT}")
    spec = Spec(
        *(file, folder, models, targets, options, plan, choice),
        load=tuple(str(folder / each) for each in cast("list[str]", load)),
    )
    _check_size(spec)
    return spec


def _check_size(spec: Spec) -> None:
    """Raise InputError for a plan with too many points, or of points that it does not have."""
    plan, size, most = spec.plan, spec.size, SWEEP_POINTS.most
    if plan.kind == RANDOM:
        if plan.points > size:
            raise InputError(
                f"{spec.file}: {PLAN}: {plan.points:,} points of {size:,}; need at most as many as "
                f"there are, or kind = {GRID!r}"
            )
        size = plan.points
    if size > most:
        advice = "" if plan.kind == RANDOM else f"; kind = {RANDOM!r} with points takes some"
        raise InputError(f"{SWEEP_POINTS.refusal(f'{spec.file}: {size:,} points')}{advice}")
    if plan.kind == HALVING:
        if not any(
            plan.along in part.values for part in (*spec.models, *spec.targets, spec.options)
        ):
            known = suggestion(plan.along, spec.keys)
            raise InputError(f"{spec.file}: {PLAN}: along: no key {plan.along!r}{known}")
        if all(length(each) < 2 for each in spec.keys[plan.along]):
            raise InputError(
                f"{spec.file}: {PLAN}: along: {plan.along} has one value; need several, from "
                "cheap to dear"
            )


def _models(tables: Sequence[tuple[str, Mapping[str, object]]], folder: Path) -> Iterator[Part]:
    if not tables:
        raise InputError(f"need at least one table [[{MODEL}]] with file or light")
    for place, table in tables:
        sources = [key for key in (FILE, LIGHT) if key in table]
        if len(sources) != 1:
            raise InputError(
                f"{place}: need either file, the path of a model, or light, the name of a network "
                f"with seeded weights: {', '.join(LIGHT_NAMES)}"
            )
        rest = {key: value for key, value in table.items() if key not in (FILE, LIGHT, NAME)}
        values = dict(_source(table, sources[0], place, folder))
        yield Part(place, values | dict(_requested(rest, place, folder, (FILE, LIGHT, NAME))))


def _source(
    table: Mapping[str, object], key: str, place: str, folder: Path
) -> Iterator[tuple[str, Values]]:
    """The models of a table, under the key that names them. Raises InputError."""
    found = values_of(table[key], f"{place}: {key}", is_list=lambda _: False)
    for each in found:
        if not isinstance(each, str) or not each:
            raise InputError(f"{place}: {key}: {each!r}; need text")
        if key == LIGHT and each not in LIGHT_NAMES:
            raise InputError(
                f"{place}: {LIGHT}: no network {each!r}{suggestion(each, LIGHT_NAMES)}"
            )
        if key == FILE and not (folder / each).is_file():
            raise InputError(f"{place}: {FILE}: {folder / each}: there is no such file")
    yield key, tuple(str(folder / each) for each in found) if key == FILE else found
    if NAME in table:
        name = table[NAME]
        if not isinstance(name, str) or len(found) > 1:
            raise InputError(f"{place}: {NAME}: need text, and one model")
        yield NAME, (name,)


def _options(table: Mapping[str, object], place: str, folder: Path) -> Part:
    return Part(place, dict(_requested(table, place, folder, ())))


def _requested(
    table: Mapping[str, object], place: str, folder: Path, more: Sequence[str]
) -> Iterator[tuple[str, Values]]:
    """The values of fields of a request. Raises InputError for an unknown or a wrong one."""
    for key, given in table.items():
        where = f"{place}: {key}"
        if key in TABLES:
            if not isinstance(given, Mapping):
                raise InputError(f"{where}: need a table")
            for name, value in cast("Mapping[str, object]", given).items():
                yield f"{key}.{name}", _in_table(key, name, value, f"{where}.{name}")
            continue
        if key not in REQUESTED:
            known = (*more, *REQUESTED, *TABLES)
            raise InputError(f"{where}: no such key{suggestion(key, known)}")
        kind = OPTIONS[key].kind
        is_table = key == "keep"
        values: Values = (given,)
        if not is_table:
            values = values_of(given, where, is_list=_accepts_lists(kind.accepts))
        for each in _some(values):
            if not kind.accepts(each) or (key in FILES and not isinstance(each, str)):
                raise InputError(f"{where}: {each!r}; need {kind.words}")
        if key in FILES:
            values = tuple(str(folder / str(each)) for each in values)
        yield key, values


def _in_table(table: str, name: str, value: object, where: str) -> Values:
    """The values of a key in one of TABLES. Raises InputError."""
    if table == "training":
        types = option_types(Train)
        if name not in types:
            raise InputError(f"{where}: no option of the pass train{suggestion(name, types)}")
        takes_lists = "tuple" in str(types[name])
        return values_of(value, where, is_list=lambda each: takes_lists and _is_texts(each))
    values = values_of(value, where, is_list=lambda _: False)
    for each in _some(values):
        if not OPTIONS["dims"].kind.accepts({name: each}):
            raise InputError(f"{where}: {each!r}; need a size, or bounds such as '0..64'")
    return values


def _accepts_lists(accepts: Callable[[Any], bool]) -> Callable[[object], bool]:
    """Whether a list is one value of a key: those that take lists take lists of text."""
    return lambda value: accepts(["text"]) and _is_texts(value)


def _targets(tables: Sequence[tuple[str, Mapping[str, object]]], folder: Path) -> Iterator[Part]:
    if not tables:
        yield Part(f"[[{TARGET}]]", {BASE: (DEFAULT_TARGET,)})
    for place, table in tables:
        flat = dict(_flat(table))
        given = flat.pop(BASE, DEFAULT_TARGET)
        bases = values_of(given, f"{place}: {BASE}", is_list=lambda _: False)
        found: list[str] = []
        for each in bases:
            if not isinstance(each, str):
                raise InputError(f"{place}: {BASE}: {each!r}; need the name of a target, or a path")
            found.append(str(folder / each) if each.endswith(".toml") else each)
        starts = [_start(each, place) for each in found]
        values: dict[str, Values] = {BASE: tuple(found)}
        for key, value in flat.items():
            where = f"{place}: {key}"
            _check_key(key, where, starts)
            values[key] = values_of(value, where, is_list=lambda _: False)
        yield Part(place, values)


def _start(base: str, place: str) -> Target:
    try:
        return resolve_target(base)
    except InputError as error:
        known = suggestion(base, [*PRESETS, *USERS_TARGETS])
        raise InputError(f"{place}: {BASE}: {error}{known}") from None


def _check_key(key: str, where: str, starts: Sequence[Target]) -> None:
    """Raise InputError for a key that no target has. One that some have is asked for point by
    point, because other values decide which parts a target has."""
    if key == CHIPS or any(key in known_keys(each) for each in starts):
        return
    prefix = key.rpartition(".")[0]
    several = changed_target(PRESETS[DEFAULT_TARGET], {"links.topology": "ladder"})
    known = {CHIPS, *known_keys(several), *(name for each in starts for name in known_keys(each))}
    if key in known or prefix in ("links", "exchange"):
        return
    raise InputError(f"{where}: no such value of a target{suggestion(key, known)}")


def machine_of(values: Mapping[str, Any]) -> Target:
    """The target of one combination. Raises InputError for values that no target allows.

    First each chip gets its values. Then the chips are joined, and then the links get theirs.
    """
    rest = {key: value for key, value in values.items() if key not in (BASE, CHIPS)}
    links = {key: rest.pop(key) for key in list(rest) if key.startswith("links.")}
    found = changed_target(resolve_target(values[BASE]), rest)
    if CHIPS in values:
        chips = values[CHIPS]
        if isinstance(chips, bool) or not isinstance(chips, int) or chips < 1:
            raise InputError(f"{CHIPS}: {chips!r}; need a whole number from 1 on")
        found = found.with_chips(chips)
    return changed_target(found, links) if links else found


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The values of a target's table by dotted key. A table with from and to is a range."""
    for key, value in table.items():
        if isinstance(value, Mapping) and "from" not in value and "to" not in value:
            yield from _flat(cast("Mapping[str, object]", value), f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _plan(table: Mapping[str, object], place: str) -> Plan:
    """The plan of a table. Raises InputError."""
    kinds: Mapping[str, tuple[str, ...]] = {
        GRID: (),
        RANDOM: ("points", "seed"),
        HALVING: ("along", "keep"),
    }
    kind = table.get("kind", GRID)
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{place}: kind: {kind!r}; need one of {', '.join(kinds)}")
    _only(table, ("kind", *kinds[kind]), place)
    defaults = {each.name: each.default for each in fields(Plan)}
    found = {name: table.get(name, defaults[name]) for name in defaults if name != "kind"}
    for name, least in (("points", int(kind == RANDOM)), ("seed", 0)):
        value = found[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{place}: {name}: {value!r}; need a whole number from {least} on")
    keep = found["keep"]
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep < 1:
        raise InputError(f"{place}: keep: {keep!r}; need a share between 0 and 1")
    if not isinstance(found["along"], str) or (kind == HALVING and not found["along"]):
        raise InputError(f"{place}: along: need the key whose values grow from round to round")
    return Plan(kind, **cast("Any", found))


def _tables(
    given: Mapping[str, object], key: str, file: str
) -> list[tuple[str, Mapping[str, object]]]:
    """The tables of a list, with their places. One table alone is a list of one."""
    value = given.get(key, [])
    if not isinstance(value, list | Mapping):
        raise InputError(f"{file}: {key}: need tables [[{key}]]")
    tables: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
    found: list[tuple[str, Mapping[str, object]]] = []
    for number, each in enumerate(tables, 1):
        place = f"{file}: {key} {number}" if len(tables) > 1 else f"{file}: {key}"
        if not isinstance(each, Mapping):
            raise InputError(f"{place}: need a table [[{key}]]")
        found.append((place, cast("Mapping[str, object]", each)))
    return found


def _table(given: Mapping[str, object], key: str, file: str) -> Mapping[str, object]:
    value = given.get(key, {})
    if not isinstance(value, Mapping):
        raise InputError(f"{file}: {key}: need a table [{key}]")
    return cast("Mapping[str, object]", value)


def _only(table: Mapping[str, object], known: Sequence[str], place: str) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"{place}: no such key {key!r}{suggestion(key, known)}")


def _some(values: Values) -> Values:
    """The values to check: all of a list; of a range only the first, since the others are like
    it."""
    return values if isinstance(values, tuple) else (values[0],)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, str) for each in cast("list[object]", value)
    )
