import numpy as np
import pytest
from some_models import convolutions

from abele.backends.graph import Graph, graph_of
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE
from abele.tools.views.graph import tables
from abele.tools.views.graph.tables import EDGES, VERTICES, edge_pieces, vertex_pieces


@pytest.fixture(scope="module")
def graph() -> Graph:
    exe = compile_model(convolutions(), target="tiny:8")
    return graph_of(exe.module_at(MACHINE), exe.target)


@pytest.mark.parametrize("rows", [1, 7, 50, 10**6])
def test_pieces_join_to_the_whole(graph: Graph, rows: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "ROWS", rows)
    vertices = [piece for piece, _ in vertex_pieces(graph)]
    edges = [piece for piece, _ in edge_pieces(graph, loops=False)]
    for pieces, columns in ((vertices, VERTICES), (edges, EDGES)):
        assert all(set(piece) == {c.name for c in columns} for piece in pieces)
        assert all(0 < len(next(iter(piece.values()))) <= rows for piece in pieces)
    ids = np.concatenate([piece["id"] for piece in vertices])
    assert ids.tolist() == list(range(graph.vertex_count))
    (whole,) = (piece for piece, _ in _all_edges(graph, monkeypatch))
    for name in ("producer", "consumer", "bytes"):
        joined = np.concatenate([piece[name] for piece in edges])
        assert joined.tolist() == whole[name].tolist()


def _all_edges(graph: Graph, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "ROWS", 10**6)
    return edge_pieces(graph, loops=False)


def test_names_of_vertices_are_those_of_their_sets(graph: Graph):
    for piece, names in vertex_pieces(graph):
        for k, number in enumerate(piece["set"].tolist()):
            of = graph.sets[number]
            assert names["codelet"][piece["codelet"][k]] == of.codelet
            assert names["origin"][piece["origin"][k]] == (of.origin or "")
