import numpy as np
import pytest

from abele.tools.views.scan.measures import Pairs, edge_length, purity
from abele.tools.views.scan.sample import Sample


def test_layers_side_by_side_are_pure_and_mixed_ones_are_not():
    random = np.random.default_rng(0)
    x, y = random.random((2, 200_000), np.float32)
    assert purity(x, y, (x > 0.5).astype(np.int32)) > 0.99
    assert purity(x, y, random.integers(0, 2, len(x)).astype(np.int32)) < 0.9


def test_the_median_edge_is_that_of_all_edges_not_of_the_sample():
    x = np.linspace(0, 1, 1001, dtype=np.float32)
    y = np.zeros_like(x)
    short = np.arange(1000, dtype=np.int32)
    long = np.zeros(1000, np.int32)
    producer, consumer = np.concatenate([short, long]), np.concatenate([short + 1, long + 1000])
    evenly = np.ones(2000, np.float32)
    # Of the long edges one in a hundred was kept, so there are many more of them.
    thinned = np.concatenate([np.ones(1000), np.full(1000, 0.01)]).astype(np.float32)
    # Two numbers at random from 0..1 are 1 - sqrt(1/2) apart in the median.
    median = 1 - np.sqrt(0.5)
    many = edge_length(x, y, Sample(producer, consumer, thinned), 0)
    assert many == pytest.approx(1 / median, rel=0.02)
    few = edge_length(x, y, Sample(producer[:1001], consumer[:1001], evenly[:1001]), 0)
    assert few == pytest.approx(0.001 / median, rel=0.02)


def test_pairs_are_measured_again_after_vertices_have_moved():
    random = np.random.default_rng(0)
    x, y = random.random((2, 1000), np.float32)
    ends = random.integers(0, 1000, (2, 3000)).astype(np.int32)
    sample = Sample(ends[0], ends[1], np.ones(3000, np.float32))
    pairs = Pairs.drawn(sample, 1000, 0)
    assert pairs.edge_length(x, y) == edge_length(x, y, sample, 0)
    assert pairs.edge_length(x * x, y) == edge_length(x * x, y, sample, 0)
    none = np.empty(0, np.int32)
    assert Pairs.drawn(Sample(none, none, np.empty(0, np.float32)), 5, 0).edge_length(x, y) == 0
