"""Layers of a graph under other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ....backends.graph import Graph


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with renamed layers. Layers that are not in names keep their names."""
    sets = tuple(replace(each, layer=names.get(each.layer, each.layer)) for each in graph.sets)
    return replace(graph, sets=sets)
