from pathlib import Path

import onnx
import pytest
from some_models import convolutions
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.ir.phases import PHASES
from abele.tools.driver.compile import compile_model
from abele.tools.driver.training import Training
from abele.tools.views.script import script
from abele.tools.workshop.training import measured, parsed_network, picture_names, training


@pytest.fixture
def network(tmp_path: Path) -> str:
    path = tmp_path / "small.onnx"
    made = convolutions()
    for each in (*made.graph.input, *made.graph.output):
        if each.type.tensor_type.shape.dim:
            each.type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(made, path)
    return str(path)


def test_a_network_has_a_batch_size_and_vertices_per_tile_if_they_are_given():
    assert parsed_network("alexnet") == ("alexnet", 1, None)
    assert parsed_network("alexnet:4") == ("alexnet", 4, None)
    assert parsed_network("alexnet:4:336") == ("alexnet", 4, 336)
    for wrong in ("alexnet:0", "alexnet:four", "alexnet:1:2:3"):
        with pytest.raises(InputError, match="need NAME"):
            parsed_network(wrong)
    with pytest.raises(InputError, match="no network 'alexnt'; did you mean alexnet?"):
        parsed_network("alexnt:4")
    with pytest.raises(InputError, match="--networks absent.onnx:2: there is no file absent.onnx"):
        parsed_network("absent.onnx:2")


def test_pictures_of_one_network_have_names_of_their_own():
    wanted = [("alexnet", 1, None), ("alexnet", 4, 336), ("a/small.onnx", 2, None)]
    assert picture_names(wanted) == [
        "alexnet_1_training.jpg",
        "alexnet_4_336_training.jpg",
        "small_training.jpg",
    ]


def test_counts_by_layer_and_by_phase_add_up_to_those_of_the_profile(network: str):
    found = measured(network, 2, 12, "tiny:4")
    training = Training(momentum=0.9)
    exe = compile_model(network, "tiny:4", batch=2, vertices_per_tile=12, train=training)
    for k, size in enumerate(("vertices", "edges", "connections")):
        assert found["all"][size] == exe.profile[size]
        for phase in PHASES:
            of_layers = sum(each[phase][k] for each in found["layers"].values())
            assert of_layers == found[phase][size] == exe.profile["phases"][phase][size]


@pytest.mark.large
def test_the_bench_prints_and_draws_a_step(network: str, tmp_path: Path):
    options = ["--networks", f"{network}:2", "--target", "tiny:4", "--layers"]
    result = CliRunner().invoke(script(training), [*options, "--folder", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for phase in PHASES:
        assert phase in result.output
    assert (tmp_path / "small_training.jpg").stat().st_size > 10_000
