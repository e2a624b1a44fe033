"""Where operations are drawn: rows follow the data, and nothing overlaps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from abele.tools.views.report.graph_layout import BEND_WIDTH, MOST_BENDS, graph_of

PHASES = ("forward", "backward", "update")


def graph(layers, edges, phases=None, cycles=None):
    """A graph of operations that run in the order of their numbers."""
    count = len(layers)
    numbers = np.arange(count)
    operations = {
        "layer": list(layers),
        "phase": list(phases or [""] * count),
        "compute_cycles": np.array(cycles or [1] * count),
        "exchange_cycles": np.zeros(count, np.int64),
        "name": list(map(str, numbers)),
    }
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    links = {"source": pairs[:, 0], "destination": pairs[:, 1], "bytes": np.full(len(pairs), 4)}
    parts = {
        "operation": numbers,
        "superstep": numbers,
        "charged_compute": np.ones(count, np.int64),
        "charged_exchange": np.zeros(count),
    }
    return graph_of(operations, links, parts)


def test_operations_of_a_layer_are_a_group_and_their_rows_follow_the_data():
    found = graph("aabb", [(0, 1), (1, 2), (2, 3)])
    assert [each["operations"] for each in found["groups"]] == [[0, 1], [2, 3]]
    assert [each["row"] for each in found["groups"]] == [0, 1]
    assert found["rows"] == [0, 1, 0, 1]


def test_what_goes_backward_rises_beside_what_goes_forward():
    phases = ["forward"] * 3 + ["backward"] * 3 + ["update"]
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6)]
    groups = graph("abccbab", edges, phases)["groups"]
    assert [each["row"] for each in groups] == [0, 1, 2, 2, 1, 0, 0]
    places = {phase: [g["place"] for g in groups if g["phase"] == phase] for phase in PHASES}
    assert max(places["forward"]) < min(places["backward"]) < min(places["update"])


def test_an_edge_to_what_runs_earlier_makes_no_row():
    found = graph("abc", [(0, 1), (1, 2), (2, 0)])
    assert [each["row"] for each in found["groups"]] == [0, 1, 2]
    assert [2, 0, 4] in found["edges"]


def test_an_edge_over_a_row_passes_beside_its_nodes():
    found = graph("abc", [(0, 1), (1, 2), (0, 2)])
    ((source, destination, place),) = found["bends"]
    assert (source, destination) == (0, 2)
    room = (1 + BEND_WIDTH) / 2
    assert abs(place - found["groups"][1]["place"]) >= room - 1e-9


def chain(layers: int, *readers: int):
    """Layers that follow each other; some read what the first one makes, too."""
    edges = [(k, k + 1) for k in range(layers - 1)] + [(0, k) for k in readers]
    return graph([f"layer{k}" for k in range(layers)], edges)


def test_an_edge_over_very_many_rows_goes_straight_and_takes_no_room():
    count = MOST_BENDS + 3
    bent = chain(count, MOST_BENDS + 1)
    ((source, destination, *places),) = bent["bends"]
    assert (source, destination, len(places)) == (0, MOST_BENDS + 1, MOST_BENDS)
    straight = chain(count, MOST_BENDS + 2)
    assert [0, MOST_BENDS + 2, 4] in straight["edges"]
    assert straight["bends"] == []
    assert straight["groups"] == chain(count)["groups"]


def test_what_is_drawn_grows_with_the_edges():
    few, many = (chain(n, *range(2, n)) for n in (500, 1000))
    places = [sum(len(at) for _, _, *at in found["bends"]) for found in (few, many)]
    assert places[0] == places[1] == MOST_BENDS * (MOST_BENDS + 1) // 2


def test_the_bytes_of_several_values_are_added():
    assert graph("ab", [(0, 1), (0, 1)])["edges"] == [[0, 1, 8]]


def test_an_operation_that_does_nothing_and_has_no_edge_is_left_out():
    found = graph("abc", [(0, 1)], cycles=[1, 0, 0])
    assert [each["operations"] for each in found["groups"]] == [[0], [1]]


@given(some.data())
def test_groups_of_a_row_are_a_node_apart(data):
    count = data.draw(some.integers(1, 12))
    number = some.integers(0, count - 1)
    layers = data.draw(some.lists(some.sampled_from("abcdef"), min_size=count, max_size=count))
    phases = data.draw(some.lists(some.sampled_from(PHASES), min_size=count, max_size=count))
    edges = data.draw(some.lists(some.tuples(number, number).filter(lambda e: e[0] != e[1])))
    groups = graph(layers, edges, phases)["groups"]
    assert sorted(n for each in groups for n in each["operations"]) == list(range(count))
    for k, a in enumerate(groups):
        for b in groups[:k]:
            assert a["row"] != b["row"] or abs(a["place"] - b["place"]) > 1 - 1e-9
