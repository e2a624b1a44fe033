"""The two long tables of a graph, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ....backends.graph import Graph
from .parquet import Column, Piece

ROWS = 1 << 20
"""The largest number of rows in a piece."""

VERTICES = (
    Column("id", "int32", "delta", ranges=True),
    Column("tile", "int32", "delta", ranges=True),
    Column("worker", "int8"),
    Column("set", "int32", ranges=True),
    Column("compute_set", "int32", ranges=True),
    Column("codelet", "text"),
    Column("origin", "text"),
    Column("line", "text"),
    Column("cycles", "int32"),
    Column("bytes", "int32"),
)

EDGES = (
    Column("producer", "int32", "delta", ranges=True),
    Column("consumer", "int32", "delta", ranges=True),
    Column("bytes", "int32"),
)


def vertex_pieces(graph: Graph) -> Iterator[tuple[Piece, Mapping[str, list[str]]]]:
    """The vertices by id, with the columns that their sets have in common."""
    names: dict[str, list[str]] = {}
    of_set: dict[str, np.ndarray] = {}
    for name in ("codelet", "origin", "line"):
        values = [getattr(each, name) or "" for each in graph.sets]
        names[name] = list(dict.fromkeys(values))
        of_set[name] = np.array([names[name].index(v) for v in values], np.int32)
    for first in range(0, graph.vertex_count, ROWS):
        columns = graph.vertices(first, min(first + ROWS, graph.vertex_count))
        columns["tile"] = columns["tile"].astype(np.int32, copy=False)
        yield columns | {name: of_set[name][columns["set"]] for name in names}, names


def edge_pieces(graph: Graph, loops: bool) -> Iterator[tuple[Piece, Mapping[str, list[str]]]]:
    """The edges, link by link, in pieces of similar numbers of rows.

    Edges of short links share a piece, because small row groups are slow to read.
    """
    waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    rows = 0
    for block in graph.edges(ROWS, loops):
        if rows + len(block.producer) > ROWS:
            yield _joined(waiting), {}
            waiting, rows = [], 0
        waiting.append((block.producer, block.consumer, block.bytes))
        rows += len(block.producer)
    if waiting:
        yield _joined(waiting), {}


def _joined(blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Piece:
    columns = blocks[0] if len(blocks) == 1 else map(np.concatenate, zip(*blocks, strict=True))
    return dict(zip((c.name for c in EDGES), columns, strict=True))
