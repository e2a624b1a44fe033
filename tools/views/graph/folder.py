"""The folder of a graph's tables: whole, or as it was before."""

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
"""What there is in the folder."""


WORKING_BYTES = 1 << 28
"""Memory that writing takes, whatever the size of the graph: pieces of both tables."""


def write_graph(graph: Graph, exe: Executable, folder: Path, *, loops: bool = False) -> None:
    """Write the tables of a compiled program's graph, and queries.

    loops: also the edges that are carried round a loop only, which links.parquet marks.
    The folder is replaced as a whole, or stays as it was. Raises InputError where it cannot be
    written, holds files that are no graph's, there is too little memory, or pyarrow is missing.
    """
    needs_pyarrow()
    check_graph_folder(folder)
    check_memory(WORKING_BYTES, "the tables of a graph")
    prices = price(exe.module_at(MACHINE), exe.target)
    try:
        with _whole_folder(folder) as beside, ThreadPoolExecutor(2) as pool:
            # The two long tables at the same time: packing columns keeps no lock.
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
    """Raise InputError unless a graph can be written there; nothing is made.

    A folder that is there must be empty, or hold a graph's files and no others.
    """
    check_folder(folder)
    if not folder.exists():
        return
    others = sorted(set(os.listdir(folder)) - set(FILES))
    if others:
        raise InputError(
            f"{folder}: holds {others[0]}, which is no file of a graph; need a new folder"
        )


@contextmanager
def _whole_folder(folder: Path) -> Generator[Path]:
    """A folder beside, which takes the place of this one when the block ends well."""
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
    """What the system said; pyarrow's errors carry more than that."""
    return os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
