"""A user's constraints on plans: a JSON file that names operators by the nodes they come from.

    {"memory_proportion": 0.6,
     "operators": {"conv1": {"method": "amp", "split": {"o": 4, "c": 1}, "tiles": 64},
                   "fc*": {"memory_proportion": 0.3, "partials": "float16"},
                   "fc8": {"plan": "split [1, 8, 1] method amp"}}}

A name is the path of a node ("bn1/scale"), which may have been fused with others, or a pattern in
which * stands for any letters. If several names match an operator, a full name overrides a pattern,
and a later entry overrides an earlier one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from ...backends.prices.contractions.methods import METHODS
from ...dialects.abele import Plan, PlanAttr
from ...ir.support.errors import InputError
from ...ir.support.json_lines import JsonText, read_json
from ...ir.support.suggestions import suggestion
from ...ir.upstream import Context, ParseError, Parser
from .shards import OPTION, Shard

PROPORTION_KEY = "memory_proportion"
"""The key of the share of a tile's usable memory that one operator may take."""

PARTIALS_KEY = "partials"
"""The key of the type in which an operator keeps partial sums, which decides its results."""

ACROSS_KEY = "across"
"""The key of the chips over which the dimensions of an operator are cut."""

BESIDE_PLAN = (PROPORTION_KEY, PARTIALS_KEY)
"""The keys that a whole plan may have beside it."""

PARTIALS = ("float16", "float32", "auto")


@dataclass(frozen=True)
class Constraints:
    """Well-formed constraints. Their names are not yet matched to operators.

    Attributes:
        json: of their file.
        shards: those that an option gives, by name. They are among the operators, too.
    """

    json: JsonText
    proportion: float | None = None
    operators: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    shards: Mapping[str, Shard] = field(default_factory=dict[str, Shard])

    def place(self, name: str, *way: str) -> str:
        """Where a constraint on an operator stands, to begin a message with.

        Args:
            way: its key, and optionally a key below it.
        """
        if name in self.shards and (way[:1] == (ACROSS_KEY,) or not self._is_in_file(name)):
            return f"{OPTION} {self.shards[name]}"
        return self.json.place("operators", name, *way)

    def _is_in_file(self, name: str) -> bool:
        return ("operators", name) in self.json.lines

    def with_shards(self, shards: Iterable[Shard]) -> Constraints:
        """The constraints with shards, which override those of the file."""
        by_name = {each.name: each for each in shards}
        operators = dict(self.operators)
        for name, each in by_name.items():
            operators[name] = {**operators.pop(name, {}), ACROSS_KEY: dict(each.across)}
        return replace(self, operators=operators, shards=by_name)


NONE = Constraints(JsonText("<none>", {}))
"""No constraints."""


def read_constraints(path: str | os.PathLike[str]) -> Constraints:
    """Read a file of constraints. Raises InputError that names the file, line and key."""
    json = read_json(path)
    whole = _members(json, ("memory_proportion", "operators"))
    proportion = None
    if PROPORTION_KEY in whole:
        proportion = _proportion(json, (PROPORTION_KEY,), whole[PROPORTION_KEY])
    operators: dict[str, Mapping[str, object]] = {}
    for name, given in _mapping(json, ("operators",), whole.get("operators", {})).items():
        way = ("operators", name)
        values = _members(json, tuple(KEYS), way, given)
        operators[name] = {
            key: KEYS[key](json, (*way, key), value) for key, value in values.items()
        }
        others = [key for key in values if key not in ("plan", *BESIDE_PLAN)]
        if "plan" in values and others:
            raise InputError(
                f"{json.place(*way, others[0])}: a whole plan leaves nothing to constrain; "
                "remove one of the two"
            )
    return Constraints(json, proportion, operators)


def _fail(json: JsonText, way: tuple[str, ...], problem: str) -> InputError:
    place = json.place(*way)
    return InputError(f"{place}: {problem}")


def _mapping(json: JsonText, way: tuple[str, ...], value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _fail(json, way, f"{_shown(value)}; need an object {{...}}")
    return cast(dict[str, object], value)


def _members(
    json: JsonText, known: tuple[str, ...], way: tuple[str, ...] = (), value: object = None
) -> dict[str, object]:
    """The members of an object. Raises InputError for an unknown key."""
    members = _mapping(json, way, value if way else json.value)
    for key in members:
        if key not in known:
            raise _fail(json, (*way, key), f"no such key{suggestion(key, known)}")
    return members


def _proportion(json: JsonText, way: tuple[str, ...], value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _fail(json, way, f"{_shown(value)}; need a number in 0..1")
    return float(value)


def _text(json: JsonText, way: tuple[str, ...], value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _fail(json, way, f"{_shown(value)}; need a text")
    return value


def _count(json: JsonText, way: tuple[str, ...], value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise _fail(json, way, f"{_shown(value)}; need an integer of at least 1")
    return value


def _counts(json: JsonText, way: tuple[str, ...], value: object) -> dict[str, int]:
    return {name: _count(json, (*way, name), n) for name, n in _mapping(json, way, value).items()}


def _texts(json: JsonText, way: tuple[str, ...], value: object) -> dict[str, str]:
    return {name: _text(json, (*way, name), n) for name, n in _mapping(json, way, value).items()}


def _method(json: JsonText, way: tuple[str, ...], value: object) -> str:
    name = _text(json, way, value)
    if name not in METHODS:
        raise _fail(json, way, f"no method {name!r}{suggestion(name, tuple(METHODS))}")
    return name


def _partials(json: JsonText, way: tuple[str, ...], value: object) -> str:
    name = _text(json, way, value)
    if name not in PARTIALS:
        raise _fail(json, way, f"{name!r}; need {', '.join(PARTIALS[:-1])} or {PARTIALS[-1]}")
    return name


def _plan(json: JsonText, way: tuple[str, ...], value: object) -> Plan:
    text = _text(json, way, value)
    example = "need what stands in #abele.plan<...>, such as 'split [4, 2, 1] method amp'"
    try:
        if set(text) & set("<>"):
            raise _fail(json, way, f"{text!r}; {example}")
        return PlanAttr.parse_parameter(Parser(Context(), f"<{text}>"))
    except ParseError as error:
        raise _fail(json, way, f"{text!r}: {error.msg}; {example}") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


KEYS: Mapping[str, Callable[[JsonText, tuple[str, ...], object], object]] = {
    "method": _method,
    "split": _counts,
    "tiles": _count,
    "memory_proportion": _proportion,
    "steps": _counts,
    "ring": _texts,
    ACROSS_KEY: _counts,
    "plan": _plan,
    PARTIALS_KEY: _partials,
}
"""The keys of an operator's constraints, and the function that reads each value."""
