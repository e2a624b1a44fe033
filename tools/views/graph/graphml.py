"""Small graphs as NetworkX and GraphML, for tools that draw or analyse single nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ....backends.graph import Graph
from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from ...driver.shown_text import shown

MOST = 200_000
"""Vertices and edges together. Each becomes a Python object of about a kilobyte."""


NAMES = ("layer", "codelet", "origin", "line")
"""What a vertex has from its vertex set."""


def needs_networkx() -> None:
    """Raise InputError if networkx is not installed."""
    _networkx()


def check_small(graph: Graph, loops: bool) -> None:
    """Raise InputError for a graph with more than MOST vertices and edges."""
    edges = graph.edge_count + (graph.loop_edge_count if loops else 0)
    if graph.vertex_count + edges > MOST:
        raise InputError(
            f"a graph of {graph.vertex_count:,} vertices and {edges:,} edges; GraphML and NetworkX "
            f"are for {MOST:,} of both together: use the tables, or a smaller target"
        )


def as_networkx(graph: Graph, *, loops: bool = False) -> Any:
    """A networkx.MultiDiGraph with one edge per edge, and vertices with all their columns.

    Vertices are numbered by id and also have a layer, a codelet, an origin and a line. The keys
    of edges are operands. Raises InputError for a graph with more than MOST vertices and edges.

    Args:
        loops: include edges that exist only between iterations of a loop, and mark them.
    """
    networkx = _networkx()
    check_small(graph, loops)
    made = networkx.MultiDiGraph(target=graph.target, tiles=graph.tiles)
    columns: dict[str, list[int]] = {n: c.tolist() for n, c in graph.vertices().items()}
    for k, number in enumerate(columns["id"]):
        of = graph.sets[columns["set"][k]]
        values = {name: column[k] for name, column in columns.items() if name != "id"}
        # XML has no control characters, whatever they are escaped by.
        names = {name: shown(getattr(of, name) or "") for name in NAMES}
        made.add_node(number, **values, **names)
    for block in graph.edges(loops=loops):
        link = graph.links[block.link]
        made.add_edges_from(
            (producer, consumer, link.operand, {"bytes": size, "loop": link.loop})
            for producer, consumer, size in zip(
                block.producer.tolist(), block.consumer.tolist(), block.bytes.tolist(), strict=True
            )
        )
    return made


def write_graphml(graph: Graph, path: Path, *, loops: bool = False) -> None:
    """Write a small graph as GraphML. Raises InputError."""
    made = as_networkx(graph, loops=loops)
    try:
        with whole_file(path) as stream:
            _networkx().write_graphml_xml(made, stream)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _networkx() -> Any:
    try:
        import networkx  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InputError(
            "GraphML needs networkx, which is not installed: pip install 'abele[graph]'"
        ) from None
    return networkx
