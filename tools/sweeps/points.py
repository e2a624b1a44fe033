"""The points of a sweep: what each asks for, and the task that answers it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from ...backends.target import PRESETS, Target
from ...ir.support.errors import InputError
from ..driver.cache.key import DECIDING, digest_of_file, environment_parts, model_parts
from ..driver.request import AUTO_IO
from ..executors.task import Json, Task
from ..importers.light_networks import VERSION
from .spec import BASE, FILE, FILES, LIGHT, NAME, RANDOM, TABLES, Part, Spec, machine_of

FUNCTION = "abele.tools.sweeps.priced:priced"
"""The task of a program."""

FED = ("host", "storage", "measuring", "energy", "area")
"""The parts of a target that no pass reads: they say what feeds a program, what it takes, and how a
measurement is made. Programs for targets that differ only in them are equal."""

CLOCK = "clock_hz"
"""The value that passes read only for transfers between chips, and for remote memory."""


@dataclass(frozen=True)
class Point:
    """A combination of values.

    Attributes:
        number: its place in the grid.
        model, target, options: values by key.
    """

    number: int
    model: Mapping[str, Any]
    target: Mapping[str, Any]
    options: Mapping[str, Any]

    @cached_property
    def request(self) -> dict[str, Any]:
        """The fields of a request. What a model says goes before what the options say."""
        found: dict[str, Any] = {}
        for key, value in {**self.options, **self.model}.items():
            table, _, name = key.partition(".")
            if table in TABLES:
                found.setdefault(table, {})[name] = value
            elif key not in (FILE, LIGHT, NAME):
                found[key] = value
        return found

    @property
    def source(self) -> dict[str, str]:
        """The model: its file, or the name of a network."""
        return {key: self.model[key] for key in (FILE, LIGHT) if key in self.model}

    @property
    def name(self) -> str:
        """What tables call the model."""
        (source,) = self.source.values()
        return self.model.get(NAME) or Path(source).stem

    @property
    def values(self) -> dict[str, Any]:
        """All values by key, without those that name the model and the target."""
        found = {**self.options, **self.model, **self.target}
        return {k: v for k, v in found.items() if k not in (FILE, LIGHT, NAME, BASE)}


@dataclass(frozen=True)
class Prepared:
    """A point with its machine.

    Attributes:
        machine: None if no target allows its values.
        problem: why, in words.
        program: the digest of what decides the bytes of its program.
        digest: of what decides its row.
    """

    point: Point
    machine: Target | None
    problem: str
    program: str
    digest: str


def point_at(spec: Spec, number: int) -> Point:
    """The point at a place of the grid: options change fastest, then targets, then models."""
    rest, option = divmod(number, spec.options.size)
    targets = sum(part.size for part in spec.targets)
    model, target = divmod(rest, targets)
    return Point(
        number, _at(spec.models, model), _at(spec.targets, target), spec.options.at(option)
    )


def _at(parts: Sequence[Part], index: int) -> dict[str, Any]:
    for each in parts:
        if index < each.size:
            return each.at(index)
        index -= each.size
    raise IndexError(index)


def some_numbers(spec: Spec) -> Iterable[int]:
    """The places of the points of a plan that computes all of them, or some at random."""
    if spec.plan.kind != RANDOM:
        return range(spec.size)
    return sorted(Random(spec.plan.seed).sample(range(spec.size), spec.plan.points))


class Preparing:
    """Prepares points. What several points have in common is computed once."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._machines: dict[str, tuple[Target | None, str]] = {}
        self._models: dict[str, tuple[str, str]] = {}
        self._digests: dict[str, str] = {}
        self._environment = environment_parts((*DECIDING, "tools/sweeps"))

    def prepared(self, point: Point) -> Prepared:
        """A point with its machine, and the digests of what decides its row.

        Raises InputError for a file that cannot be read.
        """
        machine, problem = self._machine(point)
        compiled = None if machine is None else _text(compiled_for(machine, point.request))
        program = self._common(point, compiled)
        own = problem if machine is None else _text(machine)
        return Prepared(point, machine, problem, program, _digest_of([program, own]))

    def task(self, some: Sequence[Prepared]) -> Task:
        """The task of points with one program, which have machines."""
        first = some[0].point
        machines = [each.machine for each in some if each.machine is not None]
        arguments: dict[str, Json] = {
            "model": self._travelling(first),
            "request": first.request,
            "program": _text(compiled_for(machines[0], first.request)),
            "targets": [_text(each) for each in machines],
            "load": [os.path.abspath(each) for each in self.spec.load],
        }
        return Task(FUNCTION, arguments, group=first.name)

    def _machine(self, point: Point) -> tuple[Target | None, str]:
        key = json.dumps(dict(point.target), sort_keys=True, default=str)
        if key not in self._machines:
            try:
                self._machines[key] = machine_of(point.target), ""
            except InputError as error:
                self._machines[key] = None, str(error).partition("\n")[0]
        return self._machines[key]

    def _common(self, point: Point, compiled: str | None) -> str:
        """The digest of what decides the bytes of a program."""
        request = {
            key: self._digest(value) if key in FILES else value
            for key, value in point.request.items()
        }
        return _digest_of(
            {
                "environment": self._environment,
                "model": self._model(point),
                "request": request,
                "load": [self._digest(path) for path in self.spec.load],
                "target": compiled,
            }
        )

    def _model(self, point: Point) -> Json:
        """What stands for a model in digests."""
        ((kind, source),) = point.source.items()
        if kind == LIGHT:
            return [source, VERSION]
        if source not in self._models:
            try:
                self._models[source] = model_parts(source)
            except OSError as error:
                raise InputError(f"{source}: cannot be read: {error.strerror or error}") from None
        return self._models[source]

    def _digest(self, path: str) -> str:
        """The digest of a file. Raises InputError."""
        if path not in self._digests:
            try:
                self._digests[path] = digest_of_file(path)
            except OSError as error:
                raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        return self._digests[path]

    def _travelling(self, point: Point) -> Json:
        """The model as a task names it: workers have working folders of their own."""
        ((kind, source),) = point.source.items()
        return {kind: os.path.abspath(source) if kind == FILE else source}


@lru_cache(maxsize=1024)
def _text(target: Target) -> str:
    """A target as tasks and digests have it."""
    return target.to_toml()


def compiled_for(machine: Target, request: Mapping[str, Any]) -> Target:
    """The target for which the program of a machine is compiled: one for all machines that differ
    only in what no pass reads."""
    if request.get("io_tiles") == AUTO_IO:
        # Their number is chosen by the items per second, which the link and the clock decide.
        return machine
    keeps_clock = machine.chips > 1 or bool(request.get("remote"))
    name = _like(machine.base, keeps_clock) if machine.name == machine.base else ""
    usual = PRESETS[name or machine.base]
    parts = FED if keeps_clock else (*FED, CLOCK)
    plain = replace(machine, **{part: getattr(usual, part) for part in parts})
    return replace(plain, base=name, name=name) if name else plain


@cache
def _like(base: str, keeps_clock: bool) -> str:
    """The first preset that differs from a preset only in what no pass reads; perhaps itself."""
    own = PRESETS[base]
    parts = FED if keeps_clock else (*FED, CLOCK)
    for name, other in PRESETS.items():
        same = replace(own, base=name, name=name, **{p: getattr(other, p) for p in parts})
        if same == other:
            return name
    return base


def _digest_of(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()
