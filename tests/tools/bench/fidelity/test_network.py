"""Prices of networks, of a network that compiles at once."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.backends.target import resolve_target
from abele.tools.bench.fidelity import network
from abele.tools.bench.fidelity.cases import Network
from abele.tools.bench.fidelity.predict import predictions
from abele.tools.bench.fidelity.rows import Measurement
from abele.tools.bench.fidelity.units import Unclear
from abele.tools.driver.compile import compile_model

TARGET = resolve_target("c600:16")
CASE = Network("squeezenet", 4, "float16", "float32", io_tiles=4)


def layer(name: str) -> onnx.ModelProto:
    """A fully connected layer."""
    del name
    weight = numpy_helper.from_array(np.ones((256, 64), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(network, "seeded", layer)
    network._compiled.cache_clear()
    yield
    network._compiled.cache_clear()


def test_a_network_is_priced_as_its_compiled_program_on_the_other_tiles():
    exe = compile_model(
        layer(""), "c600:12", batch=4, precision="float16", partials="float32", cache=False
    )
    assert sum(network.network(CASE, TARGET).values()) == exe.profile["cycles"]
    assert network.host(CASE, TARGET) == {"host": exe.profile["host_cycles"]}


def test_batch_types_and_tiles_count():
    def cycles(**changes: object) -> float:
        return sum(network.network(replace(CASE, **changes), TARGET).values())

    assert cycles() < cycles(batch=64)
    assert cycles(batch=64, io_tiles=0) < cycles(batch=64, io_tiles=12)
    narrow = cycles(batch=64, partials="float16")
    assert narrow < cycles(batch=64)
    assert narrow < cycles(batch=64, operand="float32", partials="")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"operand": "int8"}, "dtype int8: no precision of a network; need float32, float16"),
        ({"batch": 1 << 18}, "squeezenet of 262144: "),
        ({"partials": "int8"}, "squeezenet of 4: .*int8"),
    ],
)
def test_a_network_that_does_not_compile_is_listed_with_one_reason(changes, reason):
    with pytest.raises(Unclear, match=reason) as raised:
        network.network(replace(CASE, **changes), TARGET)
    assert "\n" not in str(raised.value)


def test_a_prediction_shows_what_it_leaves_out_and_does_not_count_it():
    (found,), skipped = predictions([Measurement("one", "network", CASE, TARGET, 1000.0)])
    assert skipped == []
    assert found.left_out == network.host(CASE, TARGET)
    assert found.cycles == sum(network.network(CASE, TARGET).values())
    assert found.error == found.error_without == found.cycles / 1000 - 1
