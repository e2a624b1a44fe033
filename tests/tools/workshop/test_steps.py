import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.ir.errors import InputError
from abele.tools import Training, compile_model

pytest.importorskip("torch")

from abele.tools.workshop import steps


def small() -> onnx.ModelProto:
    """A convolution, a pool, a dropout and a dense layer."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.normal(size=(4, 2, 3, 3)),
        "b": random.normal(size=4),
        "d": random.normal(size=(3, 36)),
        "e": random.normal(size=3),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Dropout", ["p"], ["q"]),
        helper.make_node("Reshape", ["q", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "d", "e"], ["z"], transB=1),
        helper.make_node("Softmax", ["z"], ["y"], axis=1),
    ]
    stored = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    stored.append(numpy_helper.from_array(np.array([-1, 36]), "shape"))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2, 6, 6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "small", [x], [y], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_torch_takes_the_same_steps():
    model = steps.without_dropout(small())
    exe = compile_model(model, "tiny:4", train=Training(learning_rate=steps.RATE))
    samples = np.random.default_rng(1).normal(size=(2, 2, 6, 6)).astype(np.float32)
    labels = np.array([2, 0], np.int32)
    theirs = steps.torch_step(model, samples, labels)
    losses = [theirs() for _ in range(3)]
    own = [float(exe.step({"x": samples, "target": labels})["loss"]) for _ in range(3)]
    np.testing.assert_allclose(own, losses, rtol=1e-5)
    assert len({*losses}) == 3


def test_an_operator_that_torch_is_not_told_about_is_named():
    model = small()
    model.graph.node[1].op_type = "Elu"
    samples, labels = np.zeros((2, 2, 6, 6), np.float32), np.zeros(2, np.int32)
    with pytest.raises(InputError, match="Elu"):
        steps.torch_step(model, samples, labels)()


@pytest.mark.parametrize("given", ["alexnet", "alexnet:0", "lenet:4", "alexnet:x"])
def test_what_is_no_network_and_batch_is_refused(given: str):
    with pytest.raises(InputError, match="NAME:BATCH|no network"):
        steps.chosen_steps(given)
