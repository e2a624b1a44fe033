from pathlib import Path

import onnx
import pytest

from abele.passes.planner.serial import plans
from abele.tools.bench.planning import LAYERS, planned, resnet


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
