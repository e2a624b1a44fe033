"""The pairs of vertices in which one vertex reads a value of the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from xdsl.ir import Operation

from ...dialects.abele import Plan
from ...dialects.steps import Vertices
from ...ir.geometry.pairs import Factor, Pairs, Side, destination_factors, pairs, touched
from ...ir.geometry.space import Space, identity_map
from ...ir.support.arrays import Integers
from .contents import Content, ValuePath, ways_of
from .flow import Flow
from .memory import check_memory
from .owners import NOBODY, VERTEX, Owners
from .parts import vertex_parts

MOST_PATHS = 64
"""The most paths to one operand that are followed one by one."""

MOST_MOVES = 64
"""The most moves along all of these paths together.

With more, owners are moved element by element (`owners`). Both ways give the same edges.
"""


@dataclass(frozen=True)
class Reach:
    """The values of one producer that reach one operand of a vertex set.

    Attributes:
        producer: a vertex set, host input or variable.
        loop: whether only pairs count that exist around a loop.
        pairs: each pair of a producing and a consuming vertex once, with the number of elements
            that they share.
    """

    producer: Operation
    consumer: Vertices
    operand: int
    loop: bool
    pairs: Pairs


def reaches(flow: Flow) -> Iterator[Reach]:
    """All reaches of a program; reaches around loops are separate."""
    every = Owners(flow.variables)
    moved: dict[Content, list[tuple[Vertices, int]]] = {}
    for (op, operand), held in flow.reads.items():
        content = flow.contents.either(held)
        if content is None:
            continue
        found = _reaches_of(content, op, operand)
        if found is None:
            moved.setdefault(content, []).append((op, operand))
        else:
            yield from found
    for content, owners in every.of(moved):
        for op, operand in moved[content]:
            yield from _read(every, owners, op, operand)


def _reaches_of(content: Content, op: Vertices, operand: int) -> list[Reach] | None:
    """The reaches of an operand, path by path.

    None if there are many paths, or if some pairs may share an element on several of them.
    """
    if content.extent.paths > MOST_PATHS or content.extent.moves > MOST_MOVES:
        return None
    by_producer: dict[Operation, list[ValuePath]] = {}
    for way in ways_of(content):
        by_producer.setdefault(way.producer, []).append(way)
    found: list[Reach] = []
    for producer, ways in by_producer.items():
        chains = tuple(dict.fromkeys((way.result, way.moves) for way in ways))
        some, every = any(way.rounds for way in ways), all(way.rounds for way in ways)
        if len(chains) > 1 and (content.extent.joined or some != every):
            return None
        found.append(Reach(producer, op, operand, every, followed(producer, op, operand, chains)))
    return found


def _read(every: Owners, owners: Integers, op: Vertices, operand: int) -> Iterator[Reach]:
    """The reaches of an operand, from the owners of each of its elements."""
    side = Side(op.space.data.operands[operand], vertex_parts(op.space.data, op.plan.data))
    cell, element = touched(side)
    read = every.read(owners, element)
    row, at = np.nonzero(read != NOBODY)
    owner, number = np.unique(read[row, at], return_inverse=True)
    pair, shared = np.unique(number * side.cells + cell[at], return_counts=True)
    owner, cell = owner[pair // side.cells], pair % side.cells
    straight = owner <= VERTEX
    again = np.isin(_pair(owner & VERTEX, cell, side), _pair(owner[straight], cell[straight], side))
    free = destination_factors(side)
    for loop, chosen in ((False, straight), (True, ~(straight | again))):
        vertex, to, common = owner[chosen] & VERTEX, cell[chosen], shared[chosen]
        for producer, here in every.producers(vertex):
            factor = Factor(vertex[here] - every.first[producer], to[here], common[here])
            yield Reach(producer, op, operand, loop, Pairs((factor, *free)))


def _pair(vertex: Integers, cell: Integers, side: Side) -> Integers:
    return vertex * side.cells + cell


PAIR_BYTES = 120
"""Bytes of a pair in memory while pairs are merged: three numbers, and the temporaries of a sort.

Assumed, from the arrays of `followed`: 15 numbers of 8 bytes.
"""

Maker = tuple[Space, Plan, int]
Taker = tuple[Space, Plan, int]
Moves = tuple[Space, ...]
Chain = tuple[int, Moves]
"""A result of a producer, and the moves that it passed through."""


def followed(producer: Operation, op: Vertices, operand: int, chains: Sequence[Chain]) -> Pairs:
    """The pairs over several chains of moves that share different elements.

    A producer that is not a vertex set is one source. The pairs of a single chain stay a product;
    those of several chains are listed, and the elements that they share are added up.
    """
    taken = (op.space.data, _cut(op.plan.data), operand)

    def maker(result: int) -> Maker | None:
        if not isinstance(producer, Vertices):
            return None
        return producer.space.data, _cut(producer.plan.data), result

    found = [_pairs(maker(result), taken, moves) for result, moves in chains]
    if len(found) == 1:
        return found[0]
    listed = _listed(found)
    source = np.concatenate([each.source for each in listed])
    destination = np.concatenate([each.destination for each in listed])
    shared = np.concatenate([each.shared for each in listed])
    span = int(source.max(initial=0)) + 1
    pair, where = np.unique(destination * span + source, return_inverse=True)
    total = np.zeros(len(pair), np.int64)
    np.add.at(total, where, shared)
    return Pairs((Factor(pair % span, pair // span, total),))


def _listed(products: Sequence[Pairs]) -> list[Factor]:
    """The pairs of several products as lists. Raises InputError if memory is too small for them."""
    count = sum(each.count for each in products)
    check_memory(count * PAIR_BYTES, f"{count:,} edges that reach one operand on several ways")
    return [each.listed() for each in products]


def _cut(plan: Plan) -> Plan:
    """The fields of a plan that decide its vertices, so that equal layers share a cache entry."""
    return Plan(plan.split, workers=plan.workers)


@lru_cache(maxsize=1024)
def _pairs(made: Maker | None, taken: Taker, moves: Moves) -> Pairs:
    space, plan, operand = taken
    destination = Side(space.operands[operand], vertex_parts(space, plan))
    if made is not None:
        space_of_maker, plan_of_maker, result = made
        parts = vertex_parts(space_of_maker, plan_of_maker)
        source = Side(space_of_maker.results[result], parts)
        return pairs(source, destination, moves)
    shape = moves[0].operands[0].shape if moves else destination.access.shape
    whole = tuple((np.zeros(1, np.int64), np.array([max(n, 1)])) for n in shape)
    return pairs(Side(identity_map(tuple(range(len(shape))), shape), whole), destination, moves)
