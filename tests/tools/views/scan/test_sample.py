import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from layered_graph import LayeredGraph

from abele.ir.support.on_step import ignore_step
from abele.tools.views.scan.sample import even_share, sample_edges


def test_a_small_graph_is_sampled_whole():
    graph = LayeredGraph()
    sample = sample_edges(graph, 0, ignore_step)
    assert len(sample.producer) == graph.edge_count
    assert (sample.share == 1).all()


def test_every_link_keeps_some_edges():
    graph = LayeredGraph(("a", "b", "c", "d"), size=4000, fan=5)
    sample = sample_edges(graph, 0, ignore_step, most=20_000)
    assert 15_000 < len(sample.producer) < 25_000
    sets = np.repeat(np.arange(len(graph.sets)), [each.count for each in graph.sets])
    kept = np.bincount(sets[sample.consumer], minlength=len(graph.sets))[1:]
    assert kept.min() > 0.8 * kept.max()


def test_the_same_seed_gives_the_same_sample():
    graph = LayeredGraph(size=400)
    one, same, other = (sample_edges(graph, seed, ignore_step, most=500) for seed in (1, 1, 2))
    assert np.array_equal(one.producer, same.producer)
    assert not np.array_equal(one.producer, other.producer)


@given(st.lists(st.integers(0, 1000), max_size=12), st.integers(0, 5000))
def test_the_even_share_is_the_largest_within_the_budget(counts: list[int], budget: int):
    share = even_share(np.array(counts, np.int64), budget)
    taken = sum(min(count, share) for count in counts)
    assert taken <= max(budget, 0)
    more = sum(min(count, share + 1) for count in counts)
    assert more > budget or taken == sum(counts)
