"""The compiled graph on disk: tables, queries, and GraphML for small graphs."""

from .folder import write_graph
from .graphml import as_networkx, write_graphml

__all__ = ["as_networkx", "write_graph", "write_graphml"]
