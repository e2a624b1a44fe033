"""The figures of a point: a column each. A new figure is a line in COLUMNS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...backends.feeding import MACHINE
from ...backends.prices.workload import macs_of
from ...backends.target import Target
from ...dialects.steps import Vertices
from ...dialects.variable import Variable
from ...passes.planner.problem import Problem
from ..driver.energy import COLUMNS as ENERGY
from ..driver.executable import Executable
from ..executors.task import Json
from ..views.planning.figures import peak_macs

TEXT, INTEGER, NUMBER, TRUTH = "text", "integer", "number", "truth"
"""The kinds of columns."""

FITS, TOO_LARGE, REFUSED, FAILED = "fits", "does not fit", "refused", "failed"
"""What a point may be: it has figures; its machine has too little memory; its values are not
allowed; or something went wrong, which its reason says."""

STATUSES = (FITS, TOO_LARGE, REFUSED, FAILED)

MEMORY = "memory"
"""What binds a program that does not fit."""


@dataclass(frozen=True)
class Measured:
    """A compiled program, priced for a target."""

    exe: Executable

    @property
    def target(self) -> Target:
        """The machine."""
        return self.exe.target

    @cached_property
    def profile(self) -> Mapping[str, Any]:
        """The fields of a profile."""
        return self.exe.profile

    @cached_property
    def products(self) -> tuple[int, float]:
        """The multiplications and additions of a run, and the cycles that all tiles together need
        for them at their peak."""
        module = self.exe.module_at(self.exe.levels[-1])
        dtypes = {op.symbol: op.dtype for op in module.body.block.ops if isinstance(op, Variable)}
        work, cycles = 0, 0.0
        for each in self.exe.price.steps:
            for op in each.step.body.block.ops:
                if not isinstance(op, Vertices):
                    continue
                problem = Problem(
                    op.structure(),
                    tuple(dtypes[name] for name in op.sources),
                    dtypes[op.destinations[0]],
                    (False,) * len(op.sources),
                )
                found = each.price.times * macs_of(problem.structure)
                work += found
                cycles += found / peak_macs(problem, self.target) if found else 0.0
        return work, cycles / self.target.tiles


@dataclass(frozen=True)
class Column:
    """A figure of points.

    Attributes:
        kind: one of the kinds above.
        meaning: a sentence for documents.
        of: the figure of a program that fits; None if only abele's rows themselves have it.
    """

    name: str
    kind: str
    meaning: str
    of: Callable[[Measured], Json] | None = None


def _field(name: str) -> Callable[[Measured], Json]:
    return lambda measured: measured.profile[name]


def _binds(measured: Measured) -> str:
    """What a faster machine has to have more of."""
    profile = measured.profile
    if profile["bound_by"] != MACHINE:
        return profile["bound_by"]
    parts = {kind: profile[f"{kind}_cycles"] for kind in ("compute", "exchange", "sync", "host")}
    parts["host"] -= profile["host_hidden_cycles"]
    return max(parts, key=lambda kind: parts[kind])


def _utilisation(measured: Measured) -> float:
    return measured.products[1] / max(measured.profile["cycles"], 1)


def _known(name: str) -> Callable[[Measured], Json]:
    return lambda measured: measured.profile.get(name)


COLUMNS: tuple[Column, ...] = (
    Column("status", TEXT, "fits, does not fit, refused or failed."),
    Column("reason", TEXT, "Why there are no figures; empty if there are."),
    Column("needed_bytes", INTEGER, "Bytes that do not fit: what is needed of one tile."),
    Column("missing_bytes", INTEGER, "How many of them a tile lacks."),
    Column("items", INTEGER, "Items of one run, such as images.", _field("items")),
    Column("items_per_s", NUMBER, "Items per second.", _field("items_per_s")),
    Column(
        "binds",
        TEXT,
        "What binds: compute, exchange, sync, host, memory, or what feeds it.",
        _binds,
    ),
    Column("cycles", INTEGER, "Cycles of a run.", _field("cycles")),
    Column("compute_cycles", INTEGER, "Cycles that compute.", _field("compute_cycles")),
    Column("exchange_cycles", INTEGER, "Cycles that exchange.", _field("exchange_cycles")),
    Column("sync_cycles", INTEGER, "Cycles of syncs.", _field("sync_cycles")),
    Column("remote_cycles", INTEGER, "Cycles of remote memory.", _field("remote_cycles")),
    Column("host_cycles", INTEGER, "Cycles of the link to the host.", _field("host_cycles")),
    Column(
        "seconds",
        NUMBER,
        "Seconds of a run, without the host.",
        lambda m: m.profile["cycles"] / m.target.clock_hz,
    ),
    Column("exchange_bytes", INTEGER, "Bytes exchanged in a run.", _field("exchange_bytes")),
    Column("host_input_bytes", INTEGER, "Bytes from the host.", _field("host_input_bytes")),
    Column("host_output_bytes", INTEGER, "Bytes to the host.", _field("host_output_bytes")),
    Column("remote_bytes", INTEGER, "Bytes in remote memory.", _field("remote_bytes")),
    Column("max_tile_bytes", INTEGER, "Bytes of the fullest tile.", _field("max_tile_bytes")),
    Column(
        "memory_share",
        NUMBER,
        "Their share of the memory of a tile.",
        lambda m: m.profile["max_tile_bytes"] / m.target.bytes_per_tile,
    ),
    Column("tiles_used", INTEGER, "Tiles that hold variables.", _field("tiles_used")),
    Column("macs", INTEGER, "Multiplications and additions of a run.", lambda m: m.products[0]),
    Column(
        "utilisation", NUMBER, "The share of the peak of all tiles that they reach.", _utilisation
    ),
    Column("supersteps", INTEGER, "Supersteps of a run.", _field("supersteps")),
    Column("vertices", INTEGER, "Vertices of the program.", _field("vertices")),
    *(
        Column(name, NUMBER, "As a profile has it, if the target has facts of it.", _known(name))
        for name in ENERGY
    ),
)
"""The figures, in the order of the file."""


def figures_of(exe: Executable) -> dict[str, Json]:
    """The figures of a program that fits, by column."""
    measured = Measured(exe)
    return {each.name: each.of(measured) for each in COLUMNS if each.of is not None}
