"""ONNX graphs of transformers, as exporters write them, with seeded weights.

Weights are normal with deviation 0.02, as BERT and GPT-2 begin their training. The scales and
shifts of normalisations vary too, so that swapped channels are seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ....ir.support.arrays import Array

OPSET = 17
EPSILON = 1e-5


@dataclass(frozen=True)
class Shape:
    """The sizes of a transformer.

    Attributes:
        tokens: of a sequence or a cache.
        words: of the vocabulary.
    """

    layers: int
    width: int
    heads: int
    hidden: int
    words: int
    tokens: int

    @property
    def head_width(self) -> int:
        """Channels of one head."""
        return self.width // self.heads


BERT_BASE = Shape(layers=12, width=768, heads=12, hidden=3072, words=30_522, tokens=128)
"""Source: Devlin et al., 2018, the model BASE."""

GPT2_SMALL = Shape(layers=12, width=768, heads=12, hidden=3072, words=50_257, tokens=128)
"""Source: Radford et al., 2019, the smallest model. The published one has a context of 1,024."""

GPT2_MEDIUM = Shape(layers=24, width=1024, heads=16, hidden=4096, words=50_257, tokens=128)
"""Source: as GPT2_SMALL, the next larger model."""


@dataclass
class _Graph:
    """Nodes and weights of a graph under construction."""

    dtype: np.dtype[Any]
    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])

    def node(self, operator: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """Add a node with one result, which has its name."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def weight(self, name: str, *shape: int, mean: float = 0.0) -> str:
        """Add a seeded weight."""
        values = mean + 0.02 * self.random.standard_normal(shape, np.float32)
        self.weights.append(numpy_helper.from_array(values.astype(self.dtype), name))
        return name

    def constant(self, name: str, value: Array) -> str:
        """Add a constant, which training leaves as it is."""
        tensor = numpy_helper.from_array(value, name)
        return self.node("Constant", [], name, value=tensor)

    def integers(self, name: str, *values: int) -> str:
        """Add a constant vector of integers, such as a shape."""
        return self.constant(name, np.array(values, np.int64))

    def dense(self, x: str, name: str, size: int, into: int) -> str:
        """A product with a weight, and a bias."""
        product = self.node("MatMul", [x, self.weight(f"{name}.weight", size, into)], f"{name}.dot")
        return self.node("Add", [product, self.weight(f"{name}.bias", into)], name)

    def normal(self, x: str, name: str, width: int) -> str:
        """A layer normalisation."""
        scale = self.weight(f"{name}.weight", width, mean=1.0)
        inputs = [x, scale, self.weight(f"{name}.bias", width)]
        return self.node("LayerNormalization", inputs, name, axis=-1, epsilon=EPSILON)

    def gelu(self, x: str, name: str) -> str:
        """GELU by erf, as exporters write it."""
        one, half = (self.constant(f"{name}.{v}", np.array(v, self.dtype)) for v in (1.0, 0.5))
        root = self.constant(f"{name}.root", np.array(2.0**0.5, self.dtype))
        scaled = self.node("Div", [x, root], f"{name}.scaled")
        erf = self.node("Erf", [scaled], f"{name}.erf")
        moved = self.node("Add", [erf, one], f"{name}.moved")
        product = self.node("Mul", [x, moved], f"{name}.product")
        return self.node("Mul", [product, half], name)

    def mlp(self, x: str, name: str, shape: Shape) -> str:
        """Two dense layers with GELU between them."""
        inner = self.gelu(self.dense(x, f"{name}.up", shape.width, shape.hidden), f"{name}.gelu")
        return self.dense(inner, f"{name}.down", shape.hidden, shape.width)

    def heads(self, x: str, name: str, shape: Shape, tokens: int, order: list[int]) -> str:
        """A matrix [tokens, width] as heads, in an order of [token, head, channel]."""
        sizes = self.integers(f"{name}.sizes", tokens, shape.heads, shape.head_width)
        split = self.node("Reshape", [x, sizes], f"{name}.split")
        return self.node("Transpose", [split], name, perm=order)

    def attend(
        self, q: str, k: str, v: str, mask: str, name: str, shape: Shape, tokens: int, past: int
    ) -> str:
        """Attention of queries [tokens, width] over keys and values [past, width].

        Args:
            mask: added to the scores, [tokens, past]; "" for none.
        """
        query = self.heads(q, f"{name}.query", shape, tokens, [1, 0, 2])
        key = self.heads(k, f"{name}.key", shape, past, [1, 2, 0])
        value = self.heads(v, f"{name}.value", shape, past, [1, 0, 2])
        scale = np.array(shape.head_width**-0.5, self.dtype)
        scores = self.node("MatMul", [query, key], f"{name}.dots")
        scores = self.node("Mul", [scores, self.constant(f"{name}.scale", scale)], f"{name}.scores")
        if mask:
            scores = self.node("Add", [scores, mask], f"{name}.masked")
        weights = self.node("Softmax", [scores], f"{name}.weights", axis=-1)
        mixed = self.node("MatMul", [weights, value], f"{name}.mixed")
        order = self.node("Transpose", [mixed], f"{name}.order", perm=[1, 0, 2])
        sizes = self.integers(f"{name}.width", tokens, shape.width)
        return self.node("Reshape", [order, sizes], f"{name}.joined")

    def model(
        self,
        name: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
    ) -> onnx.ModelProto:
        """The finished model."""
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.weights)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)

    def values(self, name: str, *shape: int) -> onnx.ValueInfoProto:
        """The declaration of a float tensor of the graph's dtype."""
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(self.dtype), shape
        )


