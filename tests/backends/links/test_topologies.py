"""Which links the bytes of two chips use, against the shortest paths of a graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from abele.backends.links.links import Links, routes_of
from abele.backends.links.topologies import Ladder, Pod, Torus
from abele.ir.geometry.chip_groups import ChipGroups


def _graph(links: Ladder, chips: int) -> nx.Graph:
    """The chips of a ladder or a torus, and what joins them."""
    rows = chips // 2
    graph = nx.Graph([(2 * r, 2 * r + 1) for r in range(rows)])
    closed = isinstance(links, Torus) and rows > 2
    for r in range(rows if closed else rows - 1):
        graph.add_edges_from((2 * r + c, 2 * (r + 1) % chips + c) for c in (0, 1))
    return graph


@pytest.mark.parametrize("chips", [2, 4, 6, 8, 16])
@pytest.mark.parametrize("topology", [Ladder, Torus])
def test_bytes_take_a_shortest_way(topology: type[Ladder], chips: int):
    links = topology(chips=chips)
    routes = routes_of(links)
    used = np.bincount(routes.pair, minlength=chips * chips).reshape(chips, chips)
    ways = dict(nx.all_pairs_shortest_path_length(_graph(links, chips)))
    assert used.tolist() == [[ways[a][b] for b in range(chips)] for a in range(chips)]


@pytest.mark.parametrize(
    "links", [Ladder(chips=8), Torus(chips=12), Pod(chips=16, domain=8, switched=0)]
)
def test_no_way_uses_a_link_twice_and_every_link_that_is_used_exists(links: Ladder):
    routes = routes_of(links)
    assert routes.link.max() < len(routes.bytes_per_second)
    uses = routes.pair * len(routes.bytes_per_second) + routes.link
    assert len(np.unique(uses)) == len(uses)


def test_neighbours_in_a_ring_of_a_ladder_use_links_of_their_own():
    # 0, 2, 4, 6, 7, 5, 3, 1: down one column, and up the other.
    ring = [0, 2, 4, 6, 7, 5, 3, 1]
    routes = routes_of(Ladder(chips=8))
    pairs = np.array([a * 8 + b for a, b in zip(ring, [*ring[1:], 0], strict=True)])
    order = np.argsort(pairs)
    seconds = routes.seconds(pairs[order], np.full(8, 10**9))
    rungs = [abs(a - b) == 1 for a, b in (divmod(int(p), 8) for p in pairs[order])]
    assert seconds.tolist() == pytest.approx([1 / 58.4 if rung else 1 / 29.2 for rung in rungs])


def test_flows_that_share_a_link_share_what_it_carries():
    routes = routes_of(Ladder(chips=6))
    pairs = np.array([0 * 6 + 2, 0 * 6 + 4])
    seconds = routes.seconds(pairs, np.array([29_200_000_000, 29_200_000_000]))
    assert seconds.tolist() == pytest.approx([2.0, 2.0])


def test_pods_reach_each_other_through_the_gateway_of_the_own_machine():
    direct, switched = (Pod(chips=24, domain=8, switched=k) for k in (0, 1))
    for links in (direct, switched):
        routes = routes_of(links)
        slow = routes.bytes_per_second[routes.link] == 12.5e9
        away = np.bincount(routes.pair[slow], minlength=24 * 24).reshape(24, 24)
        tori = np.arange(24) // 8
        far = tori[:, None] != tori
        assert (away[far] == (1 if links is direct else 2)).all()
        assert not away[~far].any()


@pytest.mark.parametrize(
    "links",
    [
        Ladder(chips=2),
        Ladder(chips=8),
        Torus(chips=4),
        Torus(chips=12),
        Pod(chips=24, domain=8, switched=0),
        Pod(chips=24, domain=8, switched=1),
    ],
)
def test_the_names_of_links_make_a_path_from_chip_to_chip(links: Ladder):
    routes, names = routes_of(links), links.link_names()
    assert len(names) == len(routes.bytes_per_second)
    ends = [tuple(name.split(" -> ")) for name in names]
    for pair in range(links.chips**2):
        graph = nx.DiGraph([ends[k] for k in routes.link[routes.pair == pair]])
        for machine in [node for node in graph if node.startswith("machine")]:
            first = 4 * int(machine.removeprefix("machine "))
            graph.add_edges_from((machine, str(first + k)) for k in range(4))
            graph.add_edges_from((str(first + k), machine) for k in range(4))
        source, destination = map(str, divmod(pair, links.chips))
        assert source == destination or nx.has_path(graph, source, destination)


@pytest.mark.parametrize(("chips", "cycles"), [(2, 40), (4, 80), (16, 199), (64, 676)])
def test_all_chips_meet_in_the_published_time(chips: int, cycles: int):
    assert Ladder(chips=chips).meeting_seconds() * 1.325e9 == pytest.approx(cycles, abs=0.6)


def test_one_chip_has_no_links():
    for links in (Links(), Ladder(), Torus(), Pod()):
        assert links.chips == 1
        assert links.problem == ""
        assert links.meeting_seconds() == 0
        assert not len(routes_of(links).pair)
        assert links.link_names() == []


@pytest.mark.parametrize(
    ("links", "chips", "hops"),
    [
        (Ladder(chips=16), (), 5),
        (Ladder(chips=16), tuple(range(16)), 5),
        (Ladder(chips=16), (4, 5), 1),
        (Ladder(chips=16), (0, 3), 2),
        (Ladder(chips=16), (0, 15), 5),
        (Ladder(chips=16), (7,), 0),
        # The first row of a torus is next to the last one.
        (Torus(chips=16), (0, 15), 2),
        (Torus(chips=16), tuple(range(16)), 5),
        (Pod(chips=64), (60, 63), 2),
        (Pod(chips=64), (0, 63), 2),
    ],
)
def test_a_meeting_pays_for_the_rows_of_its_chips(links: Ladder, chips: tuple, hops: int):
    assert links.meeting_seconds(chips) == pytest.approx(2 * hops * 15e-9)


def test_a_meeting_within_a_torus_pays_for_no_gateway():
    pod = Pod(chips=256)
    assert pod.meeting_seconds((0, 1, 2, 3)) == pytest.approx(2 * 2 * 15e-9)
    assert pod.meeting_seconds((0, 64)) == pytest.approx(2 * (15e-9 + 500e-9))
    assert pod.meeting_seconds(tuple(range(256))) == pod.meeting_seconds()


def test_a_machine_may_not_let_just_any_chips_meet():
    pairs = ChipGroups.of([[0, 1], [4, 5]])
    assert Ladder(chips=8).meeting_groups(pairs) == pairs
    blocks = Ladder(chips=8, meeting_chips=4)
    assert blocks.meeting_groups(pairs) == ChipGroups.of([range(4), range(4, 8)])
    assert blocks.meeting_groups(ChipGroups.of([[3, 4]])) == ChipGroups.of([range(8)])
    assert Ladder(chips=8, meeting_chips=8).meeting_groups(pairs) == ChipGroups.of([range(8)])
