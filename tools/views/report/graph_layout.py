"""The layout of a report's graph: rows of operations and folders, and rows within each folder.

Folders are modules, as names of operations show them.

Source: Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system
structures", 1981: rows by the longest path, few crossings by the mean place of neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
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


MOST_NESTED = 16
"""The most folders around an operation. Parts of a name beyond that are no folders."""


@dataclass(frozen=True)
class _Folder:
    """Operations that the graph can fold into one node, because their names share a path.

    Attributes:
        name: the path.
        items: the operations and folders inside, by number, in the order of the program.
        operations: all that are inside, also in folders of it.
    """

    name: str
    phase: str
    items: list[int]
    operations: list[int]


@dataclass
class _Branch:
    """A folder while names are sorted into it."""

    name: str
    inside: dict[str, _Branch] = field(default_factory=dict[str, "_Branch"])
    items: list[int | _Branch] = field(default_factory=list["int | _Branch"])


def graph_of(operations: Table, links: Table, parts: Table, variables: Table) -> dict[str, Any]:
    """The graph of a report as the page draws it: operations in folders, which may be nested.

    Operations have the numbers 0 to n-1, and folders have the numbers after them:

        drawn         the operations
        top           the items outside of all folders
        folders       name, phase, items and operations of each folder
        rows, places  of each operation and folder, within the folder around it
        edges         source, destination, bytes, and the shape of the largest value
        bends         for two neighbours in a folder whose edge is not straight: the places of the
                      edge in the rows between them

    Places are in widths of a node. Operations without work and without edges are left out, such as
    the wait of the program for the host.
    """
    edges = _edges(links, variables)
    joined = {node for source, destination, *_ in edges for node in (source, destination)}
    work = np.asarray(operations["compute_cycles"]) + np.asarray(operations["exchange_cycles"])
    drawn = [k for k, cycles in enumerate(work) if cycles or k in joined]
    count = len(operations["name"])
    top, folders = _folders(operations, drawn)
    around: dict[int, int] = {
        item: count + k for k, folder in enumerate(folders) for item in folder.items
    }
    between = _between(edges, around)
    when = _dearest_supersteps(parts, count)
    when += [min(when[each] for each in folder.operations) for folder in folders]
    phases = [*map(str, operations["phase"]), *(folder.phase for folder in folders)]
    rows, places = [0] * len(phases), [0.0] * len(phases)
    found, at, bends = _layout_of_phases(
        {item: phases[item] for item in top}, between.get(TOP, set()), when
    )
    layouts = [(found, at)]
    for k, folder in enumerate(folders):
        inside = between.get(count + k, set())
        ranks = _ranks(folder.items, inside, when)
        at, bent = _places(ranks, inside)
        bends |= bent
        layouts.append((ranks, at))
    for ranks, at in layouts:
        for item, row in ranks.items():
            rows[item], places[item] = row, at[item]
    return {
        "drawn": drawn,
        "top": top,
        "folders": [vars(folder) for folder in folders],
        "rows": rows,
        "places": places,
        "edges": edges,
        "bends": [[a, b, *found] for (a, b), found in bends.items() if found],
    }


TOP = -1
"""Stands for what is around everything that is in no folder."""


def folder_path(layer: str) -> list[str]:
    """The folders around the operations of a layer, the outermost first.

        blocks.0.attn: blocks.0, blocks.0.attn        stage1/unit2: stage1, stage1/unit2

    The part before the first number (blocks) makes no folder. So blocks.0 and blocks.1 stand beside
    what is before and after them.
    """
    found = islice(_SEPARATOR.finditer(layer), MOST_NESTED + 1)
    ends = [*(each.start() for each in found), len(layer)]
    paths = [layer[:end] for end in ends if layer[:end].strip("./")]
    first = next((k for k, path in enumerate(paths) if _NUMBER.search(path)), 0)
    return [path for k, path in enumerate(paths) if k != first - 1][:MOST_NESTED]


_NUMBER = re.compile(r"[./][0-9]+$")

_SEPARATOR = re.compile(r"[./]")


def _folders(operations: Table, drawn: Iterable[int]) -> tuple[list[int], list[_Folder]]:
    """The items outside of all folders, and the folders, each before those inside it.

    A folder has at least two items.
    """
    roots: dict[str, _Branch] = {}
    for each in drawn:
        branch = roots.setdefault(str(operations["phase"][each]), _Branch(""))
        for name in folder_path(str(operations["layer"][each])):
            inner = branch.inside.get(name)
            if inner is None:
                inner = branch.inside[name] = _Branch(name)
                branch.items.append(inner)
            branch = inner
        branch.items.append(each)
    folders: list[_Folder] = []
    count = len(operations["name"])

    def number(item: int | _Branch, phase: str) -> int:
        while isinstance(item, _Branch) and len(item.items) == 1:
            item = item.items[0]
        if not isinstance(item, _Branch):
            return item
        made = _Folder(item.name, phase, [], [])
        folders.append(made)
        own = count + len(folders) - 1
        for each in item.items:
            inner = number(each, phase)
            made.items.append(inner)
            made.operations.extend(folders[inner - count].operations if inner >= count else [inner])
        return own

    top = [number(item, phase) for phase, root in roots.items() for item in root.items]
    return top, folders


def _between(
    edges: Iterable[Sequence[Any]], around: Mapping[int, int]
) -> dict[int, set[tuple[int, int]]]:
    """For each folder, the pairs of its items that an edge joins; for TOP, of what is in none."""
    found: dict[int, set[tuple[int, int]]] = {}
    chains: dict[int, list[int]] = {}

    def chain(item: int) -> list[int]:
        """The folders around an item and the item itself, the outermost first."""
        if item not in chains:
            chains[item] = [*(chain(around[item]) if item in around else ()), item]
        return chains[item]

    for source, destination, *_ in edges:
        outer = TOP
        for a, b in zip(chain(source), chain(destination), strict=False):
            if a != b:
                found.setdefault(outer, set()).add((a, b))
                break
            outer = a
    return found


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


def _edges(links: Table, variables: Table) -> list[list[Any]]:
    """Edges: the source, the destination, the bytes of all values between them, and the shape of
    the largest one."""
    pairs = np.stack([np.asarray(links["source"]), np.asarray(links["destination"])], axis=1)
    if not len(pairs):
        return []
    each = np.asarray(links["bytes"])
    found, place = np.unique(pairs, axis=0, return_inverse=True)
    size = np.zeros(len(found), np.int64)
    np.add.at(size, place.ravel(), each)
    largest = np.zeros(len(found), np.int64)
    # Of several assignments to an index, the last one stays.
    order = np.argsort(each, kind="stable")
    largest[place.ravel()[order]] = np.asarray(links["variable"])[order]
    shapes = [f"{variables['shape'][v]} {variables['dtype'][v]}" for v in largest]
    return [
        [int(a), int(b), int(n), shape]
        for (a, b), n, shape in zip(found, size, shapes, strict=True)
    ]


def _layout_of_phases(
    phases: Mapping[int, str], edges: set[tuple[int, int]], times: Sequence[int]
) -> tuple[dict[int, int], dict[int, float], dict[tuple[int, int], list[float]]]:
    """Row and place of each item, and the bends of edges within a phase.

    Rows of the forward phase go down. Backward and update go up beside it, as gradients flow.
    """
    down = [n for n in phases if phases[n] in ("", FORWARD)]
    up = [n for n in phases if phases[n] not in ("", FORWARD)]
    ranks = _ranks(down, edges, times)
    ranks |= {n: -rank for n, rank in _ranks(up, edges, times).items()}
    if down and up:
        bottom = max(ranks[n] for n in down)
        ranks |= {n: ranks[n] + bottom for n in up}
    top = min(ranks.values(), default=0)
    rows = {n: ranks[n] - top for n in phases}
    places: dict[int, float] = {}
    bends: dict[tuple[int, int], list[float]] = {}
    left = 0.0
    for phase in dict.fromkeys(phases.values()):
        inside = {n: rows[n] for n in phases if phases[n] == phase}
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
