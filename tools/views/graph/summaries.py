"""The short tables of a graph: vertex sets, links, compute sets, chips, and traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....backends.graph import Graph
from ....backends.prices.price import SuperstepPrice
from ....ir.phases import PHASES

Table = Mapping[str, Sequence[Any] | NDArray[Any]]

SET_COLUMNS = (
    *("index", "compute_set", "name", "origin", "layer", "line", "phase", "codelet"),
    *("first", "count", "connections"),
)
PRICED = ("times", "compute_cycles", "exchange_cycles", "sync_cycles", "exchange_bytes")


def about_table(graph: Graph) -> Table:
    """One row: the size of the graph, and the machine it was compiled for."""
    return {
        "target": [graph.target],
        "tiles": [graph.tiles],
        "chips": [graph.chips],
        "vertices": [graph.vertex_count],
        "edges": [graph.edge_count],
        "connections": [graph.connection_count],
        "loop_edges": [graph.loop_edge_count],
        "edges_between_chips": [graph.by_chip.between],
    }


def chip_table(graph: Graph) -> Table:
    """Every chip: its tiles, its vertices, and the edges within it, into it and out of it.

    Leaves out edges between iterations of a loop.
    """
    found, chips = graph.by_chip, graph.chips
    away = found.source != found.destination
    ends = {
        "edges_within": (found.source, ~away),
        "edges_in": (found.destination, away),
        "edges_out": (found.source, away),
    }
    width = graph.tiles // chips
    return {
        "chip": np.arange(chips, dtype=np.int32),
        "first_tile": np.arange(chips) * width,
        "tiles": np.full(chips, width),
        "vertices": found.vertices,
        "connections": found.connections,
        **{
            name: np.bincount(chip[kept], found.edges[kept], chips).astype(np.int64)
            for name, (chip, kept) in ends.items()
        },
    }


def crossing_table(graph: Graph) -> Table:
    """All pairs of chips that edges join, also of a chip with itself: edges and bytes.

    Leaves out edges between iterations of a loop.
    """
    columns = ("source", "destination", "edges", "bytes")
    return {name: getattr(graph.by_chip, name) for name in columns}


def set_table(graph: Graph) -> Table:
    """Every vertex set: its number, compute set, node and codelet, and the ids of its vertices."""
    columns = {name: [getattr(each, name) for each in graph.sets] for name in SET_COLUMNS}
    return {"set": columns.pop("index"), **columns}


def link_table(graph: Graph, loops: bool) -> Table:
    """Every link: its two vertex sets, the operand it feeds, and the rows of its edges.

    first: the first row of its edges in edges.parquet; -1 if they are left out there.
    """
    links = graph.links
    written = np.array([link.count if loops or not link.loop else 0 for link in links], np.int64)
    rows = np.cumsum(written) - written
    names = ("producer", "consumer", "operand", "count", "bytes", "loop")
    columns = {name: [getattr(each, name) for each in links] for name in names}
    return {
        "link": np.arange(len(links), dtype=np.int32),
        **columns,
        "first": np.where(written > 0, rows, -1),
    }


def compute_set_table(graph: Graph, prices: Sequence[SuperstepPrice]) -> Table:
    """Every compute set: its vertices, the edges that end there, and the price of its superstep.

    Leaves out edges between iterations of a loop. cycles are those of one execution; times counts
    executions.
    """
    count = len(graph.compute_sets)
    of = np.array([each.compute_set for each in graph.sets], np.int64)
    first = {each.compute_set: each for each in reversed(graph.sets)}
    vertices, edges = np.zeros(count, np.int64), np.zeros(count, np.int64)
    read, connections = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(vertices, of, [each.count for each in graph.sets])
    np.add.at(connections, of, [each.connections for each in graph.sets])
    found: list[set[str]] = [set() for _ in range(count)]
    for each in graph.sets:
        found[each.compute_set].add(each.phase)
    straight = [link for link in graph.links if not link.loop]
    into = of[[link.consumer for link in straight]]
    np.add.at(edges, into, [link.count for link in straight])
    np.add.at(read, into, [link.bytes for link in straight])
    by_name = {each.name: each for each in prices}
    priced = [by_name[name] for name in graph.compute_sets]
    return {
        "compute_set": np.arange(count, dtype=np.int32),
        "name": list(graph.compute_sets),
        "origin": [first[k].origin for k in range(count)],
        "layer": [first[k].layer for k in range(count)],
        "line": [first[k].line for k in range(count)],
        "phase": [max(phases, key=PHASES.index) for phases in found],
        "vertices": vertices,
        "edges": edges,
        "connections": connections,
        "bytes": read,
        **{name: [getattr(each, name) for each in priced] for name in PRICED},
        "busiest_tile": [each.busiest_tile for each in priced],
    }


def traffic_table(graph: Graph) -> Table:
    """All pairs of a compute set and a reader of its results: edges and bytes.

    A query would take minutes to join the edges for this.
    """
    of = np.array([each.compute_set for each in graph.sets], np.int64)
    links = graph.links
    ends = (
        np.stack(
            [
                of[[link.producer for link in links]],
                of[[link.consumer for link in links]],
                np.array([link.loop for link in links], np.int64),
            ]
        )
        if links
        else np.zeros((3, 0), np.int64)
    )
    pairs, where = np.unique(ends, axis=1, return_inverse=True)
    edges, size = np.zeros(pairs.shape[1], np.int64), np.zeros(pairs.shape[1], np.int64)
    np.add.at(edges, where, np.array([link.count for link in links], np.int64))
    np.add.at(size, where, np.array([link.bytes for link in links], np.int64))
    return {
        "producer": pairs[0].astype(np.int32),
        "consumer": pairs[1].astype(np.int32),
        "loop": pairs[2].astype(bool),
        "edges": edges,
        "bytes": size,
    }
