import onnx
import pytest
from some_models import convolutions, relu

from abele.ir.provenance import named
from abele.tools import compile_model
from abele.tools.workshop.trace import Trace, traceability


def traces(model: onnx.ModelProto) -> tuple[Trace, ...]:
    return traceability(compile_model(model, "mk2"), model)


@pytest.mark.parametrize("model", [relu(), convolutions()], ids=["relu", "convolutions"])
def test_all_of_a_small_model_traces(model: onnx.ModelProto):
    for trace in traces(model):
        assert trace.untraced == ()
        assert trace.lost == ()
        assert trace.nodes == len(model.graph.node)


def test_an_operation_that_forgot_its_node_is_named():
    exe = compile_model(relu(), "mk2")
    module = exe.module_at("exchange")
    op = next(op for op in module.walk() if op.name == "exchange.compute")
    op.location = named("elsewhere")
    *_, trace = traceability(exe, relu())
    assert trace.untraced == ("exchange.compute elsewhere",)
    assert trace.traced == trace.operations - 1
