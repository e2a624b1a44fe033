"""Writes small decoders with seeded weights as ONNX files, in the forms that exporters write.

    python examples/make_decoders.py FOLDER [NAME...]

Without names it writes all small ones. gpt2-medium has the sizes of the published model, 1.4 GB.
Each takes token ids and a cache of keys and values, and returns scores of the next token and the
cache with the new keys and values: gpt2.onnx and llama.onnx as optimum writes them, with a cache
that grows; grouped.onnx as onnxruntime-genai writes it, with GroupQueryAttention and a cache of one
size; packed.onnx the same with weights of 4 bits, two in a byte (MatMulNBits); scattered.onnx with
TensorScatter and Attention of ONNX 24.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Dim = int | str

BITS, BLOCK = 4, 32
"""The width of packed weights, and the terms that share a scale."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a decoder.

    Attributes:
        heads: of queries.
        groups: of keys and values.
        longest: the largest number of tokens of which it knows the positions, and those of a cache
            of one size.
    """

    layers: int = 2
    width: int = 64
    heads: int = 4
    groups: int = 2
    hidden: int = 128
    words: int = 97
    longest: int = 128

    @property
    def head(self) -> int:
        """Channels of one head."""
        return self.width // self.heads


@dataclass
class Graph:
    """The nodes, weights, inputs and outputs of a graph.

    Attributes:
        scope: the module that nodes come from, which begins their names.
        packs: whether weights of products have few bits.
    """

    sizes: Sizes
    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])
    scope: str = ""
    opset: int = 17
    packs: bool = False

    def __call__(
        self, operator: str, *inputs: str, name: str = "", count: int = 1, **attributes: Any
    ) -> Any:
        """Add a node, and return the name of its result, or the names of its results.

        Args:
            name: of the node and its result.
        """
        name = name or f"{operator}_{len(self.nodes)}"
        results = [name] if count == 1 else [f"{name}.{i}" for i in range(count)]
        made = helper.make_node(
            operator, inputs, results, name=f"{self.scope}/{name}", **attributes
        )
        self.nodes.append(made)
        return name if count == 1 else results

    def weight(self, name: str, *shape: int, mean: float = 0.0, scale: float = 0.2) -> str:
        """Add a seeded weight."""
        values = mean + scale * self.random.standard_normal(shape, np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a constant."""
        return self("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def take(self, name: str, element: int, *shape: Dim) -> str:
        """Add an input."""
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def give(self, name: str, *shape: Dim) -> None:
        """Add an output of floats."""
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def dense(self, x: str, name: str, size: int, into: int) -> str:
        """A product with a weight, without a bias."""
        if self.packs:
            return self.packed(x, name, size, into)
        return self("MatMul", x, self.weight(f"{name}.weight", size, into), name=f"{name}.MatMul")

    def packed(self, x: str, name: str, size: int, into: int) -> str:
        """A product with a weight of few bits, and a scale for each block of terms."""
        blocks = -(-size // BLOCK)
        whole = self.random.integers(0, 256, (into, blocks, BLOCK * BITS // 8), np.uint8)
        self.weights.append(numpy_helper.from_array(whole, f"{name}.weight_Q{BITS}"))
        # As wide on the whole as the floats of `weight`.
        scales = self.weight(f"{name}.scales", into, blocks, mean=0.04, scale=0.01)
        return self(
            "MatMulNBits", x, f"{name}.weight_Q{BITS}", scales, name=f"{name}.MatMulNBits",
            domain="com.microsoft", N=into, K=size, block_size=BLOCK, bits=BITS,
        )  # fmt: skip

    def biased(self, x: str, name: str, size: int, into: int) -> str:
        """A product with a weight, and a bias."""
        return self("Add", self.dense(x, name, size, into), self.weight(f"{name}.bias", into))

    def size(self, value: str, axis: int) -> str:
        """The number of elements along an axis, without axes."""
        return self("Gather", self("Shape", value), self.constant(axis), axis=0)

    def split(self, x: str, heads: int) -> str:
        """[batch, tokens, channels] as [batch, heads, tokens, channels of a head]."""
        x = self("Reshape", x, self.constant([0, 0, heads, self.sizes.head]))
        return self("Transpose", x, perm=[0, 2, 1, 3])

    def join(self, x: str) -> str:
        """[batch, heads, tokens, channels of a head] as [batch, tokens, channels]."""
        x = self("Transpose", x, perm=[0, 2, 1, 3])
        return self("Reshape", x, self.constant([0, 0, self.sizes.width]))

    def attend(self, query: str, key: str, value: str, mask: str) -> str:
        """Attention of heads over keys and values of as many heads."""
        turned = self("Transpose", key, perm=[0, 1, 3, 2])
        scale = self.constant(self.sizes.head**-0.5, np.float32)
        scores = self("Mul", self("MatMul", query, turned), scale)
        weights = self("Softmax", self("Add", scores, mask), axis=-1)
        return self.join(self("MatMul", weights, value))

    def model(self, name: str) -> onnx.ModelProto:
        """The finished model."""
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=opsets, ir_version=10)
        )


PAST, NEW = "past_sequence_length", "sequence_length"
TOTAL = f"{PAST} + {NEW}"


def _growing_mask(graph: Graph, ids: str, key: str) -> str:
    """What is added to scores: 0 for tokens up to the own one that the mask of the caller allows,
    the lowest float for others."""
    new, past = graph.size(ids, 1), graph.size(key, 2)
    total, zero, one = graph("Add", past, new), graph.constant(0), graph.constant(1)
    rows = graph("Unsqueeze", graph("Range", past, total, one), graph.constant([1]))
    columns = graph("Unsqueeze", graph("Range", zero, total, one), graph.constant([0]))
    causal = graph("LessOrEqual", columns, rows)
    given = graph("Cast", "attention_mask", to=TensorProto.BOOL)
    given = graph("Unsqueeze", given, graph.constant([1, 2]))
    allowed = graph("And", given, causal)
    lowest = graph.constant(np.finfo(np.float32).min, np.float32)
    return graph("Where", allowed, graph.constant(0, np.float32), lowest)


def _growing(sizes: Sizes, groups: int) -> tuple[Graph, str, list[tuple[str, str]]]:
    """A graph with the inputs that optimum writes, the ids, and the caches of each layer."""
    graph = Graph(sizes, np.random.default_rng(0))
    ids = graph.take("input_ids", TensorProto.INT64, "batch_size", NEW)
    graph.take("attention_mask", TensorProto.INT64, "batch_size", TOTAL)
    graph.take("position_ids", TensorProto.INT64, "batch_size", NEW)
    graph.give("logits", "batch_size", NEW, sizes.words)
    caches: list[tuple[str, str]] = []
    for i in range(sizes.layers):
        shape = ("batch_size", groups, PAST, sizes.head)
        names = [f"past_key_values.{i}.{each}" for each in ("key", "value")]
        caches.append((names[0], names[1]))
        for each in ("key", "value"):
            graph.take(f"past_key_values.{i}.{each}", TensorProto.FLOAT, *shape)
            graph.give(f"present.{i}.{each}", "batch_size", groups, TOTAL, sizes.head)
    return graph, ids, caches


def _extended(graph: Graph, i: int, past: tuple[str, str], new: tuple[str, str]) -> list[str]:
    """The cache of a layer with new keys and values."""
    return [
        graph("Concat", *each, name=f"present.{i}.{what}", axis=2)
        for what, each in zip(("key", "value"), zip(past, new, strict=True), strict=True)
    ]


def gpt2(sizes: Sizes) -> onnx.ModelProto:
    """A decoder like GPT-2: learned positions, layer normalisation, GELU, biases, tied weights."""
    graph, ids, caches = _growing(sizes, sizes.heads)
    words = graph.weight("wte.weight", sizes.words, sizes.width)
    places = graph.weight("wpe.weight", sizes.longest, sizes.width, scale=0.5)
    x = graph("Gather", words, ids)
    x = graph("Add", x, graph("Gather", places, "position_ids"))
    mask = _growing_mask(graph, ids, caches[0][0])

    def normal(x: str, name: str) -> str:
        scale = graph.weight(f"{name}.weight", sizes.width, mean=1.0)
        bias = graph.weight(f"{name}.bias", sizes.width)
        return graph("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    for i, past in enumerate(caches):
        graph.scope = f"/transformer/h.{i}"
        y = graph.biased(
            normal(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn", sizes.width, 3 * sizes.width
        )
        parts = graph("Split", y, graph.constant([sizes.width] * 3), axis=-1, count=3)
        query, key, value = (graph.split(each, sizes.heads) for each in parts)
        key, value = _extended(graph, i, past, (key, value))
        mixed = graph.attend(query, key, value, mask)
        x = graph("Add", x, graph.biased(mixed, f"h.{i}.attn.c_proj", sizes.width, sizes.width))
        y = graph.biased(normal(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc", sizes.width, sizes.hidden)
        # GELU by tanh.
        cube = graph("Mul", y, graph("Mul", y, y))
        inner = graph("Add", y, graph("Mul", cube, graph.constant(0.044715, np.float32)))
        inner = graph("Mul", inner, graph.constant((2 / np.pi) ** 0.5, np.float32))
        moved = graph("Add", graph("Tanh", inner), graph.constant(1, np.float32))
        y = graph("Mul", graph("Mul", y, graph.constant(0.5, np.float32)), moved)
        x = graph("Add", x, graph.biased(y, f"h.{i}.mlp.c_proj", sizes.hidden, sizes.width))
    graph.scope = ""
    turned = graph("Transpose", words, perm=[1, 0])
    graph("MatMul", normal(x, "ln_f"), turned, name="logits")
    return graph.model("gpt2")


def _rms(graph: Graph, x: str, name: str) -> str:
    """A division by the root of the mean square."""
    if graph.opset >= 23:
        scale = graph.weight(f"{name}.weight", graph.sizes.width, mean=1.0)
        return graph("RMSNormalization", x, scale, axis=-1, epsilon=1e-6)
    mean = graph("ReduceMean", graph("Pow", x, graph.constant(2, np.float32)), axes=[-1])
    root = graph("Sqrt", graph("Add", mean, graph.constant(1e-6, np.float32)))
    scale = graph.weight(f"{name}.weight", graph.sizes.width, mean=1.0)
    return graph("Mul", scale, graph("Mul", x, graph("Reciprocal", root)))


def _swiglu(graph: Graph, x: str, name: str) -> str:
    """Two products, of which one is a gate, and a third one."""
    width, hidden = graph.sizes.width, graph.sizes.hidden
    gate = graph.dense(x, f"{name}.gate_proj", width, hidden)
    up = graph.dense(x, f"{name}.up_proj", width, hidden)
    gate = graph("Mul", gate, graph("Sigmoid", gate))
    return graph.dense(graph("Mul", gate, up), f"{name}.down_proj", hidden, width)


def _llama(graph: Graph, ids: str, attention: Callable[[str, int, str], str]) -> None:
    """A decoder like Llama, whose attention is given."""
    sizes = graph.sizes
    words = graph.weight("model.embed_tokens.weight", sizes.words, sizes.width, scale=1.0)
    x = graph("Gather", words, ids)
    for i in range(sizes.layers):
        name = f"model.layers.{i}"
        graph.scope = f"/model/layers.{i}"
        y = _rms(graph, x, f"{name}.input_layernorm")
        y = attention(y, i, f"{name}.self_attn")
        x = graph("Add", x, graph.dense(y, f"{name}.self_attn.o_proj", sizes.width, sizes.width))
        y = _rms(graph, x, f"{name}.post_attention_layernorm")
        x = graph("Add", x, _swiglu(graph, y, f"{name}.mlp"))
    graph.scope = ""
    x = _rms(graph, x, "model.norm")
    head = graph.weight("lm_head.weight", sizes.width, sizes.words, scale=1.0)
    graph("MatMul", x, head, name="logits")


def _parts(graph: Graph, x: str, name: str) -> list[str]:
    """Queries, keys and values of a layer, [batch, tokens, channels]."""
    sizes = graph.sizes
    counts = (sizes.heads, sizes.groups, sizes.groups)
    return [
        graph.dense(x, f"{name}.{each}_proj", sizes.width, count * sizes.head)
        for each, count in zip("qkv", counts, strict=True)
    ]


def _angles(sizes: Sizes) -> np.ndarray:
    """The angles of rotations by position, [positions, channels of a head / 2]."""
    rates = 10_000.0 ** (-np.arange(0, sizes.head, 2) / sizes.head)
    return np.arange(sizes.longest)[:, None] * rates


def llama(sizes: Sizes) -> onnx.ModelProto:
    """A decoder like Llama: rotated heads that share keys, RMS normalisation, SwiGLU."""
    graph, ids, caches = _growing(sizes, sizes.groups)
    mask = _growing_mask(graph, ids, caches[0][0])
    rates = graph.constant(_angles(sizes)[1][None, :, None], np.float32)
    places = graph("Unsqueeze", "position_ids", graph.constant([1]))
    angles = graph("MatMul", rates, graph("Cast", places, to=TensorProto.FLOAT))
    angles = graph("Transpose", angles, perm=[0, 2, 1])
    angles = graph("Concat", angles, angles, axis=-1)
    cosine, sine = (
        graph("Unsqueeze", graph(each, angles), graph.constant([1])) for each in ("Cos", "Sin")
    )
    half, end = graph.constant([sizes.head // 2]), graph.constant([2**63 - 1])
    zero, last = graph.constant([0]), graph.constant([3])

    def rotated(x: str) -> str:
        first = graph("Slice", x, zero, half, last)
        second = graph("Slice", x, half, end, last)
        turned = graph("Concat", graph("Neg", second), first, axis=-1)
        return graph("Add", graph("Mul", x, cosine), graph("Mul", turned, sine))

    def repeated(x: str) -> str:
        """Keys or values, once for each head that shares them."""
        batch, total = (graph("Unsqueeze", graph.size(x, axis), zero) for axis in (0, 2))
        groups, head = graph.constant([sizes.groups]), graph.constant([sizes.head])
        times = graph.constant([sizes.heads // sizes.groups])
        shape = graph("Concat", batch, groups, times, total, head, axis=0)
        x = graph("Expand", graph("Unsqueeze", x, graph.constant([2])), shape)
        heads = graph.constant([sizes.heads])
        return graph("Reshape", x, graph("Concat", batch, heads, total, head, axis=0))

    def attention(x: str, i: int, name: str) -> str:
        query, key, value = _parts(graph, x, name)
        query = rotated(graph.split(query, sizes.heads))
        key = rotated(graph.split(key, sizes.groups))
        value = graph.split(value, sizes.groups)
        key, value = _extended(graph, i, caches[i], (key, value))
        return graph.attend(query, repeated(key), repeated(value), mask)

    _llama(graph, ids, attention)
    return graph.model("llama")


def _fixed(sizes: Sizes, *, names: tuple[str, str]) -> tuple[Graph, str]:
    """A graph whose cache has one size, and the ids."""
    graph = Graph(sizes, np.random.default_rng(0))
    ids = graph.take("input_ids", TensorProto.INT64, "batch_size", NEW)
    graph.give("logits", "batch_size", NEW, sizes.words)
    shape = ("batch_size", sizes.groups, "max_length", sizes.head)
    for i in range(sizes.layers):
        for each in ("key", "value"):
            graph.take(names[0].format(i, each), TensorProto.FLOAT, *shape)
            graph.give(names[1].format(i, each), *shape)
    return graph, ids


def grouped(sizes: Sizes, *, packs: bool = False) -> onnx.ModelProto:
    """The decoder of `llama`, with GroupQueryAttention, which writes into a cache of one size.

    Args:
        packs: whether weights of its layers have 4 bits.
    """
    graph, ids = _fixed(sizes, names=("past_key_values.{}.{}", "present.{}.{}"))
    graph.packs = packs
    graph.take("attention_mask", TensorProto.INT64, "batch_size", "max_length")
    total = graph("ReduceSum", "attention_mask", graph.constant([1]), keepdims=1)
    lengths = graph("Cast", graph("Sub", total, graph.constant([1])), to=TensorProto.INT32)
    size = graph("Cast", graph.size("attention_mask", 1), to=TensorProto.INT32)
    angles = _angles(sizes).astype(np.float32)
    tables = [graph.constant(each(angles), np.float32) for each in (np.cos, np.sin)]

    def attention(x: str, i: int, name: str) -> str:
        past = [f"past_key_values.{i}.{each}" for each in ("key", "value")]
        results = [f"{name}.attention", *(f"present.{i}.{each}" for each in ("key", "value"))]
        made = helper.make_node(
            "GroupQueryAttention",
            [*_parts(graph, x, name), *past, lengths, size, *tables],
            results,
            name=f"/{name}/GroupQueryAttention",
            domain="com.microsoft",
            num_heads=sizes.heads,
            kv_num_heads=sizes.groups,
            do_rotary=1,
        )
        graph.nodes.append(made)
        return results[0]

    _llama(graph, ids, attention)
    return graph.model("grouped")


def scattered(sizes: Sizes) -> onnx.ModelProto:
    """The decoder of `llama`, with TensorScatter and Attention of ONNX 24."""
    graph, ids = _fixed(sizes, names=("past_key_{}.{}", "present_key_{}.{}"))
    graph.opset = 24
    index = graph.take("write_indices", TensorProto.INT64, "batch_size")
    exist = graph.take("nonpad_kv_seqlen", TensorProto.INT64, "batch_size")
    angles = _angles(sizes).astype(np.float32)
    tables = [graph.constant(each(angles), np.float32) for each in (np.cos, np.sin)]
    places = graph("Unsqueeze", index, graph.constant([1]))
    steps = graph("Range", graph.constant(0), graph.size(ids, 1), graph.constant(1))
    places = graph("Add", places, steps)

    def attention(x: str, i: int, name: str) -> str:
        query, key, value = _parts(graph, x, name)
        query, key = (
            graph("RotaryEmbedding", each, *tables, places, num_heads=count)
            for each, count in ((query, sizes.heads), (key, sizes.groups))
        )
        query = graph.split(query, sizes.heads)
        caches = [
            graph(
                "TensorScatter",
                f"past_key_{i}.{what}",
                graph.split(new, sizes.groups),
                index,
                name=f"present_key_{i}.{what}",
                axis=2,
            )
            for what, new in (("key", key), ("value", value))
        ]
        mixed = graph("Attention", query, *caches, "", "", "", exist)
        return graph.join(mixed)

    _llama(graph, ids, attention)
    return graph.model("scattered")


MODELS: dict[str, Callable[[Sizes], onnx.ModelProto]] = {
    "gpt2": gpt2,
    "llama": llama,
    "grouped": grouped,
    "packed": partial(grouped, packs=True),
    "scattered": scattered,
}


PUBLISHED: dict[str, Callable[[], onnx.ModelProto]] = {
    "gpt2-medium": lambda: gpt2(Sizes(24, 1024, 16, 16, 4096, 50257, 1024)),
}
"""Models of published sizes."""


def main(arguments: Sequence[str]) -> None:
    """Write models into a folder."""
    folder, *names = arguments
    Path(folder).mkdir(exist_ok=True)
    for name in names or MODELS:
        model = PUBLISHED[name]() if name in PUBLISHED else MODELS[name](Sizes())
        onnx.save(model, Path(folder, f"{name}.onnx"))


if __name__ == "__main__":
    main(sys.argv[1:])
