"""What fills the fullest tile of a program, by category and layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from ...backends.memory import MemoryReport, TileVariable
from ...backends.prices.overheads import overheads
from ...backends.prices.price import variables_of
from ...backends.target import Target
from ...backends.timetable.elements import ElementConflict, element_conflicts
from ...dialects.exchange import VariableOp
from ...dialects.steps import Superstep
from ...ir.phases import several
from ..driver.executable import MACHINE, Executable

UNUSED = "reserved, unused"
"""The category of reserved bytes that neither code nor vertex state, nor stacks take."""

WIDE = "float32"
"""The type that a narrower float can replace."""


@dataclass(frozen=True)
class LayerMemory:
    """Bytes of one layer on a tile: those always live, and those live in the worst superstep."""

    layer: str
    always_live: int
    live_now: int


@dataclass(frozen=True)
class PhaseMemory:
    """The memory of one phase of a step of training.

    Attributes:
        step: the superstep of this phase with the most live bytes on any tile; "" if there is none.
        tile, bytes: that tile and those bytes.
        always_live, live_now: bytes on the program's fullest tile that this phase made, and that
            are always live or live in that tile's worst superstep. So live_now of the forward phase
            are the values that wait for the backward phase.
    """

    phase: str
    step: str
    tile: int
    bytes: int
    always_live: int
    live_now: int


@dataclass(frozen=True)
class MemoryMap:
    """The fullest tile of a program in its worst superstep.

    Attributes:
        categories: bytes by purpose, in the order of the columns: variables that always live,
            variables live in this superstep, gaps free in it, code, vertex state, exchange code and
            stacks, and what is left of the bytes that are reserved for the last four.
        reserved: these reserved bytes.
        all_always_live: bytes on all tiles together.
        once_always_live: the same without replicas.
        narrow_always_live: the same if float32 had half its width.
        level: the program's level.
        is_wide: whether any of it is float32.
        layers: largest first.
        steps: the supersteps with the most live bytes on any tile, and that tile.
        phases: of a step of training; empty for any other program.
        shortage: what the target lacks, in a few words; "" if the program fits.
        remote_bytes: the bytes of states in remote memory.
        conflicts: supersteps in which tiles send from a memory element in which they also receive,
            the most cycles first.
    """

    target: Target
    tile: int
    step: str
    categories: dict[str, int]
    reserved: int
    all_always_live: int
    once_always_live: int
    narrow_always_live: int
    level: str
    is_wide: bool
    layers: tuple[LayerMemory, ...]
    variables: tuple[TileVariable, ...]
    steps: tuple[tuple[str, int, int], ...]
    phases: tuple[PhaseMemory, ...]
    cycles: int
    shortage: str
    remote_bytes: int = 0
    conflicts: tuple[ElementConflict, ...] = ()

    @property
    def variable_bytes(self) -> int:
        """Bytes of variables and the gaps between them."""
        return sum(self.categories[key] for key in ("always live", "live now", "gaps"))

    @property
    def overhead_bytes(self) -> int:
        """Bytes of code, vertex state, exchange code and stacks, by `backends/overheads`."""
        return sum(self.categories.values()) - self.variable_bytes - self.categories[UNUSED]

    @property
    def all_bytes(self) -> int:
        """The sum of all categories."""
        return sum(self.categories.values())

    @property
    def fits(self) -> bool:
        """Whether the program fits: its variables, beside the bytes that the target reserves."""
        return not self.shortage

    @property
    def chips(self) -> int:
        """The least number of chips that can hold the variables that are always live."""
        all_tiles = self.target.tiles * self.target.usable_bytes_per_tile
        return max(-(-self.once_always_live // all_tiles), 1)

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return asdict(self) | {
            "target": self.target.spelling(),
            "bytes_per_tile": self.target.bytes_per_tile,
            "fits": self.fits,
        }


def memory_map(exe: Executable) -> MemoryMap:
    """The map of a compiled program."""
    report, module = exe.memory, exe.module_at(MACHINE)
    more = overheads(module, variables_of(module), report.tiles, exe.target)
    tile = report.fullest_tile
    reserved = exe.target.memory.reserved_bytes
    variables = [v for v in module.body.block.ops if isinstance(v, VariableOp)]
    return MemoryMap(
        target=exe.target,
        tile=tile,
        step=report.worst_step,
        categories={
            "always live": int(report.always_live_bytes[tile]),
            "live now": int(report.transient_bytes[tile]),
            "gaps": report.gap_bytes,
            "code": int(more.code[tile]),
            "vertex state": int(more.vertex_state[tile]),
            "exchange code": int(more.exchange_code[tile]),
            "stacks": int(more.stacks[tile]),
            UNUSED: max(reserved - int(more.total[tile]), 0),
        },
        reserved=reserved,
        all_always_live=int(report.always_live_bytes.sum()),
        once_always_live=sum(_bytes_once(v) for v in variables if v.is_resident),
        narrow_always_live=sum(_narrow_bytes(v) for v in variables if v.is_resident),
        level=exe.levels[0],
        is_wide=any(v.dtype.name == WIDE for v in variables),
        layers=tuple(_layers(report)),
        variables=report.variables,
        steps=tuple(
            (step.name, step.bytes, step.tile)
            for step in sorted(report.steps, key=lambda each: -each.bytes)
        ),
        phases=tuple(_phases(exe)),
        cycles=int(exe.profile["cycles"]),
        shortage=report.shortage,
        remote_bytes=report.remote_bytes,
        conflicts=tuple(_conflicts(exe)),
    )


def _conflicts(exe: Executable) -> list[ElementConflict]:
    module = exe.module_at(MACHINE)
    steps = [op for op in module.walk() if isinstance(op, Superstep)]
    found = element_conflicts(steps, variables_of(module), exe.target)
    return sorted(found, key=lambda each: -(each.cycles or 0))


def _phases(exe: Executable) -> Iterator[PhaseMemory]:
    steps = {
        step.sym_name.data: exe.phases.phase(step)
        for step in exe.module_at(MACHINE).walk()
        if isinstance(step, Superstep)
    }
    report = exe.memory
    made = [(exe.phases.phase(v.origin), v) for v in report.variables if v.live]
    for phase in several(steps.values()):
        own = [each for each in report.steps if steps[each.name] == phase]
        worst = max(own, key=lambda each: each.bytes)
        mine = [v for of, v in made if of == phase]
        yield PhaseMemory(
            phase,
            worst.name,
            worst.tile,
            worst.bytes,
            sum(v.bytes for v in mine if v.resident),
            sum(v.bytes for v in mine if not v.resident),
        )


def _bytes_once(v: VariableOp) -> int:
    """Bytes of a variable's elements, without replicas."""
    return prod(v.placed.shape) * v.dtype.itemsize


def _narrow_bytes(v: VariableOp) -> int:
    """The same in a narrower type, if there is one."""
    return _bytes_once(v) // (1 + (v.dtype.name == WIDE))


def _layers(report: MemoryReport) -> Iterator[LayerMemory]:
    found: dict[str, list[int]] = {}
    for v in report.variables:
        if v.live:
            bytes_of = found.setdefault((v.origin or v.name).split("/")[0], [0, 0])
            bytes_of[not v.resident] += v.bytes
    for layer, (always, now) in sorted(found.items(), key=lambda item: -sum(item[1])):
        yield LayerMemory(layer, always, now)
