from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from abele.passes.planner.serial import plans
from abele.tools.views.script import script
from abele.tools.workshop.planning import LAYERS, compiled, planned, planning, resnet


def layers(proto: onnx.ModelProto) -> int:
    """The products on the longest way through a network."""
    depth: dict[str, int] = {}
    for node in proto.graph.node:
        before = max(depth.get(name, 0) for name in node.input)
        depth[node.output[0]] = before + (node.op_type in ("Conv", "Gemm"))
    return max(depth.values())


@pytest.mark.parametrize("count", LAYERS)
def test_a_resnet_has_the_layers_that_it_is_named_after(count: int):
    proto = resnet(LAYERS[count], side=32, width=2, classes=10)
    onnx.checker.check_model(proto, full_check=True)
    assert layers(proto) == count


def test_equal_blocks_are_planned_once_and_nothing_is_slower(tmp_path: Path):
    def figures(*blocks: int) -> dict:
        path = tmp_path / "resnet.onnx"
        path.write_bytes(resnet(blocks, side=32, width=8, classes=10).SerializeToString())
        plans.cache_clear()
        return planned(path, "tiny:8")

    few, many = figures(2, 3), figures(2, 9)
    assert many["operators"] - few["operators"] == 6 * 3
    assert many["asked"] > few["asked"] + 6 * 3
    assert many["searched"] <= few["searched"] + 6
    assert many["cycles"] <= many["alone_cycles"]


def test_the_whole_compile_takes_longer_than_planning(tmp_path: Path):
    path = tmp_path / "resnet.onnx"
    path.write_bytes(resnet((2, 3), side=32, width=8, classes=10).SerializeToString())
    # What is made once a process counts for the compile, if for either.
    plans.cache_clear()
    found = compiled(path, "tiny:8")
    plans.cache_clear()
    planning = planned(path, "tiny:8")["seconds"]
    assert found["compile_seconds"] > planning > 0
    assert found["cycles"] > 0


def test_the_table_of_networks_gives_the_time_of_the_whole_compile():
    found = CliRunner().invoke(
        script(planning), ["--networks", "", "--layers", ""], env={"COLUMNS": "200"}
    )
    assert found.exit_code == 0, found.output
    assert "compile s" in found.output
    assert "a loop of ten million iterations takes" in found.output
