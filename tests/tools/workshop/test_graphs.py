from pathlib import Path

import numpy as np
import onnx
import pytest
from some_models import model, node, random, relu

from abele.backends.graph import graph_of
from abele.ir.errors import InputError
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE
from abele.tools.importers.light_networks import seeded
from abele.tools.views.graph.folder import FILES
from abele.tools.workshop.graphs import NETWORKS, listed, with_batch, written


def one_image() -> onnx.ModelProto:
    nodes = [node("Relu", "x", "r"), node("Reshape", "r shape", "f"), node("MatMul", "f w", "y")]
    weights = {"shape": np.array([1, 12]), "w": random((12, 5), 1)}
    return model(nodes, {"x": [1, 3, 4]}, ["y"], weights)


def test_a_batch_reaches_every_layer():
    once = one_image()
    # The kit's models leave the shapes of outputs open.
    for size in (1, 5):
        once.graph.output[0].type.tensor_type.shape.dim.add().dim_value = size
    many = with_batch(once, 6)
    assert once.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1
    exe = compile_model(many, target="tiny:4")
    assert [each.shape for each in exe.inputs] == [(6, 3, 4)]
    assert [each.shape for each in exe.outputs] == [(6, 5)]
    with pytest.raises(InputError, match="its batch size is 2; need 1"):
        with_batch(relu(), 3)


def test_the_measured_figures_are_those_of_the_graph(tmp_path: Path):
    path, folder = tmp_path / "small.abele", tmp_path / "graph"
    compile_model(one_image(), target="tiny:4", vertices_per_tile=12).save(path)
    inside, outside = listed(path), written(path, folder)
    assert inside["vertices"] == outside["vertices"] > 0
    assert inside["edges"] == outside["edges"] > 0
    assert {each.name for each in folder.iterdir()} >= set(FILES)
    assert outside["disk"] == sum(each.stat().st_size for each in folder.iterdir())


@pytest.mark.slow
@pytest.mark.large
def test_alexnet_can_be_split_as_finely_as_published_pictures_show():
    """18.7 million vertices and 115.8 million edges, and not many more."""
    name, batch, vertices = NETWORKS[-1].split(":")
    model = with_batch(seeded(name), int(batch))
    exe = compile_model(model, "mk2", vertices_per_tile=int(vertices))
    graph = graph_of(exe.module_at(MACHINE), exe.target)
    assert 18.7e6 <= graph.vertex_count <= 25e6
    assert 115.8e6 <= graph.edge_count <= 150e6
    profile = exe.profile
    assert (profile["vertices"], profile["edges"]) == (graph.vertex_count, graph.edge_count)
