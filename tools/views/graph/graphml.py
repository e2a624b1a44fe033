"""Small graphs as NetworkX and GraphML, for tools that draw or analyse them node by node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ....backends.graph import Graph
from ....ir.errors import InputError
from ....ir.whole_file import whole_file

MOST = 200_000
"""Vertices and edges together: a Python object each, about a kilobyte."""


def needs_networkx() -> None:
    """Raise InputError where no graph can be made."""
    _networkx()


def check_small(graph: Graph, loops: bool) -> None:
    """Raise InputError for a graph of more than MOST vertices and edges."""
    edges = graph.edge_count + (graph.loop_edge_count if loops else 0)
    if graph.vertex_count + edges > MOST:
        raise InputError(
            f"a graph of {graph.vertex_count:,} vertices and {edges:,} edges; GraphML and NetworkX "
            f"are for {MOST:,} of both together: take the tables, or a smaller target"
        )


def as_networkx(graph: Graph, *, loops: bool = False) -> Any:
    """A networkx.MultiDiGraph: an edge for each edge, vertices with all their columns.

    Vertices are numbered by id, and have layer, codelet and origin besides. Keys of edges are
    operands. loops: also edges that are carried round a loop only, which say so.
    Raises InputError for a graph of more than MOST vertices and edges.
    """
    networkx = _networkx()
    check_small(graph, loops)
    made = networkx.MultiDiGraph(target=graph.target, tiles=graph.tiles)
    columns: dict[str, list[int]] = {n: c.tolist() for n, c in graph.vertices().items()}
    for k, number in enumerate(columns["id"]):
        of = graph.sets[columns["set"][k]]
        values = {name: column[k] for name, column in columns.items() if name != "id"}
        made.add_node(number, **values, layer=of.layer, codelet=of.codelet, origin=of.origin or "")
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
