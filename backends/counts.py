"""The numbers of vertices and edges of a program.

A *vertex* is one codelet instance: one per vertex set, cell and part of a worker that is not empty.
A supervisor codelet is one vertex per cell. An *edge* is one (producing vertex, consuming vertex,
operand) whose vertices share at least one element through memory. Edges lead through copies;
padding has no producer. A host input, and the first value of a state or constant, is one source per
tensor. The edges from sources are counted separately, and so are edges that exist only round a
loop. The static program is counted: a loop's body once, and a called function once.

A *connection* is one (vertex, operand or result): a field of a codelet that is bound to a part of a
variable, whoever wrote it. Vertices of one set have equally many.

Counts are products, over groups of axes, of numbers of pairs of parts, so no pair is listed.
`graph` makes the tables of the same vertices and edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ..dialects.steps import Input, Vertices
from ..dialects.variable import Variable
from ..ir.phases import Phases
from ..ir.provenance import origin
from ..ir.upstream import ModuleOp
from .graph.flow import flow_of, set_of
from .graph.links import reaches
from .graph.parts import fields_of, vertex_count
from .prices.price import copy_overlaps


@dataclass(frozen=True)
class SetCounts:
    """The number of vertices of a superstep or compute set, and of the edges that end there."""

    name: str
    origin: str | None
    vertices: int
    edges: int


@dataclass(frozen=True)
class PhaseCounts:
    """The vertices of one phase of training, the edges that end there, and their connections."""

    vertices: int = 0
    edges: int = 0
    connections: int = 0


@dataclass(frozen=True)
class Counts:
    """The counts of a program's graph.

    Attributes:
        phases: the counts of each phase of a training step. A program that is not trained is all
            forward.
        edges: the number of edges between vertices.
        source_edges: the number of edges from host_sources and state_sources to vertices.
        loop_edges: the number of edges between vertices that exist only round a loop.
        copies: the number of operations that copy.
        relayout_elements: the number of elements that copies write into blocks, without padding.
    """

    vertices: int
    edges: int
    connections: int
    copies: int
    relayout_elements: int
    host_sources: int
    state_sources: int
    source_edges: int
    loop_edges: int
    sets: tuple[SetCounts, ...]
    phases: Mapping[str, PhaseCounts]


def counts(module: ModuleOp) -> Counts:
    """Count the vertices and edges of a tile or exchange module.

    Raises InputError if the module has no entry function or names an unknown variable.
    """
    flow = flow_of(module)
    edges: Counter[Vertices] = Counter()
    source_edges = loop_edges = 0
    sources: set[Operation] = set()
    for reach in reaches(flow):
        found = reach.pairs.count
        if not isinstance(reach.producer, Vertices):
            sources.add(reach.producer)
            source_edges += found
        elif reach.loop:
            loop_edges += found
        else:
            edges[reach.consumer] += found
    sets: dict[Operation, SetCounts] = {}
    phases: dict[str, PhaseCounts] = {}
    known_phases = Phases.of(module)
    for op in flow.vertices:
        outer = set_of(op)
        name = outer.sym_name.data if outer else op.destination
        count = vertex_count(op.space.data, op.plan.data)
        known = sets.get(outer or op, SetCounts(name, origin(outer or op), 0, 0))
        sets[outer or op] = replace(
            known,
            vertices=known.vertices + count,
            edges=known.edges + edges[op],
        )
        phase = known_phases.phase(origin(op) or origin(outer or op))
        before = phases.get(phase, PhaseCounts())
        phases[phase] = PhaseCounts(
            before.vertices + count,
            before.edges + edges[op],
            before.connections + count * fields_of(op),
        )
    return Counts(
        vertices=sum(s.vertices for s in sets.values()),
        edges=sum(s.edges for s in sets.values()),
        connections=sum(each.connections for each in phases.values()),
        copies=len(flow.copies),
        relayout_elements=sum(
            int(shared.wanted.sum())
            for copy in flow.copies
            for shared in copy_overlaps(copy, flow.variables)
        ),
        host_sources=sum(isinstance(s, Input) for s in sources),
        state_sources=sum(isinstance(s, Variable) for s in sources),
        source_edges=source_edges,
        loop_edges=loop_edges,
        sets=tuple(sets.values()),
        phases=phases,
    )
