import numpy as np
import pytest
from layered_graph import DenseBlocks, LayeredGraph

from abele.ir.support.on_step import ignore_step
from abele.tools.views.scan.bound import RANDOM_PAIR, least_edge
from abele.tools.views.scan.layout import lay_out
from abele.tools.views.scan.measures import edge_length
from abele.tools.views.scan.sample import Sample, sample_edges


def test_the_median_distance_of_points_in_a_circle_is_the_constant():
    random = np.random.default_rng(0)
    radius, turn = np.sqrt(random.random((2, 10**6))), 2 * np.pi * random.random((2, 10**6))
    x, y = radius * np.cos(turn), radius * np.sin(turn)
    assert np.median(np.hypot(x[0] - x[1], y[0] - y[1])) == pytest.approx(RANDOM_PAIR, abs=0.003)


def test_half_of_the_larger_side_of_a_block_cannot_be_nearer_than_it_is_wide():
    # Of 900 consumers, the 450 nearest to a producer take a twentieth of all 9000 vertices.
    graph = DenseBlocks(9, 100, 900)
    assert least_edge(graph) == pytest.approx((450 / 9000) ** 0.5 / RANDOM_PAIR, rel=1e-3)


def test_no_even_layout_is_better():
    graph = DenseBlocks(20, 10, 100)
    edges = sample_edges(graph, 0, ignore_step)
    block = np.concatenate([np.arange(200) % 20, np.arange(2000) % 20])
    # Rows of a sunflower's seeds by angle: sectors, one a block, which fill the circle evenly.
    order = np.argsort(block, kind="stable")
    random = np.random.default_rng(1)
    turn = np.empty(len(block))
    turn[order] = np.linspace(0, 2 * np.pi, len(block))
    radius = np.sqrt(random.random(len(block)))
    x, y = (radius * np.cos(turn)).astype(np.float32), (radius * np.sin(turn)).astype(np.float32)
    assert least_edge(graph) < edge_length(x, y, edges, 0)


def test_dense_blocks_are_found_and_pulled_together():
    graph = DenseBlocks(20, 10, 100)
    edges = sample_edges(graph, 0, ignore_step)
    layout = lay_out(graph, edges, 0, ignore_step)
    assert edge_length(layout.x, layout.y, edges, 0) < 1.3 * least_edge(graph)


def test_a_graph_without_edges_has_no_bound():
    assert least_edge(LayeredGraph(("only",), size=1)) == 0
    assert isinstance(sample_edges(LayeredGraph(("only",), size=1), 0, ignore_step), Sample)
