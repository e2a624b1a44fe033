"""Write the folder of a graph's tables, completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile, rmtree
from uuid import uuid4

from ....backends.graph import Graph
from ....backends.graph.memory import check_memory
from ....backends.price import price
from ....ir.errors import InputError
from ....ir.whole_file import check_folder
from ...driver.executable import MACHINE, Executable
from .parquet import needs_pyarrow, write_parquet, write_pieces
from .summaries import about_table, compute_set_table, link_table, set_table, traffic_table
from .tables import EDGES, VERTICES, edge_pieces, vertex_pieces

QUERIES = "graph.sql"

FILES = (
    "vertices.parquet",
    "edges.parquet",
    "sets.parquet",
    "links.parquet",
    "compute_sets.parquet",
    "traffic.parquet",
    "about.parquet",
    QUERIES,
)
"""The files of the folder."""


WORKING_BYTES = 1 << 28
"""Memory for the pieces of both long tables, whatever the size of the graph."""


def write_graph(graph: Graph, exe: Executable, folder: Path, *, loops: bool = False) -> None:
    """Write the tables of a compiled program's graph, and queries on them.

    loops: include edges that exist only between turns of a loop; links.parquet marks them. The
    folder is replaced as a whole, or stays as it was. Raises InputError if it cannot be written,
    contains other files, or if memory or pyarrow is missing.
    """
    needs_pyarrow()
    check_graph_folder(folder)
    check_memory(WORKING_BYTES, "the tables of a graph")
    prices = price(exe.module_at(MACHINE), exe.target)
    try:
        with _whole_folder(folder) as beside, ThreadPoolExecutor(2) as pool:
            # The two long tables are written at the same time: packing columns holds no lock.
            written = [
                pool.submit(
                    write_pieces, beside / "vertices.parquet", VERTICES, vertex_pieces(graph)
                ),
                pool.submit(
                    write_pieces, beside / "edges.parquet", EDGES, edge_pieces(graph, loops)
                ),
            ]
            write_parquet(beside / "sets.parquet", set_table(graph))
            write_parquet(beside / "links.parquet", link_table(graph, loops))
            write_parquet(beside / "compute_sets.parquet", compute_set_table(graph, prices))
            write_parquet(beside / "traffic.parquet", traffic_table(graph))
            write_parquet(beside / "about.parquet", about_table(graph))
            copyfile(Path(__file__).with_name(QUERIES), beside / QUERIES)
            for each in written:
                each.result()
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {_reason(error)}") from None


def check_graph_folder(folder: Path) -> None:
    """Raise InputError unless a graph can be written to a folder. Writes nothing.

    An existing folder must be empty, or contain only files of a graph.
    """
    check_folder(folder)
    if not folder.exists():
        return
    others = sorted(set(os.listdir(folder)) - set(FILES))
    if others:
        raise InputError(
            f"{folder}: contains {others[0]}, which is not a file of a graph; need a new folder"
        )


@contextmanager
def _whole_folder(folder: Path) -> Generator[Path]:
    """A folder beside another one, which it replaces if the block succeeds."""
    place = Path(os.path.realpath(folder))
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{uuid4().hex}.{place.name}")
    old = beside.with_suffix(f"{beside.suffix}.old")
    beside.mkdir()
    try:
        yield beside
        if place.exists():
            os.replace(place, old)
        try:
            os.replace(beside, place)
        except OSError:
            if old.exists():
                os.replace(old, place)
            raise
    finally:
        rmtree(beside, ignore_errors=True)
        rmtree(old, ignore_errors=True)


def _reason(error: OSError) -> str:
    """The system's own message; pyarrow adds more to it."""
    return os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
