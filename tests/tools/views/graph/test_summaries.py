import numpy as np
import pytest
from some_models import convolutions

from abele.backends.graph import Graph, Link, VertexSet, graph_of
from abele.backends.prices.price import price
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE, Executable
from abele.tools.views.graph.summaries import (
    compute_set_table,
    link_table,
    set_table,
    traffic_table,
)


@pytest.fixture(scope="module")
def program() -> Executable:
    return compile_model(convolutions(), target="tiny:8")


@pytest.fixture(scope="module")
def graph(program: Executable) -> Graph:
    return graph_of(program.module_at(MACHINE), program.target)


def test_compute_sets_have_the_prices_of_their_supersteps(graph: Graph, program: Executable):
    prices = price(program.module_at(MACHINE), program.target)
    table = compute_set_table(graph, prices)
    known = {each.name: each for each in prices}
    for k, name in enumerate(table["name"]):
        assert table["compute_cycles"][k] == known[name].compute_cycles
        assert table["exchange_bytes"][k] == known[name].exchange_bytes
        assert table["busiest_tile"][k] == known[name].busiest_tile
        assert table["vertices"][k] == sum(s.count for s in graph.sets if s.compute_set == k)


def by_hand(*links: Link) -> Graph:
    sets = tuple(
        VertexSet(k, step, f"set{step}", None, "", "relu", 4 * k, 4)
        for k, step in enumerate((0, 0, 1))
    )
    return Graph(sets, links, "tiny", 4, 1, (), (), ())


def test_traffic_adds_up_the_links_of_two_compute_sets():
    made = by_hand(
        Link(0, 2, 0, 5, False, 20),
        Link(1, 2, 1, 7, False, 28),
        Link(2, 0, 0, 3, True, 12),
        Link(2, 0, 1, 4, False, 16),
    )
    table = {name: np.asarray(column).tolist() for name, column in traffic_table(made).items()}
    rows = sorted(zip(*table.values(), strict=True))
    assert list(table) == ["producer", "consumer", "loop", "edges", "bytes"]
    assert rows == [(0, 1, False, 12, 48), (1, 0, False, 4, 16), (1, 0, True, 3, 12)]


def test_a_graph_without_edges_has_no_traffic():
    assert all(len(column) == 0 for column in traffic_table(by_hand()).values())
    assert all(len(column) == 0 for column in link_table(by_hand(), loops=True).values())


def test_links_say_where_their_edges_are():
    links = (
        Link(0, 2, 0, 5, False, 20),
        Link(2, 0, 0, 3, True, 12),
        Link(1, 2, 1, 7, False, 28),
    )
    assert link_table(by_hand(*links), loops=False)["first"].tolist() == [0, -1, 5]
    assert link_table(by_hand(*links), loops=True)["first"].tolist() == [0, 5, 8]


def test_sets_are_listed_by_number(graph: Graph):
    table = set_table(graph)
    assert table["set"] == list(range(len(graph.sets)))
    assert sum(table["count"]) == graph.vertex_count
