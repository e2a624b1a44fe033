"""The pairs of vertices of which one reads a value of the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from xdsl.ir import Operation

from ...dialects.abele import Plan
from ...dialects.tile import VerticesOp
from ...ir.geometry.pairs import Factor, Pairs, Side, pairs
from ...ir.geometry.space import Space, identity_map
from .flow import Flow, Way
from .memory import check_memory
from .parts import vertex_parts


@dataclass(frozen=True)
class Reach:
    """The values of one producer that reach one operand of a vertex set.

    producer: a vertex set, host input or variable. ways: the ways that lead to the operand. loop:
    whether only the pairs count that exist round a loop.
    """

    producer: Operation
    consumer: VerticesOp
    operand: int
    ways: tuple[Way, ...]
    loop: bool

    def pairs(self) -> Pairs:
        """Each pair of a producing and a consuming vertex once, with the elements that they share.

        A producer that is not a vertex set is one source. If it reaches the operand on several ways
        (it is concatenated with itself), pairs are listed and merged, and their shared elements are
        added up; otherwise the pairs stay a product.
        """
        everything = _merged(self, _chains(self.ways))
        if not self.loop:
            return everything
        straight = _chains([way for way in self.ways if not way.rounds])
        return _without(everything, _merged(self, straight)) if straight else everything


def reaches(flow: Flow) -> Iterator[Reach]:
    """All reaches of a program, consumer by consumer; those round loops are separate."""
    for (op, operand), ways in flow.reads.items():
        for producer in dict.fromkeys(way.producer for way in ways):
            mine = tuple(way for way in ways if way.producer is producer)
            straight = tuple(way for way in mine if not way.rounds)
            if straight:
                yield Reach(producer, op, operand, straight, loop=False)
            if len(straight) < len(mine):
                yield Reach(producer, op, operand, mine, loop=True)


PAIR_BYTES = 120
"""Bytes of a pair in memory while pairs are compared: three numbers, and the temporaries of a sort.

Assumed, from the arrays of `_merged`: 15 numbers of 8 bytes.
"""

Maker = tuple[Space, Plan, int]
Taker = tuple[Space, Plan, int]
Moves = tuple[Space, ...]
Chain = tuple[int, Moves]
"""A result of a producer, and the moves that it passed through."""


def _chains(ways: Sequence[Way]) -> tuple[Chain, ...]:
    return tuple(dict.fromkeys((way.result, way.moves) for way in ways))


def _merged(reach: Reach, chains: tuple[Chain, ...]) -> Pairs:
    """The pairs over several chains of moves."""
    op, producer = reach.consumer, reach.producer
    taken = (op.space.data, _cut(op.plan.data), reach.operand)

    def maker(result: int) -> Maker | None:
        if not isinstance(producer, VerticesOp):
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


def _without(everything: Pairs, others: Pairs) -> Pairs:
    """The pairs of one product that are not in another."""
    mine, theirs = _listed([everything, others])
    span = int(max(mine.source.max(initial=0), theirs.source.max(initial=0))) + 1
    new = ~np.isin(mine.destination * span + mine.source, theirs.destination * span + theirs.source)
    return Pairs((Factor(mine.source[new], mine.destination[new], mine.shared[new]),))


def _listed(products: Sequence[Pairs]) -> list[Factor]:
    """The pairs of some products as lists. Raises InputError if memory is too small for them."""
    count = sum(each.count for each in products)
    check_memory(count * PAIR_BYTES, f"{count:,} edges that reach one operand on several ways")
    return [each.listed() for each in products]


def _cut(plan: Plan) -> Plan:
    """The part of a plan that decides its vertices, so that equal layers share a cache entry."""
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
