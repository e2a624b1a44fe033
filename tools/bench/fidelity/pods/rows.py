"""Steps of training that were measured on pods."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .....backends.target import Target, resolve_target
from .....ir.support.errors import InputError

PODS = Path(__file__).parents[1] / "mlperf_pods.csv"
"""Graphcore's logs of MLPerf Training 1.1 and 2.0."""

COLUMNS = (
    *("system", "round", "chips", "model", "precision", "micro_batch", "accumulation", "replicas"),
    *("global_batch", "throughput", "unit", "seconds_per_update", "source"),
)

CHIPS: Mapping[str, str] = {"Bow": "bow", "GC200": "mk2"}
"""By the first word of a system, the preset of its chips."""

MODELS: Mapping[str, str] = {"ResNet-50": "resnet50", "BERT-Large": "bert"}
"""By the first word of a model, the name of how it is priced."""


@dataclass(frozen=True)
class Row:
    """A step of training that was measured.

    Attributes:
        name: such as resnet50-bow-16.
        model: a value of MODELS.
        micro_batch, accumulation: of a replica.
        seconds: of an update.
    """

    name: str
    model: str
    target: Target
    micro_batch: int
    accumulation: int
    replicas: int
    seconds: float

    @property
    def stages(self) -> int:
        """The chips of a replica."""
        return self.target.chips // self.replicas

    @property
    def cycles(self) -> float:
        """Those of an update."""
        return self.seconds * self.target.clock_hz


def is_of_pods(path: Path) -> bool:
    """Whether a file of measurements has the columns of steps on pods. Raises OSError."""
    with path.open(encoding="utf-8", errors="replace", newline="") as stream:
        return tuple(next(csv.reader(stream), ())) == COLUMNS


def read_pods(path: Path = PODS) -> list[Row]:
    """The rows of a file. Raises InputError."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            lines = list(csv.DictReader(stream, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not lines:
        raise InputError(f"{path}: no rows; need one below the names of columns")
    found: dict[str, Row] = {}
    for number, line in enumerate(lines, 2):
        row = _row(f"{path}:{number}", line)
        if row.name in found:
            raise InputError(f"{path}:{number}: a second row {row.name}; need one of each name")
        found[row.name] = row
    return list(found.values())


def _row(place: str, line: Mapping[str, str | None]) -> Row:
    def text(column: str) -> str:
        value = line.get(column)
        if not value:
            raise InputError(f"{place}: no {column}; need {', '.join(COLUMNS)}")
        return value

    def word(column: str, known: Mapping[str, str]) -> str:
        first = text(column).split()[0]
        if first not in known:
            raise InputError(f"{place}: {column} {first!r}; need one of {', '.join(known)}")
        return known[first]

    def number(column: str) -> int:
        value = text(column)
        if not (value.isascii() and value.isdigit() and 0 < int(value) < 10**9):
            raise InputError(f"{place}: {column}: {value!r}; need a positive number")
        return int(value)

    try:
        seconds = float(text("seconds_per_update"))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise InputError(f"{place}: seconds_per_update; need a positive number")
    chip, model = word("system", CHIPS), word("model", MODELS)
    chips, replicas = number("chips"), number("replicas")
    if chips % replicas:
        raise InputError(f"{place}: {replicas} replicas on {chips} chips; need a divisor")
    try:
        target = resolve_target(chip).with_chips(chips)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    micro, accumulation = number("micro_batch"), number("accumulation")
    name = f"{model}-{chip}-{chips}"
    return Row(name, model, target, micro, accumulation, replicas, seconds)
