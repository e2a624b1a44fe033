"""Draws a synthetic graph of any size, and measures the time and memory that this takes.

    python tests/large_graph.py VERTICES EDGES PIXELS

prints seconds and bytes. Edges are made on demand. The graph has fourteen layers of different
sizes, with seventeen vertex sets each. Vertices are joined to nearby vertices of the next set in
their layer, and to a few sets of the next layer.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abele.backends.graph import EdgeBlock, Link, VertexSet

LAYERS = (3, 2, 1, 8, 2, 1, 6, 6, 5, 1, 37, 20, 7, 1)
PARTS = 17
FAN = 6


class LargeGraph:
    """A graph with exactly this many vertices and edges."""

    target = "mk2"
    tiles = 1472
    chips = 1
    crossing_count = 0

    def __init__(self, vertices: int, edges: int):
        shares = np.repeat(LAYERS, PARTS) / sum(LAYERS) / PARTS
        ends = np.round(np.cumsum(shares) * vertices).astype(int)
        self.sets = [
            VertexSet(
                k,
                k,
                f"layer{k // PARTS}/{k % PARTS}",
                None,
                f"layer{k // PARTS}",
                "",
                int(a),
                int(b),
            )
            for k, (a, b) in enumerate(zip([0, *ends[:-1]], np.diff([0, *ends])))
        ]
        pairs = [(k, k + 1) for k in range(len(self.sets) - 1)]
        pairs += [(k, k + PARTS) for k in range(0, len(self.sets) - PARTS, 4)]
        wanted = np.array([self.sets[b].count for _, b in pairs], float)
        wanted[len(self.sets) - 1 :] /= 4
        stops = np.round(np.cumsum(wanted) / wanted.sum() * edges).astype(int)
        counts = np.diff([0, *stops])
        self.links = [Link(a, b, 0, int(n), False, 0) for (a, b), n in zip(pairs, counts)]

    @property
    def vertex_count(self) -> int:
        return sum(each.count for each in self.sets)

    @property
    def edge_count(self) -> int:
        return sum(link.count for link in self.links)

    def vertices(self, first: int = 0, last: int | None = None) -> dict[str, NDArray[Any]]:
        ids = np.arange(self.vertex_count, dtype=np.int32)[first:last]
        return {"id": ids, "cycles": ids % 1000}

    def edges(self, most: int = 4_000_000, loops: bool = False) -> Iterator[EdgeBlock]:
        for index, link in enumerate(self.links):
            a, b = self.sets[link.producer], self.sets[link.consumer]
            for first in range(0, link.count, most):
                k = np.arange(first, min(first + most, link.count))
                consumer = k * b.count // link.count
                producer = (consumer * a.count // b.count + (k % FAN) ** 2) % a.count
                yield EdgeBlock(
                    index,
                    (producer + a.first).astype(np.int32),
                    (consumer + b.first).astype(np.int32),
                    np.empty(0, np.int32),
                )


def peak_bytes() -> int:
    """The peak memory of this process. (ru_maxrss would start with that of its parent.)"""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def main(vertices: int, edges: int, size: int, path: str = "") -> None:
    from abele.tools.views.scan.memory import needed_bytes
    from abele.tools.views.scan.scan import Subject, laid_out, scan

    graph = LargeGraph(vertices, edges)
    clocks = [(time.perf_counter(), time.process_time())]
    laid = laid_out(graph, Subject("a large graph", "batch 1"), size)
    clocks.append((time.perf_counter(), time.process_time()))
    found = scan(laid, "layer", size)
    clocks.append((time.perf_counter(), time.process_time()))
    if path:
        found.image.save(path)
    (a, x), (b, y), (c, z) = clocks
    result = {
        "vertices": found.vertices,
        "edges": found.edges,
        "seconds": [round(b - a, 1), round(c - b, 1)],
        "cpu_seconds": [round(y - x, 1), round(z - y, 1)],
        "peak_bytes": peak_bytes(),
        "needed_bytes": needed_bytes(graph, size),
        "purity": laid.measures.purity,
        "edge": laid.measures.edge,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), *sys.argv[4:])