def encoder(
    shape: Shape,
    dtype: str = "float32",
    seed: int = 0,
    *,
    longest: int = 0,
    language: bool = False,
) -> onnx.ModelProto:
    """BERT: embeddings of words and positions, then blocks with the normalisation behind.

    Input: ids, int64[tokens]. Output: hidden, [tokens, width]; of a language model, logits.

    Args:
        longest: rows of the table of positions, of which the first ones are used; by default, as
            many as there are tokens. Models that differ in their tokens alone have equal weights
            then.
        language: whether it ends with the head that says which words were masked: a dense layer,
            and logits over the vocabulary, with the weights of the embeddings of words.
    """
    graph = _Graph(np.dtype(dtype), np.random.default_rng(seed))
    table = graph.weight("words", shape.words, shape.width)
    x = graph.node("Gather", [table, "ids"], "embedded")
    places = graph.weight("positions", longest or shape.tokens, shape.width)
    if longest:
        ends = [
            graph.integers(f"places_{each}", n) for each, n in (("from", 0), ("to", shape.tokens))
        ]
        places = graph.node("Slice", [places, *ends, graph.integers("places_axis", 0)], "places")
    x = graph.node("Add", [x, places], "placed")
    x = graph.normal(x, "embedding_norm", shape.width)
    for i in range(shape.layers):
        q, k, v = (graph.dense(x, f"layer{i}.{each}", shape.width, shape.width) for each in "qkv")
        mixed = graph.attend(q, k, v, "", f"layer{i}.attend", shape, shape.tokens, shape.tokens)
        out = graph.dense(mixed, f"layer{i}.out", shape.width, shape.width)
        x = graph.normal(
            graph.node("Add", [x, out], f"layer{i}.first_sum"), f"layer{i}.first_norm", shape.width
        )
        out = graph.mlp(x, f"layer{i}", shape)
        is_last = i == shape.layers - 1 and not language
        last = "hidden" if is_last else f"layer{i}.second_norm"
        x = graph.normal(graph.node("Add", [x, out], f"layer{i}.second_sum"), last, shape.width)
    ids = helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [shape.tokens])
    if not language:
        return graph.model("encoder", [ids], [graph.values("hidden", shape.tokens, shape.width)])
    x = graph.gelu(graph.dense(x, "head", shape.width, shape.width), "head.gelu")
    x = graph.normal(x, "head_norm", shape.width)
    turned = graph.node("Transpose", [table], "words_turned", perm=[1, 0])
    product = graph.node("MatMul", [x, turned], "logits.dot")
    graph.node("Add", [product, graph.weight("logits.bias", shape.words)], "logits")
    return graph.model("encoder", [ids], [graph.values("logits", shape.tokens, shape.words)])


