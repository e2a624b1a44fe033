"""How many vertices a program has, and how many edges join them.

A *vertex* is one codelet instance: one for each vertex set, cell and worker part that has
something to do; a supervisor codelet is one a cell. An *edge* is one (producing vertex, consuming
vertex, operand) that share at least one element through memory. Copies are looked through, padding
has no producer. A host input, or a state's or constant's first value, is one source a tensor, and
its edges are counted apart; so are edges that only exist round a loop. The static program is
counted: a loop's body once, a called function once.

Counts are products over axis groups of numbers of pairs of parts: no pair is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ..dialects import control
from ..dialects.abele import Plan
from ..dialects.exchange import SuperstepOp
from ..dialects.program import Copy, HostInput, Variable, Vertices
from ..dialects.tile import ComputeSetOp
from ..ir.geometry.grid import Cut
from ..ir.geometry.layout import Bounds, Layout
from ..ir.geometry.overlap import Overlap, refined_overlap
from ..ir.geometry.space import Space, identity_map
from ..ir.provenance import origin
from ..ir.upstream import ModuleOp
from .price import ENTRY, callee_of, copy_overlaps, functions_of, operands_of, variables_of

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SetCounts:
    """Vertices of one superstep or compute set, and the edges that end there."""

    name: str
    origin: str | None
    vertices: int
    edges: int


@dataclass(frozen=True)
class Counts:
    """The graph of a program.

    edges: between vertices. source_edges: from the host_sources and state_sources, one source a
    tensor, to vertices. loop_edges: between vertices, only round a loop. copies: operations
    that copy; relayout_elements: what they write into blocks, padding left out.
    """

    vertices: int
    edges: int
    copies: int
    relayout_elements: int
    host_sources: int
    state_sources: int
    source_edges: int
    loop_edges: int
    sets: tuple[SetCounts, ...]


def counts(module: ModuleOp) -> Counts:
    """Count the vertices and edges of a tile or exchange module.

    Raises InputError for a module that has no entry function or names no such variable.
    """
    variables = variables_of(module)
    flow = _Flow(variables, functions_of(module))
    flow.run()
    edges: dict[Vertices, int] = {}
    source_edges = loop_edges = 0
    sources: set[Operation] = set()
    for (op, operand), ways in flow.reads.items():
        for producer in dict.fromkeys(w.producer for w in ways):
            mine = [w for w in ways if w.producer is producer]
            straight = _merged_pairs([w for w in mine if not w.rounds], op, operand)
            if isinstance(producer, Vertices):
                edges[op] = edges.get(op, 0) + straight
                if any(w.rounds for w in mine):
                    loop_edges += _merged_pairs(mine, op, operand) - straight
            else:
                sources.add(producer)
                source_edges += _merged_pairs(mine, op, operand)
    sets: dict[Operation, SetCounts] = {}
    for op in flow.vertices:
        outer = _set_of(op)
        name = outer.sym_name.data if outer else op.destination
        known = sets.get(outer or op, SetCounts(name, origin(outer or op), 0, 0))
        sets[outer or op] = replace(
            known,
            vertices=known.vertices + vertex_count(op.space.data, op.plan.data),
            edges=known.edges + edges.get(op, 0),
        )
    return Counts(
        vertices=sum(s.vertices for s in sets.values()),
        edges=sum(s.edges for s in sets.values()),
        copies=len(flow.copies),
        relayout_elements=sum(
            int(shared.wanted.sum())
            for copy in flow.copies
            for shared in copy_overlaps(copy, variables)
        ),
        host_sources=sum(isinstance(s, HostInput) for s in sources),
        state_sources=sum(isinstance(s, Variable) for s in sources),
        source_edges=source_edges,
        loop_edges=loop_edges,
        sets=tuple(sets.values()),
    )


def _set_of(op: Vertices) -> SuperstepOp | ComputeSetOp | None:
    outer = op.parent_op()
    return outer if isinstance(outer, SuperstepOp | ComputeSetOp) else None


# Vertices


def vertex_parts(space: Space, plan: Plan) -> Bounds:
    """The parts of each dimension that vertices work on, empty ones left out.

    Every combination of parts, one of each dimension, is a vertex. A cell's n elements make
    min(n, workers) parts, the first n % workers of which have one element more.
    """
    return _vertex_parts(tuple(d.size for d in space.dims), plan.split, plan.workers)


def vertex_count(space: Space, plan: Plan) -> int:
    """Vertices of a set."""
    return prod(len(first) for first, _ in vertex_parts(space, plan))


@lru_cache(maxsize=4096)
def _vertex_parts(
    sizes: tuple[int, ...], split: tuple[int, ...], workers: tuple[int, ...]
) -> Bounds:
    return tuple(
        _dim_parts(n, parts, threads)
        for n, parts, threads in zip(sizes, split, workers or (1,) * len(sizes), strict=True)
    )


def _dim_parts(size: int, parts: int, workers: int) -> tuple[Integers, Integers]:
    edges = Cut(size, parts).edges()
    start, count = edges[:-1, None], np.diff(edges)[:, None]
    thread = np.arange(workers + 1)
    fine = start + thread * (count // workers) + np.minimum(thread, count % workers)
    first, last = fine[:, :-1].ravel(), fine[:, 1:].ravel()
    return first[first < last], last[first < last]


# Which values reach which operands


@dataclass(frozen=True)
class _Way:
    """How a value comes to be in a variable.

    producer: the vertex set, host input or variable whose value it is. moves: what copies did
    to it, in order. rounds: the loops that carried it round, by number.
    """

    producer: Operation
    moves: tuple[Space, ...] = ()
    rounds: frozenset[int] = frozenset()


Ways = frozenset[_Way]
State = dict[str, Ways]
"""For each variable, the ways in which a value may have come to be in it."""


@dataclass
class _Flow:
    """Follows the program and notes the ways that lead to every operand of every vertex set."""

    variables: Mapping[str, Variable]
    functions: Mapping[str, func.FuncOp]
    reads: dict[tuple[Vertices, int], dict[_Way, None]] = field(
        default_factory=dict[tuple[Vertices, int], dict[_Way, None]]
    )
    vertices: dict[Vertices, None] = field(default_factory=dict[Vertices, None])
    copies: dict[Copy, None] = field(default_factory=dict[Copy, None])
    loops: int = 0

    def run(self) -> None:
        state: State = {
            v.symbol: frozenset([_Way(v)]) for v in self.variables.values() if v.is_resident
        }
        self._block(self.functions[ENTRY].body.block, state, (ENTRY,))

    def _block(self, block: Block, state: State, calling: tuple[str, ...]) -> State:
        for op in block.ops:
            state = self._operation(op, state, calling)
        return state

    def _operation(self, op: Operation, state: State, calling: tuple[str, ...]) -> State:
        match op:
            case Vertices():
                operands_of(op, self.variables)
                self.vertices[op] = None
                for i, source in enumerate(op.sources):
                    self.reads.setdefault((op, i), {}).update(
                        dict.fromkeys(state.get(source, frozenset()))
                    )
                return {**state, op.destination: frozenset([_Way(op)])}
            case Copy():
                operands_of(op, self.variables)
                self.copies[op] = None
                return {**state, op.destination: _copied(op, state)}
            case HostInput():
                return {**state, op.writes.string_value(): frozenset([_Way(op)])}
            case SuperstepOp() | ComputeSetOp():
                return self._block(op.body.block, state, calling)
            case control.IfOp():
                branches = [self._block(r.block, state, calling) for r in (op.then, op.otherwise)]
                return _joined(*branches)
            case control.RepeatOp():
                if op.turns < 2:
                    return self._block(op.body.block, state, calling)
                return self._loop(None, op.body.block, state, calling)
            case control.WhileOp():
                return self._loop(op.test.block, op.body.block, state, calling)
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                return self._block(callee.body.block, state, (*calling, callee.sym_name.data))
            case _:
                return state

    def _loop(
        self, test: Block | None, body: Block, state: State, calling: tuple[str, ...]
    ) -> State:
        """The state after a loop, which is left after the test, or else after the body."""
        self.loops += 1
        number = self.loops
        entering = state
        while True:
            tested = self._block(test, entering, calling) if test else entering
            after = self._block(body, tested, calling)
            again = _carried(after, state, entering, number)
            if again == entering:
                return _left(tested if test else after, number)
            entering = again


def _copied(op: Copy, state: State) -> Ways:
    spaces: Sequence[Space | None] = op.spaces or (None,) * len(op.sources)
    return frozenset(
        replace(way, moves=(*way.moves, space) if space else way.moves)
        for source, space in zip(op.sources, spaces, strict=True)
        for way in state.get(source, frozenset())
    )


def _joined(*states: State) -> State:
    names = {name for state in states for name in state}
    return {name: frozenset().union(*(s.get(name, frozenset()) for s in states)) for name in names}


def _carried(after: State, before: State, entering: State, loop: int) -> State:
    """What may enter the next turn: all that entered this one, and what this one left.

    A producer's value is followed round the loop once: how it moves on later turns is not.
    """
    result = dict(entering)
    for name, ways in after.items():
        old = entering.get(name, frozenset())
        known = {w.producer for w in old if loop in w.rounds}
        new = {
            replace(w, rounds=w.rounds | {loop})
            for w in ways - before.get(name, frozenset())
            if w.producer not in known
        }
        result[name] = old | new
    return result


def _left(state: State, loop: int) -> State:
    return {
        name: frozenset(replace(w, rounds=w.rounds - {loop}) for w in ways)
        for name, ways in state.items()
    }


# Pairs of vertices


def _merged_pairs(ways: Sequence[_Way], op: Vertices, operand: int) -> int:
    """Consuming vertices that one producer reaches, each with each of its producing vertices.

    Where one producer reaches an operand on several ways (it is concatenated with itself), pairs
    are listed and merged; else they are only counted.
    """
    consumer = (op.space.data, op.plan.data.split, op.plan.data.workers, operand)
    chains = dict.fromkeys(way.moves for way in ways)
    if not chains:
        return 0
    producer = ways[0].producer
    made = (
        (producer.space.data, producer.plan.data.split, producer.plan.data.workers)
        if isinstance(producer, Vertices)
        else None
    )
    if len(chains) == 1:
        return _pair_count(made, consumer, *chains)
    ids: list[Integers] = []
    for moves in chains:
        shared = _shared(made, consumer, moves)
        if shared.pair_count:
            of, to, _ = shared.pairs()
            ids.append(of * shared.destination.cells + to)
    distinct = len(np.unique(np.concatenate(ids))) if ids else 0
    return distinct * _threads(made)


Maker = tuple[Space, tuple[int, ...], tuple[int, ...]]
Taker = tuple[Space, tuple[int, ...], tuple[int, ...], int]


@lru_cache(maxsize=4096)
def _pair_count(made: Maker | None, taken: Taker, moves: tuple[Space, ...]) -> int:
    if made is not None and not _vertices(made[0], made[1], made[2]):
        return 0
    if not _vertices(taken[0], taken[1], taken[2]):
        return 0
    return _shared(made, taken, moves).pair_count * _threads(made)


def _vertices(space: Space, split: tuple[int, ...], workers: tuple[int, ...]) -> int:
    return vertex_count(space, Plan(split, workers=workers))


def _threads(made: Maker | None) -> int:
    """Producing vertices that make the same element: parts of what the result does not name."""
    if made is None:
        return 1
    space = made[0]
    named = space.results[0].dims()
    parts = _vertex_parts(space.sizes, made[1], made[2])
    return prod(
        len(first)
        for d, (first, _) in enumerate(parts)
        if d not in named and space.dims[d].size > 1
    )


def _shared(made: Maker | None, taken: Taker, moves: tuple[Space, ...]) -> Overlap:
    """The elements that producing and consuming vertices share."""
    space, split, workers, operand = taken
    bounds = _vertex_parts(space.sizes, split, workers)
    destination = Layout(_grid(space.sizes, bounds), space.operands[operand])
    if made is None:
        shape = moves[0].operands[0].shape if moves else destination.shape
        whole = Layout(
            tuple(Cut(max(n, 1)) for n in shape), identity_map(tuple(range(len(shape))), shape)
        )
        return refined_overlap(whole, destination, moves, None, bounds)
    cells = _vertex_parts(made[0].sizes, made[1], made[2])
    named = made[0].results[0].dims()
    # Dimensions that the result does not name make no blocks of their own.
    cells = tuple(
        part if d in named else (part[0][:1], part[1][-1:]) for d, part in enumerate(cells)
    )
    source = Layout(_grid(made[0].sizes, cells), made[0].results[0])
    return refined_overlap(source, destination, moves, cells, bounds)


def _grid(sizes: Iterable[int], bounds: Bounds) -> tuple[Cut, ...]:
    """Cuts into as many parts as there are bounds; only their number is used."""
    return tuple(Cut(n, max(len(b[0]), 1)) for n, b in zip(sizes, bounds, strict=True))
