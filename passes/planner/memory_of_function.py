"""The memory over time of one function of a planned program, and what its operators cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from ...backends.target import Target
from ...dialects.variable import bytes_per_tile
from ...ir.geometry.layout import Layout
from ...ir.upstream import ModuleOp
from ..plans.derive import compute_layouts
from ..plans.steps import takes_steps
from .arrival import relayout_cycles
from .graph import Operator, dtype_of, read_graph
from .layouts import Decided
from .limits import Limits
from .memory import Memory
from .network import Network


@dataclass(frozen=True, eq=False)
class MemoryOfFunction:
    """The memory of a planned function on the fullest tile, as if that were one tile throughout.

    Attributes:
        live: bytes of values at each moment, (moments,).
        temporary: bytes that the operator or call of a moment takes, (moments,).
        lives: for each value, its first and last moment and its bytes.
        moments, own, cycles: for each operator, its moment, the bytes that it takes, with copies of
            its operands in other layouts, and its cycles.
        relaid: the copies that several operators share. They are not in `live`, which is as the
            planner counts.
    """

    live: NDArray[np.int64]
    temporary: NDArray[np.int64]
    lives: Mapping[SSAValue, tuple[int, int, int]]
    moments: Mapping[Operation, int]
    own: Mapping[Operation, int]
    cycles: Mapping[Operation, float]
    relaid: tuple[Relaid, ...]


@dataclass(frozen=True, eq=False)
class Relaid:
    """A copy of a value in another layout that several operators read.

    A value is copied to a layout only once (see ToPartition.in_layout), so the copy lives from the
    first of these operators to the last one.

    Attributes:
        bytes: what it takes on a tile.
        cycles: what making it again costs.
    """

    value: SSAValue
    readers: tuple[Operation, ...]
    bytes: int
    cycles: float


def memory_of(module: ModuleOp, target: Target, limits: Limits, name: str) -> MemoryOfFunction:
    """The memory of a function of a module at nn whose operators all have plans."""
    network = Network(read_graph(module, target, limits), target)
    decided = network.chooser(network.usable, 0.0).one_by_one()
    memory = Memory(network.graph, decided, target.chips)
    function = network.graph.functions[name]
    live, every = memory.live(function), memory.with_operators(function)
    # The chip that is full at some moment counts.
    fullest = int(every.max(axis=0).argmax())
    live, temporary = live[:, fullest], (every - live)[:, fullest]
    choices = {node: decided.options[node].choice for node in function.operators}
    made = {
        slot: value
        for node in function.operators
        for slot, value in zip(node.results, node.op.results, strict=True)
    }
    return MemoryOfFunction(
        live,
        temporary,
        {
            made[each.slot]: (each.start, each.end, memory.bytes_of(each))
            for each in function.lifetimes
            if each.slot in made
        },
        {node.op: node.moment for node in choices},
        {node.op: choice.temporary_bytes for node, choice in choices.items()},
        {node.op: choice.cycles * node.times for node, choice in choices.items()},
        tuple(_relaid(network, decided, function.operators)),
    )


def _relaid(network: Network, decided: Decided, operators: Iterable[Operator]) -> Iterator[Relaid]:
    """The copies that several operators of a function share."""
    readers: dict[tuple[SSAValue, Layout], list[Operator]] = {}
    source: dict[SSAValue, Layout] = {}
    for node in operators:
        option = decided.options[node]
        plan = option.choice.plan
        if node.problem.moves or takes_steps(plan):
            continue
        wanted = compute_layouts(node.problem.structure, plan)
        placed = {i: option.layouts[slot] for i, slot in (node.homes | node.inputs).items()}
        given = [placed.get(i, have) for i, have in enumerate(decided.have[node])]
        for value, have, layout in zip(node.op.operands, given, wanted, strict=False):
            if have is not None and have != layout and have.shape == layout.shape:
                source[value] = have
                readers.setdefault((value, layout), []).append(node)
    for (value, layout), nodes in readers.items():
        ops = tuple(dict.fromkeys(node.op for node in nodes))
        if len(ops) > 1:
            size = dtype_of(value).itemsize
            cycles = relayout_cycles(source[value], layout, size, nodes[0].part.target)
            yield Relaid(value, ops, bytes_per_tile(layout, size), nodes[0].times * cycles)
