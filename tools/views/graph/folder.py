"""Write the folder of a graph's tables, completely or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile

from ....backends.graph import Graph
from ....backends.graph.memory import check_memory
from ....backends.prices.price import price
from ....ir.support.whole_folder import check_whole_folder, whole_folder
from ...driver.executable import MACHINE, Executable
from .parquet import needs_pyarrow, write_parquet, write_pieces
from .summaries import (
    about_table,
    chip_table,
    compute_set_table,
    crossing_table,
    link_table,
    set_table,
    traffic_table,
)
from .tables import EDGES, VERTICES, edge_pieces, vertex_pieces

KIND = "a graph of abele"

QUERIES = "graph.sql"

FILES = (
    "vertices.parquet",
    "edges.parquet",
    "sets.parquet",
    "links.parquet",
    "compute_sets.parquet",
    "traffic.parquet",
    "chips.parquet",
    "crossings.parquet",
    "about.parquet",
    QUERIES,
)
"""The files of the folder, besides its manifest."""


WORKING_BYTES = 1 << 28
"""Memory for the pieces of both long tables, whatever the size of the graph."""


def write_graph(graph: Graph, exe: Executable, folder: Path, *, loops: bool = False) -> None:
    """Write the tables of a compiled program's graph, and queries on them.

    Raises InputError if it cannot be written, contains other files, or if memory or pyarrow is
    missing.

    The folder is replaced as a whole, or stays as it was.

    Args:
        loops: include edges that exist only between iterations of a loop; links.parquet marks them.
    """
    needs_pyarrow()
    check_graph_folder(folder)
    check_memory(WORKING_BYTES, "the tables of a graph")
    prices = price(exe.module_at(MACHINE), exe.target)
    with whole_folder(folder, KIND) as made, ThreadPoolExecutor(2) as pool:
        # The two long tables are written at the same time: packing columns holds no lock.
        written = [
            pool.submit(write_pieces, made / "vertices.parquet", VERTICES, vertex_pieces(graph)),
            pool.submit(write_pieces, made / "edges.parquet", EDGES, edge_pieces(graph, loops)),
        ]
        write_parquet(made / "sets.parquet", set_table(graph))
        write_parquet(made / "links.parquet", link_table(graph, loops))
        write_parquet(made / "compute_sets.parquet", compute_set_table(graph, prices))
        write_parquet(made / "traffic.parquet", traffic_table(graph))
        write_parquet(made / "chips.parquet", chip_table(graph))
        write_parquet(made / "crossings.parquet", crossing_table(graph))
        write_parquet(made / "about.parquet", about_table(graph))
        copyfile(Path(__file__).with_name(QUERIES), made / QUERIES)
        for each in written:
            each.result()


def check_graph_folder(folder: Path) -> None:
    """Raise InputError unless a graph can be written to a folder. Writes nothing.

    An existing folder must be empty, or contain a graph that nobody has changed.
    """
    check_whole_folder(folder, KIND)
