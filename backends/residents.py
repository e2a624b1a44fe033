"""What a program needs on the tiles before it runs, and what of it stays while others run.

A chip holds one program at a time. Before a program runs, its states and constants must lie at its
own addresses. They may lie there already: because it ran before, or because another program of the
same model holds the same values in the same layout at the same address. Whatever variables of other
programs overlap is lost.

Each tensor crosses the link of the host once, as inputs do; exchange spreads it over the tiles. A
value in another layout, or at another address, comes from the host again: to move it on the chip,
both places would have to be free, and a program that fills its tiles has no such room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..dialects.exchange import VariableOp
from ..dialects.steps import written
from ..ir.geometry.layout import Layout, placement
from ..ir.support.arrays import Integers
from ..ir.upstream import ModuleOp
from .prices.cost import host_cycles
from .prices.overheads import overheads
from .target import Target

Rectangle = tuple[int, int, int, int]
"""First tile and the one after the last, first address and the one after the last."""


@dataclass(frozen=True)
class Place:
    """Where and how a tensor lies on the tiles. Equal places of equal values need no move.

    Attributes:
        layout: its placement.
        shape: of the tensor. Programs may keep parts of one state in tensors of different shapes.
    """

    layout: Layout
    shape: tuple[int, ...]
    dtype: str
    start: int
    rectangle: Rectangle


@dataclass(frozen=True)
class Resident:
    """A state or constant of a program.

    Attributes:
        name: the name of its variable.
        value: the digest of a constant; the name of a state.
        bytes: the bytes of the tensor.
        is_written: whether a run may change it.
    """

    name: str
    value: str
    is_state: bool
    is_written: bool
    bytes: int
    place: Place


@dataclass(frozen=True, eq=False)
class Footprint:
    """What a program puts onto the tiles.

    Attributes:
        residents: its states and constants.
        rectangles: what each of its variables takes, (n, 4).
        code_bytes: the bytes of code, vertex state and exchange code that come from the host: each
            codelet once, the rest for each tile.
    """

    residents: tuple[Resident, ...]
    rectangles: Integers
    code_bytes: int

    @cached_property
    def resident_bytes(self) -> int:
        """The bytes of all states and constants."""
        return sum(each.bytes for each in self.residents)


def footprint(module: ModuleOp, target: Target) -> Footprint:
    """The footprint of an exchange module on its target."""
    variables = {v.symbol: v for v in module.body.block.ops if isinstance(v, VariableOp)}
    changed = written(module)
    more = overheads(module, variables, target.tiles, target)
    code = int(more.code.max(initial=0) + (more.vertex_state + more.exchange_code).sum())
    residents = tuple(_resident(v, changed) for v in variables.values() if v.is_resident)
    rectangles = np.array([rectangle(v) for v in variables.values()], np.int64).reshape(-1, 4)
    return Footprint(residents, rectangles, code)


def _resident(v: VariableOp, changed: set[str]) -> Resident:
    is_state = v.state is not None
    shape = tuple(v.tensor.get_shape())
    place = Place(placement(v.placed), shape, v.dtype.name, v.start, rectangle(v))
    return Resident(v.symbol, value_of(v), is_state, v.symbol in changed, v.tensor_bytes, place)


def value_of(v: VariableOp) -> str:
    """What a resident variable holds, in all programs: the name of a state, or the digest of a
    constant."""
    return v.symbol if v.state is not None or v.initial is None else v.initial.data.digest


def rectangle(v: VariableOp) -> Rectangle:
    """The tiles and addresses that a variable takes."""
    return *v.placed.tiles.span, v.start, v.start + v.bytes_per_tile


def overlapping(rectangles: Integers, others: Integers) -> NDArray[np.bool_]:
    """Which rectangles overlap at least one of the others: (n,). Both are (..., 4)."""
    mine, other = rectangles[:, None], others[None]
    tiles = (mine[..., 0] < other[..., 1]) & (other[..., 0] < mine[..., 1])
    bytes_ = (mine[..., 2] < other[..., 3]) & (other[..., 2] < mine[..., 3])
    return np.any(tiles & bytes_, axis=1)


@dataclass(frozen=True)
class Switch:
    """What changing to another program moves over the link of the host.

    Attributes:
        before: the name of the program that is on the tiles, or "" if there is none.
        after: the name of the program that comes.
        stay: how many states and constants already lie where the program needs them.
        stay_bytes: the bytes of these.
        moved: how many states and constants come from the host.
        in_bytes: the bytes of these.
        out_bytes: the bytes of the states that the host gets first, because their values would be
            lost.
        code_bytes: the bytes of the program's code.
        cycles: the time of all that moves, in cycles.
    """

    before: str
    after: str
    stay: int
    stay_bytes: int
    moved: int
    in_bytes: int
    out_bytes: int
    code_bytes: int
    cycles: int


ValueVersion = tuple[str, int]
"""The name or digest of a value, and how often runs have changed it: a state has versions."""


class Tiles:
    """What lies on the tiles between the runs of several programs."""

    def __init__(self, target: Target, programs: Mapping[str, Footprint]) -> None:
        self.target = target
        self.programs = programs
        self.current = ""
        self._held: dict[Place, ValueVersion] = {}
        self._versions: dict[str, int] = {}
        # Of the states that have changed.
        self._bytes: dict[str, int] = {}
        self._on_host: dict[str, int] = {}

    def switch(self, name: str) -> Switch:
        """Change to a program. Nothing moves if it is the current one."""
        program, before = self.programs[name], self.current
        if name == before:
            return Switch(
                *(name, name, len(program.residents), program.resident_bytes, 0, 0, 0, 0, 0)
            )
        needed = {each.place: self._value(each) for each in program.residents}
        sizes = {each.place: each.bytes for each in program.residents}
        missing = [p for p, value in needed.items() if self._held.get(p) != value]
        survivors = self._untouched(program.rectangles)
        left = {p: v for p, v in self._held.items() if p in survivors or needed.get(p) == v}
        out = self._saved(left.values(), [needed[p] for p in missing])
        self._held = left | needed
        self.current = name
        moved_in = sum(sizes[p] for p in missing)
        cycles = host_cycles(moved_in + out + program.code_bytes, self.target)
        stay = len(needed) - len(missing)
        stay_bytes = program.resident_bytes - moved_in
        return Switch(
            *(before, name, stay, stay_bytes, len(missing), moved_in),
            *(out, program.code_bytes, cycles),
        )

    def ran(self) -> None:
        """Record that the current program ran, which changes the states that it writes."""
        for each in self.programs[self.current].residents:
            if each.is_written and each.is_state:
                self._versions[each.value] = self._versions.get(each.value, 0) + 1
                self._bytes[each.value] = each.bytes
                self._held[each.place] = self._value(each)

    def _value(self, each: Resident) -> ValueVersion:
        return each.value, self._versions.get(each.value, 0) if each.is_state else 0

    def _untouched(self, rectangles: Integers) -> set[Place]:
        """The places that no variable of a program overlaps."""
        places = list(self._held)
        if not places or not len(rectangles):
            return set(places)
        touched = overlapping(np.array([p.rectangle for p in places], np.int64), rectangles)
        return {places[i] for i in np.flatnonzero(~touched).tolist()}

    def _saved(self, left: Iterable[ValueVersion], wanted: Iterable[ValueVersion]) -> int:
        """The bytes of states that the host gets: newest values that it lacks, and that are lost on
        the tiles or needed at another place."""
        kept, asked = set(left), set(wanted)
        total = 0
        for name, version in self._versions.items():
            value = name, version
            if self._on_host.get(name, 0) < version and (value not in kept or value in asked):
                total += self._bytes[name]
                self._on_host[name] = version
        return total


def switches(target: Target, programs: Mapping[str, Footprint]) -> tuple[Switch, ...]:
    """What each change between two programs costs, if only the first one ran, and once."""
    found: list[Switch] = []
    for before in programs:
        for after in programs:
            if before != after:
                tiles = Tiles(target, programs)
                tiles.switch(before)
                tiles.ran()
                found.append(tiles.switch(after))
    return tuple(found)
