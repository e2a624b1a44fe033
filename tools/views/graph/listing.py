"""The table that `abele graph` prints: a row for each compute set, phase of training, and chip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.table import Table

from ....backends.graph import Graph, Link, VertexSet
from ..chip_groups import chip_groups


def graph_summary(graph: Graph) -> Table:
    """A table of the vertices, the incoming edges and the connections of each compute set, and
    totals.

    If the model holds lines of its source, so does the table. A step of training also has the phase
    of each compute set, and a row for each phase. A machine of several chips has a row for each
    chip, and one for the edges between chips.
    "loop edges" are edges from one iteration of a loop to the next; "edges" leaves them out.
    """
    table = Table(
        caption="loop edges: from one iteration of a loop to the next; not counted in edges",
        caption_justify="left",
    )
    table.add_column("compute set")
    table.add_column("layer")
    has_lines = any(each.line for each in graph.sets)
    if has_lines:
        table.add_column("line")
    table.add_column("codelets")
    phases = graph.phases
    if phases:
        table.add_column("phase")
    for name in ("vertices", "edges", "connections", "loop edges"):
        table.add_column(name, justify="right")

    into: dict[int, list[Link]] = {}
    for link in graph.links:
        into.setdefault(link.consumer, []).append(link)

    def row(
        name: str, sets: Sequence[VertexSet], layer: str = "", line: str = "", codelets: str = ""
    ) -> None:
        links = [link for each in sets for link in into.get(each.index, ())]
        in_phases = "; ".join(phase for phase in phases if phase in {s.phase for s in sets})
        table.add_row(
            name,
            layer,
            *([line] if has_lines else []),
            codelets,
            *([in_phases] if phases else []),
            f"{sum(each.count for each in sets):,}",
            f"{sum(link.count for link in links if not link.loop):,}",
            f"{sum(each.connections for each in sets):,}",
            f"{sum(link.count for link in links if link.loop):,}",
        )

    members: dict[int, list[VertexSet]] = {}
    for each in graph.sets:
        members.setdefault(each.compute_set, []).append(each)
    for number, name in enumerate(graph.compute_sets):
        sets = members[number]
        codelets = "; ".join(dict.fromkeys(each.codelet for each in sets))
        row(name, sets, sets[0].layer, sets[0].line, codelets)
    table.add_section()
    for phase in phases:
        row(f"all {phase}", [each for each in graph.sets if each.phase == phase])
    if graph.chips > 1:
        blank = [""] * (len(table.columns) - 5)
        for name, *figures in chip_rows(graph):
            table.add_row(name, *blank, *("" if n is None else f"{n:,}" for n in figures), "")
        table.add_section()
    row(f"all {len(graph.compute_sets)}", graph.sets)
    return table


def chip_rows(graph: Graph) -> Iterator[tuple[str, int | None, int | None, int | None]]:
    """For each chip, or group of chips, its name, vertices, edges that end there and connections;
    and a row for the edges between chips."""
    found = graph.by_chip
    into = np.bincount(found.destination, found.edges, found.chips).astype(np.int64)
    for name, group in chip_groups(graph.chips):
        figures = (found.vertices, into, found.connections)
        vertices, edges, connections = (int(each[group].sum()) for each in figures)
        yield f"on {name}", vertices, edges, connections
    yield "between chips", None, found.between, None
