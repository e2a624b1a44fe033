"""The networks that are trained, as ONNX models with seeded weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ....ir.support.arrays import Array


@dataclass
class Network:
    """A chain of layers on images or series, [N, channels, ...], with weights of a seed."""

    shape: tuple[int, ...]
    seed: int
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    last: str = "x"

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.given = self.shape

    @property
    def axes(self) -> tuple[int, ...]:
        """The sizes of an image or a series."""
        return self.shape[1:]

    def convolution(
        self, channels: int, kernel: int, stride: int = 1, dilation: int = 1, pad: bool = True
    ) -> None:
        """A convolution.

        Args:
            pad: it keeps the size, except for the stride.
        """
        reach = dilation * (kernel - 1)
        before, after = (reach // 2, reach - reach // 2) if pad else (0, 0)
        rank = len(self.axes)
        self._weighted(
            "Conv",
            (channels, self.shape[0], *[kernel] * rank),
            strides=[stride] * rank,
            dilations=[dilation] * rank,
            pads=[*[before] * rank, *[after] * rank],
        )
        sizes = [(n + before + after - reach - 1) // stride + 1 for n in self.axes]
        self.shape = channels, *sizes

    def normalised(self) -> None:
        """A batch normalisation."""
        name = f"norm{len(self.nodes)}"
        values = {"scale": 1.0, "bias": 0.0, "mean": 0.0, "variance": 1.0}
        for what, value in values.items():
            self._weight(f"{name}.{what}", np.full(self.shape[0], value))
        self._add("BatchNormalization", name, [f"{name}.{what}" for what in values])

    def relu(self) -> None:
        """A relu."""
        self._add("Relu", f"relu{len(self.nodes)}", [])

    def pool(self, size: int) -> None:
        """A max pooling over blocks."""
        rank = len(self.axes)
        self._add(
            "MaxPool",
            f"pool{len(self.nodes)}",
            [],
            kernel_shape=[size] * rank,
            strides=[size] * rank,
        )
        self.shape = self.shape[0], *[n // size for n in self.axes]

    def mean(self) -> None:
        """The mean of each channel."""
        self._add("GlobalAveragePool", f"mean{len(self.nodes)}", [])
        self.shape = self.shape[0], *[1] * len(self.axes)

    def dense(self, count: int) -> None:
        """A linear layer of all values."""
        if len(self.shape) > 1:
            self._add("Flatten", f"flat{len(self.nodes)}", [])
        self._weighted("Gemm", (count, prod(self.shape)), transB=1)
        self.shape = (count,)

    def model(self) -> onnx.ModelProto:
        """The model, with a free number N of samples."""
        graph = helper.make_graph(
            self.nodes,
            "learning",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *self.given])],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, ["N", *self.shape])],
            self.weights,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        onnx.checker.check_model(made, full_check=True)
        return made

    def _weighted(self, kind: str, shape: tuple[int, ...], **attributes: Any) -> None:
        """A node with weights of He's variance, and a bias of zeros."""
        name = f"{kind.lower()}{len(self.nodes)}"
        scale = np.sqrt(2 / np.prod(shape[1:]))
        self._weight(f"{name}.weight", self.random.standard_normal(shape) * scale)
        self._weight(f"{name}.bias", np.zeros(shape[0]))
        self._add(kind, name, [f"{name}.weight", f"{name}.bias"], **attributes)

    def _weight(self, name: str, values: Array) -> None:
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))

    def _add(self, kind: str, name: str, reads: Sequence[str], **attributes: Any) -> None:
        self.nodes.append(helper.make_node(kind, [self.last, *reads], [name], name, **attributes))
        self.last = name


def for_digits(shape: tuple[int, ...], classes: int, seed: int) -> onnx.ModelProto:
    """Two normalised convolutions and a linear layer."""
    made = Network(shape, seed)
    made.convolution(16, 3)
    made.normalised()
    made.relu()
    made.convolution(32, 3, stride=2)
    made.normalised()
    made.relu()
    made.dense(classes)
    return made.model()


def lenet(shape: tuple[int, ...], classes: int, seed: int) -> onnx.ModelProto:
    """LeNet-5 with relu and maxima. Source: LeCun and others, 1998."""
    made = Network(shape, seed)
    made.convolution(6, 5)
    made.relu()
    made.pool(2)
    made.convolution(16, 5, pad=False)
    made.relu()
    made.pool(2)
    made.dense(120)
    made.relu()
    made.dense(84)
    made.relu()
    made.dense(classes)
    return made.model()


def fully_convolutional(shape: tuple[int, ...], classes: int, seed: int) -> onnx.ModelProto:
    """Three normalised convolutions along time and their means, a quarter as wide as published.

    Source: Wang, Yan and Oates, Time Series Classification from Scratch, 2017.
    """
    made = Network(shape, seed)
    for channels, kernel in ((32, 8), (64, 5), (32, 3)):
        made.convolution(channels, kernel)
        made.normalised()
        made.relu()
    made.mean()
    made.dense(classes)
    return made.model()


def for_strain(shape: tuple[int, ...], classes: int, seed: int) -> onnx.ModelProto:
    """Four convolutions along time and two linear layers.

    Source: George and Huerta, Deep Neural Networks to Enable Real-time Multimessenger Astrophysics,
    2017; narrower.
    """
    made = Network(shape, seed)
    for channels, kernel, dilation in ((16, 16, 1), (16, 8, 2), (32, 8, 2), (32, 8, 2)):
        made.convolution(channels, kernel, dilation=dilation, pad=False)
        made.pool(2)
        made.relu()
    made.dense(32)
    made.relu()
    made.dense(classes)
    return made.model()
