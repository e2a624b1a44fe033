"""Where operations are drawn: rows follow the data, and nothing overlaps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from abele.tools.views.report.graph_layout import (
    BEND_WIDTH,
    MOST_BENDS,
    MOST_NESTED,
    folder_path,
    graph_of,
)

PATHS = ("a", "b", "a.x", "a.x.0", "a.x.1", "b/y", "c")
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
    links = {
        "source": pairs[:, 0],
        "destination": pairs[:, 1],
        "bytes": np.full(len(pairs), 4),
        "variable": np.arange(len(pairs)),
    }
    variables = {"shape": [f"{k + 1}x2" for k in range(len(pairs))], "dtype": ["f32"] * len(pairs)}
    parts = {
        "operation": numbers,
        "superstep": numbers,
        "charged_compute": np.ones(count, np.int64),
        "charged_exchange": np.zeros(count),
    }
    return graph_of(operations, links, parts, variables)


def inside(found):
    """The operations of each item that is in no folder."""
    count = len(found["rows"]) - len(found["folders"])
    return [found["folders"][n - count]["operations"] if n >= count else [n] for n in found["top"]]


def rows(found):
    return [found["rows"][n] for n in found["top"]]


def test_operations_of_a_layer_are_a_folder_and_their_rows_follow_the_data():
    found = graph("aabb", [(0, 1), (1, 2), (2, 3)])
    assert inside(found) == [[0, 1], [2, 3]]
    assert found["rows"] == [0, 1, 0, 1, 0, 1]


def test_modules_are_folders_in_folders():
    layers = ["patch", "b.0", "b.0.attn.qkv", "b.0.attn", "b.0.mlp.0", "b.1", "b.1.attn", "head"]
    found = graph(layers, [(k, k + 1) for k in range(len(layers) - 1)])
    assert inside(found) == [[0], [1, 2, 3, 4], [5, 6], [7]]
    assert rows(found) == [0, 1, 2, 3]
    names = [each["name"] for each in found["folders"]]
    # A folder with one item is that item.
    assert names == ["b.0", "b.0.attn", "b.1"]
    first, attention, second = found["folders"]
    assert first["items"] == [1, 9, 4]
    assert attention["items"] == [2, 3]
    assert second["items"] == [5, 6]
    assert [found["rows"][n] for n in first["items"]] == [0, 1, 2]


def test_the_first_number_of_a_path_is_no_folder_of_its_own():
    assert folder_path("blocks.0.mlp.2") == ["blocks.0", "blocks.0.mlp", "blocks.0.mlp.2"]
    assert folder_path("net.h.3.attn") == ["net", "net.h.3", "net.h.3.attn"]
    assert folder_path("stage1/unit2/conv") == ["stage1", "stage1/unit2", "stage1/unit2/conv"]
    assert folder_path("stage1_unit2") == ["stage1_unit2"]
    assert folder_path("0") == ["0"]
    assert folder_path("") == folder_path("/.") == []
    assert len(folder_path("/".join("a" * 50_000))) == MOST_NESTED


def test_what_goes_backward_rises_beside_what_goes_forward():
    phases = ["forward"] * 3 + ["backward"] * 3 + ["update"]
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6)]
    found = graph("abccbab", edges, phases)
    assert rows(found) == [0, 1, 2, 2, 1, 0, 0]
    places = {
        phase: [found["places"][n] for n in found["top"] if phases[n] == phase] for phase in PHASES
    }
    assert max(places["forward"]) < min(places["backward"]) < min(places["update"])


def test_an_edge_to_what_runs_earlier_makes_no_row():
    found = graph("abc", [(0, 1), (1, 2), (2, 0)])
    assert rows(found) == [0, 1, 2]
    assert [2, 0, 4, "3x2 f32"] in found["edges"]


def test_an_edge_over_a_row_passes_beside_its_nodes():
    found = graph("abc", [(0, 1), (1, 2), (0, 2)])
    ((source, destination, place),) = found["bends"]
    assert (source, destination) == (0, 2)
    room = (1 + BEND_WIDTH) / 2
    assert abs(place - found["places"][1]) >= room - 1e-9


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
    assert [0, MOST_BENDS + 2, 4] in [each[:3] for each in straight["edges"]]
    assert straight["bends"] == []
    assert straight["places"] == chain(count)["places"]


def test_what_is_drawn_grows_with_the_edges():
    few, many = (chain(n, *range(2, n)) for n in (500, 1000))
    places = [sum(len(at) for _, _, *at in found["bends"]) for found in (few, many)]
    assert places[0] == places[1] == MOST_BENDS * (MOST_BENDS + 1) // 2


def test_the_bytes_of_several_values_are_added_and_the_largest_gives_the_shape():
    assert graph("ab", [(0, 1), (0, 1)])["edges"] == [[0, 1, 8, "2x2 f32"]]


def test_an_operation_that_does_nothing_and_has_no_edge_is_left_out():
    found = graph("abc", [(0, 1)], cycles=[1, 0, 0])
    assert inside(found) == [[0], [1]]


@given(some.data())
def test_items_of_a_row_are_a_node_apart(data):
    count = data.draw(some.integers(1, 12))
    number = some.integers(0, count - 1)
    layers = data.draw(some.lists(some.sampled_from(PATHS), min_size=count, max_size=count))
    phases = data.draw(some.lists(some.sampled_from(PHASES), min_size=count, max_size=count))
    edges = data.draw(some.lists(some.tuples(number, number).filter(lambda e: e[0] != e[1])))
    found = graph(layers, edges, phases)
    assert sorted(n for each in inside(found) for n in each) == list(range(count))
    for items in (found["top"], *(each["items"] for each in found["folders"])):
        for k, a in enumerate(items):
            for b in items[:k]:
                apart = abs(found["places"][a] - found["places"][b])
                assert found["rows"][a] != found["rows"][b] or apart > 1 - 1e-9
