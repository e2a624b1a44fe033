"""The table that `abele graph` prints: one row per compute set."""

from __future__ import annotations

from rich.table import Table

from ....backends.graph import Graph


def graph_summary(graph: Graph) -> Table:
    """Vertices and edges of every compute set and of all. An edge counts where it ends.

    "loop edges" are those from one iteration of a loop to the next, which "edges" leaves out.
    """
    table = Table(
        caption="loop edges: from one iteration of a loop to the next; not counted in edges",
        caption_justify="left",
    )
    table.add_column("compute set")
    table.add_column("layer")
    table.add_column("codelets")
    for name in ("vertices", "edges", "loop edges"):
        table.add_column(name, justify="right")
    for number, name in enumerate(graph.compute_sets):
        sets = [each for each in graph.sets if each.compute_set == number]
        mine = {each.index for each in sets}
        links = [link for link in graph.links if link.consumer in mine]
        table.add_row(
            name,
            sets[0].layer,
            "; ".join(dict.fromkeys(each.codelet for each in sets)),
            f"{sum(each.count for each in sets):,}",
            f"{sum(link.count for link in links if not link.loop):,}",
            f"{sum(link.count for link in links if link.loop):,}",
        )
    table.add_section()
    whole = (graph.vertex_count, graph.edge_count, graph.loop_edge_count)
    table.add_row(f"all {len(graph.compute_sets)}", "", "", *(f"{n:,}" for n in whole))
    return table
