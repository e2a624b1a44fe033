import pytest
from some_models import convolutions

from abele.tools.driver.arrays import Tensor
from abele.tools.driver.compile import compile_model
from abele.tools.views.scan.compiled import graph_of_program, subject_of


def test_the_graph_is_that_of_the_program_under_telling_names():
    exe = compile_model(convolutions(), "tiny:8")
    graph = graph_of_program(exe, {"the_c0": "first"})
    assert graph.vertex_count == exe.profile["vertices"]
    assert graph.edge_count == exe.profile["edges"]
    layers = {each.layer for each in graph.sets}
    assert "first" in layers
    assert "the_c0" not in layers
    assert "the_c1" in layers


class Takes:
    def __init__(self, *shapes: tuple[int, ...]):
        self.inputs = [Tensor(f"x{k}", shape, None) for k, shape in enumerate(shapes)]


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (((7, 3), (7,)), "batch 7"),
        (((7, 3), ()), "batch 7"),
        (((7, 3), (2, 5)), "inputs 7x3, 2x5"),
        (((),), "inputs scalar"),
        ((), "inputs none"),
    ],
)
def test_a_batch_is_the_size_that_all_inputs_agree_on(shapes, said):
    assert subject_of(Takes(*shapes), "net").batch == said