def decoder(
    shape: Shape, dtype: str = "float32", seed: int = 0, *, step: bool = False
) -> onnx.ModelProto:
    """GPT-2: embeddings, blocks with the normalisation in front, and logits over the vocabulary.

    Args:
        step: for one token at a time. The model then takes the position of the token, int64[1], and
            for each layer the keys and values of all positions, [tokens, width]; it returns these
            with the row of the position written. Otherwise all positions are computed at once, each
            from those before. Both have the same weights. Input: ids, int64[tokens] or int64[1].
            Output: logits.
    """
    graph = _Graph(np.dtype(dtype), np.random.default_rng(seed))
    tokens = 1 if step else shape.tokens
    table = graph.weight("words", shape.words, shape.width)
    positions = graph.weight("positions", shape.tokens, shape.width)
    x = graph.node("Gather", [table, "ids"], "embedded")
    if step:
        positions = graph.node("Gather", [positions, "position"], "own_position")
    x = graph.node("Add", [x, positions], "placed")
    mask = _mask(graph, shape, step)
    ids = helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [tokens])
    inputs, outputs = [ids], [graph.values("logits", tokens, shape.words)]
    row = ""
    if step:
        inputs.append(helper.make_tensor_value_info("position", onnx.TensorProto.INT64, [1]))
        row = graph.node("Unsqueeze", ["position", graph.integers("last", 1)], "row")
    for i in range(shape.layers):
        y = graph.normal(x, f"layer{i}.first_norm", shape.width)
        q, k, v = (graph.dense(y, f"layer{i}.{each}", shape.width, shape.width) for each in "qkv")
        if step:
            caches: list[str] = []
            for each, new in (("key", k), ("value", v)):
                past, present = f"past{i}.{each}", f"present{i}.{each}"
                caches.append(graph.node("ScatterND", [past, row, new], present))
                inputs.append(graph.values(past, shape.tokens, shape.width))
                outputs.append(graph.values(present, shape.tokens, shape.width))
            k, v = caches
        mixed = graph.attend(q, k, v, mask, f"layer{i}.attend", shape, tokens, shape.tokens)
        out = graph.dense(mixed, f"layer{i}.out", shape.width, shape.width)
        x = graph.node("Add", [x, out], f"layer{i}.first_sum")
        out = graph.mlp(graph.normal(x, f"layer{i}.second_norm", shape.width), f"layer{i}", shape)
        x = graph.node("Add", [x, out], f"layer{i}.second_sum")
    x = graph.normal(x, "last_norm", shape.width)
    turned = graph.node("Transpose", [table], "words_turned", perm=[1, 0])
    graph.node("MatMul", [x, turned], "logits")
    return graph.model("decoder", inputs, outputs)


def kept_caches(shape: Shape) -> dict[str, str]:
    """The inputs of a decoder's step that become states, with the outputs that they receive."""
    names = [f"{i}.{each}" for i in range(shape.layers) for each in ("key", "value")]
    return {f"past{name}": f"present{name}" for name in names}


def _mask(graph: _Graph, shape: Shape, step: bool) -> str:
    """The mask that is added to scores to hide later tokens: [tokens, all tokens]."""
    lowest = np.array(np.finfo(graph.dtype).min / 2, graph.dtype)
    if not step:
        later = np.triu(np.ones((shape.tokens, shape.tokens), bool), 1)
        return graph.constant("mask", np.where(later, lowest, np.zeros_like(lowest)))
    indices = graph.integers("indices", *range(shape.tokens))
    later = graph.node("Greater", [indices, "position"], "later")
    zero = graph.constant("zero", np.zeros((), graph.dtype))
    return graph.node("Where", [later, graph.constant("lowest", lowest), zero], "mask")
