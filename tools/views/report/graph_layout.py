"""The layout of a report's graph: rows of layers, and rows of operations within each layer.

Source: Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system
structures", 1981: rows by the longest path, few crossings by the mean place of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ....ir.phases import FORWARD
from .columns import Table

SWEEPS = 6
"""The number of times that all nodes move to the mean place of their neighbours, down and up."""

MOST_BENDS = 100
"""The most rows in which an edge keeps a place of its own beside the nodes. A longer edge is
straight and takes no room. Otherwise, a value that every layer reads would take room in every row,
once for each reader. Assumed: a window shows fewer rows, however small they are.
"""

BEND_WIDTH = 0.3
"""The width of an edge that passes through a row, in widths of a node. Assumed."""


def graph_of(operations: Table, links: Table, parts: Table) -> dict[str, Any]:
    """The graph of a report as the page draws it.

    groups: the layers of each phase, with row, place in the row, phase, and the operations inside.
    rows, places: of each operation within its group. edges: source, destination, bytes. bends: of
    each pair of groups, the places of its edge in the rows between, unless it goes straight;
    inner_bends: of pairs of operations of a group. Places are in widths of a node. An operation
    without work and without edges is left out, such as the wait of the program for the host.
    """
    edges = _edges(links)
    joined = {node for source, destination, _ in edges for node in (source, destination)}
    work = np.asarray(operations["compute_cycles"]) + np.asarray(operations["exchange_cycles"])
    drawn = [k for k, cycles in enumerate(work) if cycles or k in joined]
    members = _groups(operations, drawn)
    group = {node: k for k, nodes in enumerate(members) for node in nodes}
    own: list[set[tuple[int, int]]] = [set() for _ in members]
    between: set[tuple[int, int]] = set()
    for source, destination, _ in edges:
        a, b = group[source], group[destination]
        if a == b:
            own[a].add((source, destination))
        else:
            between.add((a, b))
    phases = [str(operations["phase"][each[0]]) for each in members]
    when = _dearest_supersteps(parts, len(operations["name"]))
    rows, places, bends = _layout_of_phases(
        phases, between, [min(when[n] for n in nodes) for nodes in members]
    )
    count = len(operations["name"])
    inner_rows, inner_places = [0] * count, [0.0] * count
    inner_bends: dict[tuple[int, int], list[float]] = {}
    for nodes, inside in zip(members, own, strict=True):
        ranks = _ranks(nodes, inside, when)
        found, bent = _places(ranks, inside)
        inner_bends |= bent
        for node in nodes:
            inner_rows[node], inner_places[node] = ranks[node], found[node]
    return {
        "groups": [
            {
                "layer": operations["layer"][nodes[0]],
                "phase": phases[k],
                "row": rows[k],
                "place": places[k],
                "operations": nodes,
            }
            for k, nodes in enumerate(members)
        ],
        "rows": inner_rows,
        "places": inner_places,
        "edges": edges,
        "bends": [[a, b, *found] for (a, b), found in bends.items() if found],
        "inner_bends": [[a, b, *found] for (a, b), found in inner_bends.items() if found],
    }


def _dearest_supersteps(parts: Table, count: int) -> list[int]:
    """The superstep in which each operation costs the most cycles; 0 for an operation without
    parts.
    """
    operation, step, compute, exchange = (
        np.asarray(parts[name])
        for name in ("operation", "superstep", "charged_compute", "charged_exchange")
    )
    order = np.lexsort((-step, compute + exchange))
    order = order[operation[order] >= 0]
    found = np.zeros(count, np.int64)
    # Of several assignments to an index, the last one stays.
    found[operation[order]] = step[order]
    return [int(each) for each in found]


def _groups(operations: Table, drawn: Iterable[int]) -> list[list[int]]:
    """The operations of each group. A group is a layer in a phase."""
    members: dict[tuple[str, str], list[int]] = {}
    for each in drawn:
        key = str(operations["phase"][each]), str(operations["layer"][each])
        members.setdefault(key, []).append(each)
    return list(members.values())


def _edges(links: Table) -> list[list[int]]:
    """Edges: the source, the destination, and the bytes of all values between them."""
    pairs = np.stack([np.asarray(links["source"]), np.asarray(links["destination"])], axis=1)
    if not len(pairs):
        return []
    found, place = np.unique(pairs, axis=0, return_inverse=True)
    size = np.zeros(len(found), np.int64)
    np.add.at(size, place.ravel(), np.asarray(links["bytes"]))
    return [[int(a), int(b), int(n)] for (a, b), n in zip(found, size, strict=True)]


def _layout_of_phases(
    phases: list[str], edges: set[tuple[int, int]], times: Sequence[int]
) -> tuple[list[int], list[float], dict[tuple[int, int], list[float]]]:
    """Row and place of each group, and the bends of edges within a phase.

    Rows of the forward phase go down. Backward and update go up beside it, as gradients flow.
    """
    nodes = range(len(phases))
    down = [n for n in nodes if phases[n] in ("", FORWARD)]
    up = [n for n in nodes if phases[n] not in ("", FORWARD)]
    ranks = _ranks(down, edges, times)
    ranks |= {n: -rank for n, rank in _ranks(up, edges, times).items()}
    if down and up:
        bottom = max(ranks[n] for n in down)
        ranks |= {n: ranks[n] + bottom for n in up}
    top = min(ranks.values(), default=0)
    rows = [ranks[n] - top for n in nodes]
    places = [0.0] * len(phases)
    bends: dict[tuple[int, int], list[float]] = {}
    left = 0.0
    for phase in dict.fromkeys(phases):
        inside = {n: rows[n] for n in nodes if phases[n] == phase}
        own = {(a, b) for a, b in edges if a in inside and b in inside}
        found, bent = _places(inside, own)
        shift = left - min(found.values(), default=0.0)
        for n in inside:
            places[n] = found[n] + shift
        bends |= {key: [place + shift for place in each] for key, each in bent.items()}
        reached = [place for each in (found.values(), *bent.values()) for place in each]
        left = max(reached, default=0.0) + shift + 1.4
    return rows, places, bends


def _ranks(
    nodes: Iterable[int], edges: Iterable[tuple[int, int]], times: Sequence[int]
) -> dict[int, int]:
    """The row of each node: the length of the longest path to it.

    Edges to nodes that run earlier are carried by a loop and do not count, so there is no cycle.
    """
    found = dict.fromkeys(nodes, 0)
    before: dict[int, list[int]] = {node: [] for node in found}
    for a, b in edges:
        if a in found and b in found and (times[a], a) < (times[b], b):
            before[b].append(a)
    # The source of each edge runs earlier, so its row is known.
    for node in sorted(found, key=lambda n: (times[n], n)):
        found[node] = max((found[each] + 1 for each in before[node]), default=0)
    return found


def _places(
    rows: Mapping[int, int], edges: Iterable[tuple[int, int]]
) -> tuple[dict[int, float], dict[tuple[int, int], list[float]]]:
    """The place of each node in its row, and of each edge in the rows that it passes."""
    joined: dict[Any, list[Any]] = {node: [] for node in rows}
    by_row: dict[int, list[Any]] = {}
    for node, row in rows.items():
        by_row.setdefault(row, []).append(node)
    passing: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for a, b in sorted(edges):
        step = 1 if rows[b] > rows[a] else -1
        between = range(rows[a] + step, rows[b], step)
        if rows[a] == rows[b] or len(between) > MOST_BENDS:
            continue
        bent = passing[a, b] = [(a, b, row) for row in between]
        for each in bent:
            by_row.setdefault(each[2], []).append(each)
        for one, next_one in pairwise([a, *bent, b]):
            joined.setdefault(one, []).append(next_one)
            joined.setdefault(next_one, []).append(one)
    at: dict[Any, float] = {}
    for row in by_row.values():
        _set_apart(row, dict(zip(row, map(float, range(len(row))), strict=True)), at)
    order = sorted(by_row)
    for _ in range(SWEEPS):
        for rows_of_sweep in (order, order[::-1]):
            for row in rows_of_sweep:
                nodes = by_row[row]
                _set_apart(nodes, {n: _mean_place(n, joined[n], at) for n in nodes}, at)
    middle = (min(at.values(), default=0.0) + max(at.values(), default=0.0)) / 2
    return (
        {node: at[node] - middle for node in rows},
        {key: [at[each] - middle for each in bent] for key, bent in passing.items()},
    )


def _mean_place(node: Any, joined: Sequence[Any], at: Mapping[Any, float]) -> float:
    """The mean place of a node's neighbours; its own place if it has none."""
    return sum(at[each] for each in joined) / len(joined) if joined else at[node]


def _set_apart(nodes: list[Any], wanted: Mapping[Any, float], at: dict[Any, float]) -> None:
    """Place the nodes of a row in the order of their wanted places, as close to these as they
    fit."""
    nodes.sort(key=lambda n: wanted[n])
    width = [BEND_WIDTH if isinstance(n, tuple) else 1.0 for n in nodes]
    gaps = [0.0, *((a + b) / 2 for a, b in pairwise(width))]
    offset = np.cumsum(gaps)
    free = np.array([wanted[n] for n in nodes]) - offset
    # The mean of two placements, pushed to the right and pushed to the left, keeps order and room.
    right = np.maximum.accumulate(free)
    left = np.minimum.accumulate(free[::-1])[::-1]
    for n, place in zip(nodes, (right + left) / 2 + offset, strict=True):
        at[n] = float(place)
