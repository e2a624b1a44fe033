"""The energy of a run of a program and the area of its machine, from the facts of a target.

Work is counted as prices count it: each execution of each superstep, on all tiles. A vertex reads
each of its blocks once and writes its result once. What a codelet reads again, such as the weights
of convolution units, belongs to the energy of a multiplication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialects.steps import Arrival, Copy, Departure, Vertices
from ...dialects.variable import Variable
from ...ir.geometry.overlap import sent_elements
from ...ir.support.deferred import deferred
from ...ir.upstream import ModuleOp
from ..facts import PAIRS, Energy, pair_of
from ..target import Target
from .price import (
    ProgramPrice,
    block_sizes,
    copy_overlaps,
    moved_variable,
    operands_of,
    variables_of,
)
from .words import words_only
from .workload import Workload, macs_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

with deferred(__name__):
    from .crossings import crossings
    from .step_charges import step_charges

INTEGER = "integer"
"""The name of the facts of products of integers."""

MAC = "_pj_per_mac"
"""The end of the name of an energy of a multiplication and an addition."""

PICO = 1e-12

KINDS = ("compute", "memory", "exchange", "links", "static")
"""The kinds of work that take energy."""

NOTHING: Mapping[str, Callable[[], float]] = MappingProxyType({})


@dataclass(frozen=True)
class Joules:
    """The energy of a run.

    Attributes:
        by_kind: joules of each kind of work whose energy the target knows.
        unknown: kinds of work whose energy it does not know, in words.
        whole: whether by_kind has all kinds that the target knows anything of. Products of types of
            which it says nothing would make their sum too small.
    """

    by_kind: Mapping[str, float]
    unknown: tuple[str, ...]
    whole: bool

    @property
    def total(self) -> float:
        """The sum."""
        return sum(self.by_kind.values())


def run_joules(module: ModuleOp, price: ProgramPrice, target: Target) -> Joules | None:
    """The energy of a run of an exchange module; None if the target has no facts of energy.

    Args:
        price: of the module.
    """
    counts: dict[str, Callable[[], float]] = {
        "memory": lambda: _memory_bytes(module, price),
        "exchange": lambda: _exchange_bytes(price),
        "links": lambda: _link_bytes(module, target),
    }
    return joules(lambda: _macs(module, price, target), price.cycles, target, counts)


def joules(
    macs: Callable[[], Mapping[str, int]],
    cycles: float,
    target: Target,
    counts: Mapping[str, Callable[[], float]] = NOTHING,
) -> Joules | None:
    """The energy of a run; None if the target has no facts of energy.

    Args:
        macs: returns the multiplications and additions by the name of their facts; called if the
            target has any of these.
        cycles: of the run.
        counts: returns the bytes of each kind of movement. A kind that is not there is unknown.
    """
    energy = target.energy
    if energy == Energy():
        return None
    found: dict[str, float] = {}
    unknown: list[str] = []
    whole = True
    costs = {pair: _of_mac(energy, pair) for pair in (*PAIRS.values(), INTEGER)}
    if any(costs.values()):
        done = {pair: count for pair, count in macs().items() if count}
        lacking = sorted(pair for pair in done if not costs.get(pair))
        whole = not lacking
        if whole:
            found["compute"] = PICO * sum(costs[pair] * count for pair, count in done.items())
        unknown.extend(f"products of {pair.replace('_', ', sums of ')}" for pair in lacking)
    else:
        unknown.append("compute")
    moved = {"memory": energy.memory_pj_per_byte, "exchange": energy.exchange_pj_per_byte}
    if target.chips > 1:
        moved["links"] = energy.link_pj_per_byte
    for kind, each in moved.items():
        if each and kind in counts:
            found[kind] = PICO * each * counts[kind]()
        else:
            unknown.append(f"{kind} (not counted here)" if each else kind)
    if energy.static_watts_per_chip:
        watts = energy.static_watts_per_chip * target.chips
        found["static"] = watts * cycles / target.clock_hz
    else:
        unknown.append("static power")
    return Joules(found, tuple(unknown), whole)


def _of_mac(energy: Energy, pair: str) -> float:
    """The picojoules of a multiplication and an addition."""
    return float(getattr(energy, pair + MAC))


def _macs(module: ModuleOp, price: ProgramPrice, target: Target) -> Counter[str]:
    """The multiplications and additions of a run, by the name of their facts."""
    variables = variables_of(module)
    found: Counter[str] = Counter()
    for each in price.steps:
        for op in each.step.body.block.ops:
            if isinstance(op, Vertices):
                dtypes = [v.dtype for v in operands_of(op, variables)]
                add_macs(found, Workload.of(op.structure(), dtypes, target), each.price.times)
    return found


def add_macs(found: Counter[str], work: Workload, times: int) -> None:
    """Count the multiplications and additions of a workload, by the name of their facts."""
    if count := macs_of(work.structure):
        found[products_of(work.operand, work.partials)] += times * count


def products_of(operand: np.dtype[Any], sums: np.dtype[Any]) -> str:
    """The name of the facts of products of a dtype that are added up in another. A pair of dtypes
    of which no target has facts is named after them."""
    if operand.kind in "iu":
        return INTEGER
    return pair_of(operand.name, sums.name) or f"{operand.name}_{sums.name}"


def _exchange_bytes(price: ProgramPrice) -> int:
    """The bytes that tiles receive from other tiles in a run."""
    return sum(each.price.times * each.price.exchange_bytes for each in price.steps)


def _link_bytes(module: ModuleOp, target: Target) -> float:
    """The bytes that a run moves over links, counted on each link that they use."""
    return float(crossings(step_charges(module, target).steps, target).link_bytes.sum())


def _memory_bytes(module: ModuleOp, price: ProgramPrice) -> int:
    """The bytes that tiles read from their memories and write there in a run."""
    variables, free = variables_of(module), words_only(module)
    return sum(
        each.price.times * _bytes_of(op, variables)
        for each in price.steps
        for op in each.step.body.block.ops
        if op not in free
    )


def _bytes_of(op: Operation, variables: Mapping[str, Variable]) -> int:
    """The bytes that all tiles read and write in one execution of an operation."""
    if isinstance(op, Copy):
        written = variables[op.destination]
        size = written.dtype.itemsize
        # A word that several tiles want is read once, and written by each of them.
        read = sum(
            int(sent_elements(shared).sum()) + int(shared.local.sum())
            for shared in copy_overlaps(op, variables)
        )
        return read * size + _block_bytes(written)
    if isinstance(op, Vertices):
        return _vertex_bytes(op, variables)
    if isinstance(op, Arrival | Departure):
        return _block_bytes(moved_variable(op, variables))
    return 0


def _vertex_bytes(op: Vertices, variables: Mapping[str, Variable]) -> int:
    """The bytes of the blocks of all vertices of a set. Of the rows that indices may name, as many
    are read as there are indices, but at most all."""
    space = op.structure().space
    rows = {d for relation in space.relations for d, _ in relation.axis.terms}
    named = {d for each in space.relations for d in space.operands[each.operand].dims()}
    total = 0
    for number, variable in enumerate(operands_of(op, variables)):
        size = _block_bytes(variable)
        access = space.operands[number] if number < len(space.operands) else None
        if access is not None and rows & access.dims():
            reached = 1
            for d in (access.dims() | named) - rows:
                reached *= space.sizes[d]
            size = min(size, reached * variable.dtype.itemsize)
        total += size
    return total


def _block_bytes(variable: Variable) -> int:
    """The bytes of a variable on all tiles."""
    return int(block_sizes(variable.placed).sum()) * variable.dtype.itemsize


def chip_mm2(target: Target) -> float | None:
    """The area of a chip of a target; None if its facts do not say it."""
    area = target.area
    tiles, memory = target.tiles_per_chip, target.bytes_per_tile
    if area.die_mm2 and (area.die_tiles, area.die_bytes_per_tile) == (tiles, memory):
        return area.die_mm2
    if not area.tile_mm2 or not area.memory_mm2_per_mib:
        return None
    return area.rest_mm2 + tiles * (area.tile_mm2 + area.memory_mm2_per_mib * memory / 2**20)
