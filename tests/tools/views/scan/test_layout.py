import numpy as np
import pytest
from layered_graph import LayeredGraph

from abele.ir.support.on_step import ignore_step
from abele.tools.views.scan.kernels import deposit, deposit_layers, pull, step
from abele.tools.views.scan.layout import lay_out
from abele.tools.views.scan.measures import measured
from abele.tools.views.scan.sample import sample_edges


@pytest.fixture(scope="module")
def graph() -> LayeredGraph:
    return LayeredGraph(tuple(f"layer{k}" for k in range(8)), size=120)


def placed(graph: LayeredGraph, seed: int = 0):
    return lay_out(graph, sample_edges(graph, seed, ignore_step), seed, ignore_step)


def test_layers_form_lobes_and_edges_are_short(graph: LayeredGraph):
    layout = placed(graph)
    found = measured(layout.x, layout.y, layout.layer_of, sample_edges(graph, 0, ignore_step), 0)
    assert found.purity >= 0.95
    assert found.edge < 0.4
    for k in range(len(layout.layers)):
        mine = layout.layer_of == k
        middle = np.median(layout.x[mine]), np.median(layout.y[mine])
        far = np.hypot(layout.x - middle[0], layout.y - middle[1])
        assert np.median(far[mine]) < 0.4 * np.median(far[~mine])


def test_layers_that_follow_each_other_are_neighbours(graph: LayeredGraph):
    layout = placed(graph)
    middles = np.array(
        [
            (np.median(layout.x[layout.layer_of == k]), np.median(layout.y[layout.layer_of == k]))
            for k in range(len(layout.layers))
        ]
    )
    distance = np.hypot(*(middles[:, None] - middles).transpose(2, 0, 1))
    following = np.diagonal(distance, 1)
    assert following.mean() < 0.7 * distance[np.triu_indices(len(middles), 2)].mean()


def test_the_same_seed_gives_the_same_places(graph: LayeredGraph):
    one, same, other = placed(graph, 3), placed(graph, 3), placed(graph, 4)
    assert np.array_equal(one.x, same.x)
    assert np.array_equal(one.y, same.y)
    assert not np.array_equal(one.x, other.x)


def test_places_are_float32_so_that_each_kernel_is_compiled_once(graph: LayeredGraph):
    layout = placed(graph)
    assert (layout.x.dtype, layout.y.dtype) == (np.float32, np.float32)
    assert [len(each.signatures) for each in (deposit, deposit_layers, pull, step)] == [1] * 4


def test_phases_of_training_form_two_hemispheres_with_the_update_below():
    order = [f"layer{k}" for k in range(4)]
    names = (*order, *(f"{each} backward" for each in order[::-1]), *(f"{e} update" for e in order))
    layout = placed(LayeredGraph(names, size=120))
    assert layout.layers == names
    phase = np.array([len(each.split()) > 1 and each.split()[1] for each in names])
    mine = phase[layout.layer_of]
    left, right = np.median(layout.x[mine == "False"]), np.median(layout.x[mine == "backward"])
    low = np.median(layout.y[mine == "update"])
    assert left < np.median(layout.x) < right
    assert low > max(np.median(layout.y[mine == each]) for each in ("False", "backward"))


def test_one_vertex_has_a_place():
    layout = placed(LayeredGraph(("only",), size=1))
    assert np.isfinite(layout.x).all()
    assert layout.layers == ("only",)
