"""Small ONNX models with the operators of the light networks, each with some unusual attribute."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    outputs: list[str],
    weights: dict[str, np.ndarray] | None = None,
    opset: int = 17,
    domain: str = "",
) -> onnx.ModelProto:
    """A checked model with float inputs. The shapes of outputs are inferred."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=8
    )


def random(shape: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def node(op: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), output.split(), name=f"the_{output}", **attributes)


def relu() -> onnx.ModelProto:
    """y = relu(x)."""
    return model([node("Relu", "x", "y")], {"x": [2, 3]}, ["y"])


def products() -> onnx.ModelProto:
    """Two products of matrices: y = x w v."""
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h v", "y")]
    weights = {"w": random((256, 64)), "v": random((64, 32), 1)}
    return model(nodes, {"x": [16, 256]}, ["y"], weights)


def convolutions(opset: int = 17) -> onnx.ModelProto:
    """Convolutions with strides, dilations, groups and uneven padding, then pooling."""
    nodes = [
        node("Conv", "x w0 b0", "c0", strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2]),
        node("Relu", "c0", "r0"),
        node("Conv", "r0 w1", "c1", group=2, auto_pad="SAME_UPPER", strides=[2, 2]),
        node("MaxPool", "c1", "m0", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 0, 0]),
        node("AveragePool", "m0", "a0", kernel_shape=[2, 2], pads=[1, 0, 0, 1]),
        node("GlobalAveragePool", "a0", "y"),
    ]
    weights = {
        "w0": random((6, 3, 3, 2), 1, 0.3),
        "b0": random((6,), 2),
        "w1": random((4, 3, 3, 3), 3, 0.3),
    }
    return model(nodes, {"x": [2, 3, 11, 13]}, ["y"], weights, opset)


def normalisations(opset: int = 17) -> onnx.ModelProto:
    """Batch normalisation, local response, a scale and a sum, then a concatenation."""
    nodes = [
        node("BatchNormalization", "x s b m v", "n", epsilon=1e-3),
        node("LRN", "n", "l", size=3, alpha=0.1, beta=0.75, bias=1.0),
        node("Mul", "l f", "p"),
        node("Sum", "p x n", "t"),
        node("Concat", "t l x", "y", axis=1),
    ]
    weights = {
        "s": random((5,), 1),
        "b": random((5,), 2),
        "m": random((5,), 3),
        "v": np.abs(random((5,), 4)) + 0.5,
        "f": random((5, 1, 1), 5),
    }
    return model(nodes, {"x": [1, 5, 6, 7]}, ["y"], weights, opset)


def shuffle(opset: int = 17) -> onnx.ModelProto:
    """A channel shuffle (reshape, transpose, reshape), added to its input."""
    nodes = [
        node("Reshape", "x split", "g"),
        node("Transpose", "g", "t", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "t join", "s"),
        node("Add", "s x", "y"),
    ]
    weights = {
        "split": np.array([1, 3, 2, 5, 5], np.int64),
        "join": np.array([1, -1, 5, 5], np.int64),
    }
    return model(nodes, {"x": [1, 6, 5, 5]}, ["y"], weights, opset)


def classifier(opset: int = 9) -> onnx.ModelProto:
    """The end of a network: dropout, product and softmax, with ConstantOfShape and Unsqueeze."""
    nodes = [
        node("Dropout", "x", "d"),
        node(
            "ConstantOfShape", "size", "ones", value=numpy_helper.from_array(np.ones(1, np.float32))
        ),
        node("Unsqueeze", "row", "wide", axes=[0]),
        node("Mul", "d ones", "o"),
        node("Add", "o wide", "h"),
        node("Gemm", "h w b", "g", transB=1, alpha=0.5, beta=2.0),
        node("Softmax", "g", "y"),
    ]
    weights = {
        "size": np.array([1, 12], np.int64),
        "row": random((12,), 1),
        "w": random((10, 12), 2, 0.3),
        "b": random((10,), 3),
    }
    return model(nodes, {"x": [3, 12]}, ["y"], weights, opset)


def nothing() -> onnx.ModelProto:
    """Rows of a table, none of which is chosen: a program that calls no codelet."""
    weights = {"table": random((4, 3)), "rows": np.zeros(0, np.int64)}
    return model([node("Gather", "table rows", "y")], {}, ["y"], weights)


SMALL = {
    "convolutions": convolutions,
    "normalisations": normalisations,
    "shuffle": shuffle,
    "classifier": classifier,
}
"""Together the 18 operators of the nine light networks."""
