"""A stage of an encoder such as BERT: attentions and feed-forwards in turns, for packed sequences.

The graph is as exporters write it. Its weights are zeros, because only its price counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
EPSILON = 1e-5


@dataclass(frozen=True)
class Stage:
    """A stage of an encoder.

    Attributes:
        attentions, feed_forwards: that the stage has; their numbers differ by at most 1.
        batch: packs of sequences.
        tokens: of a pack.
    """

    attentions: int
    feed_forwards: int
    batch: int
    tokens: int
    width: int
    heads: int
    hidden: int

    @property
    def kinds(self) -> str:
        """A for an attention and f for a feed-forward, in their order."""
        first, second = ("a", "f") if self.attentions >= self.feed_forwards else ("f", "a")
        return ((first + second) * max(self.attentions, self.feed_forwards))[
            : self.attentions + self.feed_forwards
        ]


def stage_of_encoder(stage: Stage) -> onnx.ModelProto:
    """The model of a stage.

    Inputs: x, [batch, tokens, width], and mask, [batch, 1, tokens, tokens], which is added to
    scores. Output: hidden, like x. A weight is added to x, so that training also computes the
    gradient that goes on to the stage before.
    """
    graph = _Graph(stage)
    x = graph.node("Add", "begin", "x", graph.weight("begin.weight", stage.tokens, stage.width))
    for number, kind in enumerate(stage.kinds):
        part = graph.attention if kind == "a" else graph.feed_forward
        x = part(x, f"{kind}{number}")
    graph.node("Identity", "hidden", x)
    inside = [stage.batch, stage.tokens, stage.width]
    mask = [stage.batch, 1, stage.tokens, stage.tokens]
    made = helper.make_graph(
        graph.nodes,
        "stage",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, inside),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, mask),
        ],
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, inside)],
        graph.weights,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


@dataclass
class _Graph:
    """Nodes and weights of a graph under construction. A node has the name of its result."""

    stage: Stage
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])

    def node(self, operator: str, name: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def weight(self, name: str, *shape: int) -> str:
        self.weights.append(numpy_helper.from_array(np.zeros(shape, np.float32), name))
        return name

    def constant(self, name: str, value: object) -> str:
        tensor = numpy_helper.from_array(np.array(value), name)
        return self.node("Constant", name, value=tensor)

    def dense(self, x: str, name: str, size: int, into: int) -> str:
        product = self.node("MatMul", f"{name}.dot", x, self.weight(f"{name}.weight", size, into))
        return self.node("Add", name, product, self.weight(f"{name}.bias", into))

    def joined(self, x: str, out: str, name: str) -> str:
        """The sum of what went in and came out, normalised."""
        width = self.stage.width
        total = self.node("Add", f"{name}.sum", x, out)
        more = self.weight(f"{name}.norm.weight", width), self.weight(f"{name}.norm.bias", width)
        return self.node("LayerNormalization", name, total, *more, axis=-1, epsilon=EPSILON)

    def heads(self, x: str, name: str, order: list[int]) -> str:
        """[batch, tokens, width] as heads, in an order of [batch, token, head, channel]."""
        s = self.stage
        sizes = self.constant(f"{name}.sizes", [s.batch, s.tokens, s.heads, s.width // s.heads])
        split = self.node("Reshape", f"{name}.split", x, sizes)
        return self.node("Transpose", name, split, perm=order)

    def attention(self, x: str, name: str) -> str:
        s = self.stage
        q, k, v = (self.dense(x, f"{name}.{each}", s.width, s.width) for each in "qkv")
        query = self.heads(q, f"{name}.query", [0, 2, 1, 3])
        key = self.heads(k, f"{name}.key", [0, 2, 3, 1])
        value = self.heads(v, f"{name}.value", [0, 2, 1, 3])
        dots = self.node("MatMul", f"{name}.dots", query, key)
        scale = self.constant(f"{name}.scale", np.float32((s.width // s.heads) ** -0.5))
        scores = self.node("Mul", f"{name}.scores", dots, scale)
        masked = self.node("Add", f"{name}.masked", scores, "mask")
        shares = self.node("Softmax", f"{name}.weights", masked, axis=-1)
        mixed = self.node("MatMul", f"{name}.mixed", shares, value)
        turned = self.node("Transpose", f"{name}.turned", mixed, perm=[0, 2, 1, 3])
        sizes = self.constant(f"{name}.width", [s.batch, s.tokens, s.width])
        flat = self.node("Reshape", f"{name}.flat", turned, sizes)
        return self.joined(x, self.dense(flat, f"{name}.out", s.width, s.width), name)

    def feed_forward(self, x: str, name: str) -> str:
        s = self.stage
        up = self.dense(x, f"{name}.up", s.width, s.hidden)
        root = self.constant(f"{name}.root", np.float32(2.0**0.5))
        erf = self.node("Erf", f"{name}.erf", self.node("Div", f"{name}.scaled", up, root))
        moved = self.node("Add", f"{name}.moved", erf, self.constant(f"{name}.one", np.float32(1)))
        product = self.node("Mul", f"{name}.product", up, moved)
        half = self.constant(f"{name}.half", np.float32(0.5))
        gelu = self.node("Mul", f"{name}.gelu", product, half)
        return self.joined(x, self.dense(gelu, f"{name}.down", s.hidden, s.width), name)
