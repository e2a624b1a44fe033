import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from abele.tools.importers.onnx.layer_names import telling_names
from abele.tools.views.layer_names import layer_name


def model(*nodes: onnx.NodeProto, weights: tuple[str, ...] = ()) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "xy")
    stored = [numpy_helper.from_array(np.ones(1, np.float32), name) for name in weights]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], stored))


def test_numbered_nodes_are_called_after_their_weights_or_what_they_do():
    made = model(
        helper.make_node("Conv", ["x", "gpu_0/conv1_w_0"], ["a"], name="n0"),
        helper.make_node("MaxPool", ["a"], ["b"], name="n1"),
        helper.make_node("MaxPool", ["b"], ["c"], name="2"),
        helper.make_node("Gemm", ["c", "fc.weight"], ["d"], name="n3"),
        helper.make_node("Relu", ["d"], ["y"], name="clamp"),
        weights=("gpu_0/conv1_w_0", "fc.weight"),
    )
    assert telling_names(made) == {"n0": "conv1", "n1": "maxpool1", "2": "maxpool2", "n3": "fc"}


def test_a_name_is_given_once():
    made = model(
        helper.make_node("MatMul", ["x", "w_0"], ["a"], name="n0"),
        helper.make_node("MatMul", ["a", "w_0"], ["y"], name="n1"),
        weights=("w_0",),
    )
    assert telling_names(made) == {"n0": "w", "n1": "matmul2"}


def test_a_step_is_left_out_beside_its_node():
    fused = ("conv1/product", "conv1", "relu1")
    assert layer_name(fused, {}) == "conv1+relu1"
    assert layer_name(("bn1/scale", "bn1/shift"), {}) == "bn1/scale+bn1/shift"
    assert layer_name(("conv10/product", "conv1"), {}) == "conv10/product+conv1"


def test_numbered_nodes_get_their_telling_names():
    assert layer_name(("n0/product", "n0", "n1"), {"n0": "conv1"}) == "conv1+n1"
    assert layer_name(("n0/product",), {"n0": "conv1"}) == "conv1/product"
