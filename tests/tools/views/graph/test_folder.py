import os
import resource
from collections.abc import Generator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from some_models import convolutions

from abele.backends.graph import Graph, graph_of
from abele.backends.prices.price import price, totals
from abele.ir.errors import InputError
from abele.ir.support.whole_folder import MANIFEST
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE, Executable
from abele.tools.views.graph.folder import FILES, QUERIES, write_graph


@pytest.fixture(scope="module")
def program() -> Executable:
    return compile_model(convolutions(), target="tiny:8")


@pytest.fixture(scope="module")
def graph(program: Executable) -> Graph:
    return graph_of(program.module_at(MACHINE), program.target)


@pytest.fixture(scope="module")
def folder(graph: Graph, program: Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "new" / "graph"
    write_graph(graph, program, path)
    return path


def columns(path: Path) -> dict[str, list[Any]]:
    return pq.read_table(path).to_pydict()


def test_the_folder_has_exactly_the_documented_files(folder: Path):
    assert sorted(os.listdir(folder)) == sorted([*FILES, MANIFEST])
    assert os.listdir(folder.parent) == [folder.name]


def test_vertices_are_those_of_the_graph(folder: Path, graph: Graph):
    found = columns(folder / "vertices.parquet")
    for name, column in graph.vertices().items():
        assert found[name] == column.tolist()
    for k in (0, graph.vertex_count // 2, graph.vertex_count - 1):
        of = graph.sets[found["set"][k]]
        assert (found["codelet"][k], found["origin"][k]) == (of.codelet, of.origin)


def test_edges_are_those_of_the_graph_in_the_row_groups_that_links_name(folder: Path, graph: Graph):
    found = columns(folder / "edges.parquet")
    links = columns(folder / "links.parquet")
    assert len(found["producer"]) == graph.edge_count
    for link in range(len(graph.links)):
        blocks = list(graph.edges_of(link))
        rows = slice(links["first"][link], links["first"][link] + links["count"][link])
        for name in ("producer", "consumer", "bytes"):
            wanted = np.concatenate([getattr(b, name) for b in blocks]).tolist()
            assert found[name][rows] == wanted


def test_long_columns_are_packed_as_differences(folder: Path):
    group = pq.ParquetFile(folder / "edges.parquet").metadata.row_group(0)
    for k, name in enumerate(("producer", "consumer")):
        column = group.column(k)
        assert (column.path_in_schema, column.compression) == (name, "ZSTD")
        assert "DELTA_BINARY_PACKED" in column.encodings
        assert column.statistics.has_min_max


def test_traffic_and_compute_sets_add_up(folder: Path, graph: Graph):
    traffic = columns(folder / "traffic.parquet")
    sets = columns(folder / "compute_sets.parquet")
    assert sum(traffic["edges"]) == sum(sets["edges"]) == graph.edge_count
    assert sum(traffic["bytes"]) == sum(columns(folder / "edges.parquet")["bytes"])
    assert sum(sets["vertices"]) == graph.vertex_count
    about = columns(folder / "about.parquet")
    assert (about["target"], about["tiles"], about["edges"]) == (
        ["tiny:8"],
        [8],
        [graph.edge_count],
    )


@pytest.fixture
def answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[dict[str, Any]]:
    """What each question of the file is answered, by its first line."""
    monkeypatch.chdir(folder)
    with duckdb.connect() as connection:
        found = {}
        for statement in (folder / QUERIES).read_text().split(";\n")[:-1]:
            # A question is the paragraph that a statement stands in; its comment comes first.
            title = statement.strip().splitlines()[0].removeprefix("-- ")
            result = connection.execute(statement)
            names = [each[0] for each in result.description]
            found[title] = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
        yield found


def test_the_queries_run_and_answer(answers: dict[str, Any], graph: Graph, program: Executable):
    made = graph.vertices()
    busy: dict[tuple[int, int, int], int] = {}
    keys = zip(made["compute_set"].tolist(), made["tile"].tolist(), made["worker"].tolist())
    for key, cycles in zip(keys, made["cycles"].tolist(), strict=True):
        busy[key] = busy.get(key, 0) + cycles
    tiles: dict[tuple[int, int], int] = {}
    for (step, tile, _), cycles in busy.items():
        tiles[step, tile] = max(tiles.get((step, tile), 0), cycles)
    hottest: dict[int, int] = {}
    for (_, tile), cycles in tiles.items():
        hottest[tile] = hottest.get(tile, 0) + cycles
    found = answers["The hottest tiles: those that compute longest, over all compute sets."]
    assert {a["tile"]: a["cycles"] for a in found} == hottest

    path = answers["The critical path."]
    assert len(path) == len(graph.compute_sets)
    assert path[-1]["until_its_end"] == sum(each["cycles"] for each in path)
    costs = totals(price(program.module_at(MACHINE), program.target))
    assert sum(each["times"] * each["compute_cycles"] for each in path) <= costs.compute_cycles

    near = answers["Its neighbours: whom it reads, and who reads it."]
    readers = sorted(a["id"] for a in near if a["how"] == "is read by")
    wanted = np.concatenate([b.consumer[b.producer == 0] for b in graph.edges()])
    assert readers
    assert readers == sorted(wanted.tolist())


def test_a_graph_takes_the_place_of_another(graph: Graph, program: Executable, tmp_path: Path):
    folder = tmp_path / "graph"
    write_graph(graph, program, folder)
    (folder / "about.parquet").unlink()
    write_graph(graph, program, folder)
    assert columns(folder / "about.parquet")["vertices"] == [graph.vertex_count]
    assert os.listdir(tmp_path) == ["graph"]


def test_other_files_in_the_folder_are_never_overwritten(
    graph: Graph, program: Executable, tmp_path: Path
):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds thesis\.tex, which abele did not write"):
        write_graph(graph, program, tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]
    # A folder that is called like a table is not one.
    (tmp_path / "graph" / "edges.parquet").mkdir(parents=True)
    (tmp_path / "graph" / "edges.parquet" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds edges\.parquet, which abele did not write"):
        write_graph(graph, program, tmp_path / "graph")
    assert (tmp_path / "graph" / "edges.parquet" / "thesis.tex").exists()


def test_a_full_disk_leaves_nothing_behind(graph: Graph, program: Executable, tmp_path: Path):
    """A limit on the size of files makes the system refuse to write, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = tmp_path / "old"
    write_graph(graph, program, old)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
    try:
        for folder in (tmp_path / "new", old):
            with pytest.raises(InputError, match=r"cannot be written: File too large"):
                write_graph(graph, program, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == ["old"]
    assert columns(old / "about.parquet")["vertices"] == [graph.vertex_count]


def test_a_folder_that_cannot_be_made_is_named(graph: Graph, program: Executable):
    with pytest.raises(InputError, match="/proc/graph: cannot be written"):
        write_graph(graph, program, Path("/proc/graph"))


def test_too_little_memory_is_reported_before_anything_is_written(
    graph: Graph, program: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("abele.backends.graph.memory.available_bytes", lambda: 1000)
    with pytest.raises(InputError, match=r"the tables of a graph: .* MB of memory are needed"):
        write_graph(graph, program, tmp_path / "graph")
    with pytest.raises(InputError, match="vertices at once"):
        graph.vertices()
    assert os.listdir(tmp_path) == []


RECURRENT = Path(__file__).parents[4] / "examples" / "recurrent.mlir"


@pytest.mark.parametrize("loops", [False, True])
def test_edges_round_loops_are_there_when_they_are_asked_for(loops: bool, tmp_path: Path):
    exe = compile_model(RECURRENT, target="tiny:8")
    graph = graph_of(exe.module_at(MACHINE), exe.target)
    assert graph.loop_edge_count > 0
    write_graph(graph, exe, tmp_path / "graph", loops=loops)
    edges = columns(tmp_path / "graph" / "edges.parquet")
    links = columns(tmp_path / "graph" / "links.parquet")
    assert len(edges["producer"]) == graph.edge_count + loops * graph.loop_edge_count
    assert sum(n for n, loop in zip(links["count"], links["loop"]) if loop) == graph.loop_edge_count
    for k, (first, loop) in enumerate(zip(links["first"], links["loop"])):
        assert (first < 0) == (loop and not loops)
        if first >= 0:
            wanted = np.concatenate([b.consumer for b in graph.edges_of(k)]).tolist()
            assert edges["consumer"][first : first + links["count"][k]] == wanted
    traffic = columns(tmp_path / "graph" / "traffic.parquet")
    assert sum(traffic["edges"]) == graph.edge_count + graph.loop_edge_count
