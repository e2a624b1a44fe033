"""Writes ligo.onnx: a network that finds chirps in the strain of gravitational-wave detectors.

    pip install onnx numpy
    python examples/make_ligo.py

The input is whitened strain, [N, 1, 4096]: a quarter of a second at 16,384 Hz. The output is two
scores, noise and chirp. Four convolutions along time and two linear layers follow George and
Huerta, "Deep Neural Networks to Enable Real-time Multimessenger Astrophysics" (2017). The weights
are random, with a fixed seed: `abele train` trains them.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SAMPLES, CLASSES, WIDE = 4096, 2, 64

CONVOLUTIONS = (
    # Channels, kernel, dilation; each is followed by the maximum of every four samples.
    (16, 16, 1),
    (32, 8, 4),
    (64, 8, 4),
    (64, 8, 4),
)
POOL = 4


def network(samples: int = SAMPLES, seed: int = 0) -> onnx.ModelProto:
    """The network for strain of some length, with He-normal weights and a free batch size N."""
    random = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    last, channels, length = "x", 1, samples

    def add(kind: str, name: str, shape: tuple[int, ...] = (), **attributes: object) -> None:
        """A node that reads the last one.

        Args:
            shape: of its weights, if it has any.
        """
        nonlocal last
        inputs = [last]
        if shape:
            values = random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
            for what, array in (("weight", values), ("bias", np.zeros(shape[0]))):
                weights.append(numpy_helper.from_array(array.astype(np.float32), f"{name}.{what}"))
                inputs.append(f"{name}.{what}")
        nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        last = name

    for i, (wide, kernel, dilation) in enumerate(CONVOLUTIONS, 1):
        add("Conv", f"conv{i}", (wide, channels, kernel), dilations=[dilation])
        add("MaxPool", f"pool{i}", kernel_shape=[POOL], strides=[POOL])
        add("Relu", f"relu{i}")
        channels, length = wide, (length - dilation * (kernel - 1)) // POOL
    add("Flatten", "flatten")
    add("Gemm", "dense", (WIDE, channels * length), transB=1)
    add("Relu", "relu5")
    add("Gemm", "scores", (CLASSES, WIDE), transB=1)
    graph = helper.make_graph(
        nodes,
        "ligo",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, samples])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", CLASSES])],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


if __name__ == "__main__":
    onnx.save(network(), Path(__file__).with_name("ligo.onnx"))
