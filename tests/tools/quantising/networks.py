"""Small networks to quantise, and quantised ones, as ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, ...]],
    outputs: dict[str, tuple[int, ...]],
    weights: dict[str, Any],
    opset: int = 17,
) -> onnx.ModelProto:
    """A checked model with float32 inputs and outputs."""

    def declared(shapes: dict[str, tuple[int, ...]]) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in shapes.items()
        ]

    held = [numpy_helper.from_array(np.asarray(a), name) for name, a in weights.items()]
    graph = helper.make_graph(nodes, "network", declared(inputs), declared(outputs), held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def quantised(seed: int) -> onnx.ModelProto:
    """A quantised network with a convolution, a maximum, a residual and a product of matrices.

    The seed decides zero points, whether weights have a scale for each channel, the stride, the
    padding, and whether the maximum keeps the scale.
    """
    random = np.random.default_rng(seed)
    channels, outputs = int(random.integers(1, 5)), int(random.integers(1, 6))
    zero = np.uint8(random.choice([0, 3, 128]))
    other = zero if random.random() < 0.7 else np.uint8(7)
    scales = random.uniform(0.01, 0.2, outputs if random.random() < 0.6 else ())
    axis = {"axis": 0} if scales.ndim else {}
    stride, pad = int(random.integers(1, 3)), int(random.integers(0, 2))
    size = (6 + 2 * pad - 3) // stride + 1
    flat = outputs * (size - 1) ** 2
    weights = {
        "s": np.float32(random.uniform(0.01, 0.1)),
        "z": zero,
        "w": random.integers(-127, 128, (outputs, channels, 3, 3)).astype(np.int8),
        "ws": scales.astype(np.float32),
        "wz": np.zeros(scales.shape, np.int8),
        "b": random.standard_normal(outputs).astype(np.float32),
        "t": np.float32(random.uniform(0.05, 0.5)),
        "u": other,
        "v": random.integers(-127, 128, (flat, 3)).astype(np.int8),
        "vs": random.uniform(0.01, 0.1, 3).astype(np.float32),
        "vz": np.zeros(3, np.int8),
        "shape": np.array([1, flat], np.int64),
    }
    node = helper.make_node
    again = ("t", "u") if random.random() < 0.7 else ("s", "u")
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], **axis),
        node("Conv", ["xd", "wd", "b"], ["c"], strides=[stride] * 2, pads=[pad] * 4),
        node("Relu", ["c"], ["r"]),
        node("QuantizeLinear", ["r", "t", "u"], ["rq"]),
        node("DequantizeLinear", ["rq", "t", "u"], ["rd"]),
        node("MaxPool", ["rd"], ["m"], kernel_shape=[2, 2]),
        node("Reshape", ["m", "shape"], ["f"]),
        node("QuantizeLinear", ["f", *again], ["fq"]),
        node("DequantizeLinear", ["fq", *again], ["fd"]),
        node("DequantizeLinear", ["v", "vs", "vz"], ["vd"], axis=1),
        node("MatMul", ["fd", "vd"], ["y"]),
        node("Add", ["rd", "rd"], ["twice"]),
    ]
    return model(
        nodes,
        {"x": (1, channels, 6, 6)},
        {"y": (1, 3), "twice": (1, outputs, size, size)},
        weights,
    )
