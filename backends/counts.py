"""The numbers of vertices and edges of a program.

A *vertex* is one codelet instance: one per vertex set, cell and part of a worker that is not empty.
A supervisor codelet is one vertex per cell. An *edge* is one (producing vertex, consuming vertex,
operand) whose vertices share at least one element through memory. Edges lead through copies;
padding has no producer. A host input, and the first value of a state or constant, is one source per
tensor. The edges from sources are counted separately, and so are edges that exist only round a
loop. The static program is counted: a loop's body once, and a called function once.

Counts are products, over groups of axes, of numbers of pairs of parts, so no pair is listed.
`graph` makes the tables of the same vertices and edges.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ..dialects.tile import InputOp, VerticesOp
from ..dialects.variable import Variable
from ..ir.provenance import origin
from ..ir.upstream import ModuleOp
from .graph.flow import flow_of, set_of
from .graph.links import reaches
from .graph.parts import vertex_count
from .price import copy_overlaps


@dataclass(frozen=True)
class SetCounts:
    """The number of vertices of a superstep or compute set, and of the edges that end there."""

    name: str
    origin: str | None
    vertices: int
    edges: int


@dataclass(frozen=True)
class Counts:
    """The counts of a program's graph.

    edges: between vertices. source_edges: from host_sources and state_sources to vertices.
    loop_edges: between vertices, only round a loop. copies: operations that copy.
    relayout_elements: elements that they write into blocks, without padding.
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

    Raises InputError if the module has no entry function or names an unknown variable.
    """
    flow = flow_of(module)
    edges: Counter[VerticesOp] = Counter()
    source_edges = loop_edges = 0
    sources: set[Operation] = set()
    for reach in reaches(flow):
        found = reach.pairs().count
        if not isinstance(reach.producer, VerticesOp):
            sources.add(reach.producer)
            source_edges += found
        elif reach.loop:
            loop_edges += found
        else:
            edges[reach.consumer] += found
    sets: dict[Operation, SetCounts] = {}
    for op in flow.vertices:
        outer = set_of(op)
        name = outer.sym_name.data if outer else op.destination
        known = sets.get(outer or op, SetCounts(name, origin(outer or op), 0, 0))
        sets[outer or op] = replace(
            known,
            vertices=known.vertices + vertex_count(op.space.data, op.plan.data),
            edges=known.edges + edges[op],
        )
    return Counts(
        vertices=sum(s.vertices for s in sets.values()),
        edges=sum(s.edges for s in sets.values()),
        copies=len(flow.copies),
        relayout_elements=sum(
            int(shared.wanted.sum())
            for copy in flow.copies
            for shared in copy_overlaps(copy, flow.variables)
        ),
        host_sources=sum(isinstance(s, InputOp) for s in sources),
        state_sources=sum(isinstance(s, Variable) for s in sources),
        source_edges=source_edges,
        loop_edges=loop_edges,
        sets=tuple(sets.values()),
    )
