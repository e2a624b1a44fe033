"""ResNet-34 as an ONNX model with random weights.

The onnx package has the graph of ResNet-50 but not of ResNet-34, whose training graph Graphcore
drew in 2017. The layers are those of He et al., "Deep Residual Learning for Image Recognition"
(2015), table 1: 34 layers with weights, in blocks of two 3 x 3 convolutions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Channels and blocks of each stage. All but the first halve the image."""


@dataclass
class _Net:
    """The nodes and weights so far."""

    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])

    def node(self, kind: str, name: str, reads: list[str], **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        self.nodes.append(helper.make_node(kind, reads, [name], name, **attributes))
        return name

    def weight(self, name: str, values: np.ndarray) -> str:
        """Add a weight, and return its name."""
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def drawn(self, name: str, shape: tuple[int, ...]) -> str:
        """A He-normal weight."""
        scale = np.sqrt(2 / np.prod(shape[1:]))
        return self.weight(name, self.random.standard_normal(shape, np.float32) * scale)

    def convolution(
        self, name: str, reads: str, sizes: tuple[int, int, int], stride: int, relu: bool
    ) -> str:
        """A convolution with a normalisation, and relu if asked.

        Args:
            sizes: channels, kernel.
        """
        taken, made, kernel = sizes
        weight = self.drawn(f"{name}.weight", (made, taken, kernel, kernel))
        last = self.node(
            "Conv",
            name,
            [reads, weight],
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
        )
        bn = f"{name}_bn"
        fills = {"scale": 1.0, "shift": 0.0, "mean": 0.0, "variance": 1.0}
        given = [self.weight(f"{bn}.{each}", np.full(made, n)) for each, n in fills.items()]
        last = self.node("BatchNormalization", bn, [last, *given])
        return self.node("Relu", f"{name}_relu", [last]) if relu else last


def resnet34(
    batch: int = 1, size: int = 224, classes: int = 1000, seed: int = 0
) -> onnx.ModelProto:
    """ResNet-34: images x [batch, 3, size, size] -> scores [batch, classes]."""
    net = _Net(np.random.default_rng(seed))
    last = net.convolution("conv1", "x", (3, 64, 7), 2, relu=True)
    last = net.node(
        "MaxPool", "pool1", [last], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    )
    channels = 64
    for stage, (wide, blocks) in enumerate(STAGES, 2):
        for block in range(blocks):
            name = f"conv{stage}_{block + 1}"
            stride = 2 if stage > 2 and block == 0 else 1
            short = last
            last = net.convolution(f"{name}a", last, (channels, wide, 3), stride, relu=True)
            last = net.convolution(f"{name}b", last, (wide, wide, 3), 1, relu=False)
            if channels != wide:
                short = net.convolution(f"{name}s", short, (channels, wide, 1), stride, relu=False)
            last = net.node("Add", f"{name}_add", [last, short])
            last = net.node("Relu", f"{name}_relu", [last])
            channels = wide
    last = net.node("GlobalAveragePool", "pool", [last])
    last = net.node("Flatten", "flatten", [last])
    given = [net.drawn("fc.weight", (classes, channels)), net.weight("fc.bias", np.zeros(classes))]
    net.node("Gemm", "scores", [last, *given], transB=1)
    graph = helper.make_graph(
        net.nodes,
        "resnet34",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, size, size])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, classes])],
        net.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
