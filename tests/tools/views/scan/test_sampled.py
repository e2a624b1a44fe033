import numpy as np
from layered_graph import LayeredGraph

from abele.tools.views.scan.sampled import Sampled


def test_edges_are_those_between_vertices_that_are_kept():
    graph = LayeredGraph(size=41)
    part = Sampled(graph, 3)
    kept = np.concatenate(
        [np.arange(each.first, each.first + each.count, 3) for each in graph.sets]
    )
    assert part.vertex_count == len(kept)
    number = {int(old): new for new, old in enumerate(kept)}
    expected = sorted(
        (number[int(a)], number[int(b)])
        for block in graph.edges()
        for a, b in zip(block.producer, block.consumer)
        if int(a) in number and int(b) in number
    )
    found = sorted(
        (int(a), int(b))
        for block in part.edges(most=50)
        for a, b in zip(block.producer, block.consumer)
    )
    assert found == expected
    assert part.edge_count == len(expected) > 0


def test_columns_are_those_of_the_vertices_that_are_kept():
    graph = LayeredGraph(size=41)
    part = Sampled(graph, 4)
    columns = part.vertices()
    assert len(columns["id"]) == part.vertex_count
    for each in part.sets:
        ids = columns["id"][each.first : each.first + each.count]
        assert ids[0] == graph.sets[each.index].first
        assert (np.diff(ids) == 4).all()
    assert np.array_equal(part.vertices(3, 9)["id"], columns["id"][3:9])
