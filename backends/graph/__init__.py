"""The compiled graph: its vertices and edges as columns."""

from .graph import EdgeBlock, Graph, Link, VertexSet, graph_of
from .parts import vertex_count, vertex_parts

__all__ = [
    "EdgeBlock",
    "Graph",
    "Link",
    "VertexSet",
    "graph_of",
    "vertex_count",
    "vertex_parts",
]
