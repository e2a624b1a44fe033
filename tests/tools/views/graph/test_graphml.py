from pathlib import Path

import networkx
import pytest
from some_models import convolutions

from abele.backends.graph import Graph, graph_of
from abele.ir.errors import InputError
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE
from abele.tools.views.graph import graphml
from abele.tools.views.graph.graphml import as_networkx, write_graphml


@pytest.fixture(scope="module")
def graph() -> Graph:
    exe = compile_model(convolutions(), target="tiny:4")
    return graph_of(exe.module_at(MACHINE), exe.target)


def test_every_vertex_and_edge_is_there(graph: Graph):
    made = as_networkx(graph)
    assert made.number_of_nodes() == graph.vertex_count
    assert made.number_of_edges() == graph.edge_count
    columns = graph.vertices()
    for number, values in made.nodes(data=True):
        assert values["tile"] == columns["tile"][number]
        assert values["codelet"] == graph.sets[columns["set"][number]].codelet
    for block in graph.edges():
        operand = graph.links[block.link].operand
        for producer, consumer, size in zip(block.producer, block.consumer, block.bytes):
            assert made.edges[int(producer), int(consumer), operand]["bytes"] == size


def test_it_can_be_read_again(graph: Graph, tmp_path: Path):
    write_graphml(graph, tmp_path / "small.graphml")
    read = networkx.read_graphml(tmp_path / "small.graphml", node_type=int, force_multigraph=True)
    made = as_networkx(graph)
    assert dict(read.nodes(data=True)) == dict(made.nodes(data=True))
    assert sorted(read.edges(data="bytes")) == sorted(made.edges(data="bytes"))


def test_large_graphs_are_refused(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(graphml, "MOST", 3)
    with pytest.raises(InputError, match="GraphML and NetworkX are for 3 of both together"):
        write_graphml(graph, tmp_path / "large.graphml")
    assert not list(tmp_path.iterdir())
