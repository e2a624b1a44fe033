from collections.abc import Iterator

import numpy as np
from layered_graph import DenseBlocks, LayeredGraph

from abele.backends.graph import EdgeBlock, Link
from abele.ir.support.on_step import ignore_step
from abele.tools.views.scan.groups import grouped, mean_others
from abele.tools.views.scan.pieces import Pieces


def test_vertices_of_a_group_have_the_same_neighbours():
    graph = DenseBlocks(20, 16, 160)
    groups = grouped(graph, Pieces.in_graph(graph), ignore_step)
    block = np.concatenate([np.arange(20 * 16) % 20, np.arange(20 * 160) % 20])
    least, most = np.full(len(groups.size), 99), np.full(len(groups.size), -1)
    np.minimum.at(least, groups.group_of, block)
    np.maximum.at(most, groups.group_of, block)
    # A group may lie across the border of two blocks, no more.
    assert (most - least).max() <= 1
    assert (most == least).mean() > 0.7


def test_few_vertices_with_many_edges_get_as_many_groups():
    graph = DenseBlocks(20, 16, 160)
    groups = grouped(graph, Pieces.in_graph(graph), ignore_step)
    counts = np.bincount(groups.piece_of)
    assert counts[0] > 0.3 * counts[1]


def test_every_vertex_has_a_place_in_a_group_of_its_set():
    graph = LayeredGraph(size=120)
    groups = grouped(graph, Pieces.in_graph(graph), ignore_step)
    set_of = np.repeat(np.arange(len(graph.sets)), [each.count for each in graph.sets])
    assert np.array_equal(groups.piece_of[groups.group_of], set_of)
    assert np.array_equal(np.bincount(groups.group_of), groups.size)
    places = np.lexsort((groups.inside, groups.group_of))
    starts = np.cumsum(groups.size) - groups.size
    expected = np.arange(len(set_of)) - np.repeat(starts, groups.size)
    assert np.array_equal(groups.inside[places], expected)


class WithFewMore(DenseBlocks):
    """Dense blocks, and edges across them: those of a second operand, fewer than the first's."""

    def __init__(self):
        super().__init__(2, 3, 4)
        self.links = [*self.links, Link(0, 1, 1, 8, False, 0)]

    def edges(self, most: int = 4_000_000, loops: bool = False) -> Iterator[EdgeBlock]:
        yield from super().edges(most, loops)
        consumers = np.arange(6, 14, dtype=np.int32)
        yield EdgeBlock(1, consumers * 0, consumers, np.empty(0, np.int32))


def test_the_mean_of_neighbours_is_over_the_largest_link():
    for graph in (DenseBlocks(2, 3, 4), WithFewMore()):
        means = mean_others(graph, ignore_step)
        # Block 0 has the consumers 0, 2, 4 and 6 of their set, block 1 the odd ones.
        assert np.array_equal(means[:6], [3, 4, 3, 4, 3, 4])
        assert np.array_equal(means[6:], [2, 3, 2, 3, 2, 3, 2, 3])
