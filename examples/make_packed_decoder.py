"""Writes a decoder like Llama with weights of 4 bits, in the form of onnxruntime-genai.

    python examples/make_packed_decoder.py FILE.onnx
    python examples/make_packed_decoder.py FILE.onnx --billion

The small one has seeded weights. `--billion` has the sizes of a decoder of 1.2 billion weights:
16 layers, 2,048 channels, 32 heads, 8 heads of keys, 128,256 words. Its weights are zeros in
a file beside the model, which takes no room on disk.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32
"""Terms that share a scale."""

MASK, PAST = "total_sequence_length", "past_sequence_length"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a decoder.

    Attributes:
        heads: of queries.
        groups: heads of keys and values.
        longest: positions that it knows.
        bits: the width of weights in products, 4 or 8; 0 for floats.
        element: the element type of floats.
    """

    layers: int = 2
    width: int = 64
    heads: int = 4
    groups: int = 2
    hidden: int = 96
    words: int = 97
    longest: int = 128
    bits: int = 4
    element: int = TensorProto.FLOAT

    @property
    def head(self) -> int:
        """Channels of one head."""
        return self.width // self.heads


BILLION = Sizes(16, 2048, 32, 8, 8192, 128256, 4096, element=TensorProto.FLOAT16)
"""The sizes of Llama 3.2 1B."""


@dataclass
class Graph:
    """The nodes, weights, inputs and outputs of a graph.

    Attributes:
        random: draws weights; None for zeros in another file, of `size` bytes so far.
        file: the name of that file.
    """

    sizes: Sizes
    random: np.random.Generator | None
    file: str = ""
    size: int = 0
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])

    def __call__(
        self, operator: str, *inputs: str, name: str, domain: str = "", **more: Any
    ) -> str:
        """Add a node of one result, and return the result's name."""
        made = f"{name}/output_0"
        self.nodes.append(
            helper.make_node(operator, inputs, [made], name=name, domain=domain, **more)
        )
        return made

    def several(self, operator: str, inputs: Sequence[str], results: Sequence[str], name: str,
                **more: Any) -> None:  # fmt: skip
        """Add a node of onnxruntime with several results."""
        self.nodes.append(
            helper.make_node(operator, inputs, results, name=name, domain="com.microsoft", **more)
        )

    def weight(self, name: str, shape: Sequence[int], element: int, *, scale: float = 1.0) -> str:
        """Add a seeded weight, or zeros in the other file."""
        dtype = helper.tensor_dtype_to_np_dtype(element)
        if self.random is not None:
            drawn = (
                self.random.integers(0, 256, shape)
                if dtype == np.uint8
                else scale * self.random.standard_normal(shape)
            )
            self.weights.append(numpy_helper.from_array(drawn.astype(dtype), name))
            return name
        tensor = TensorProto(name=name, data_type=element, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        length = int(np.prod(shape)) * dtype.itemsize
        places = {"location": self.file, "offset": self.size, "length": length}
        for key, value in places.items():
            tensor.external_data.add(key=key, value=str(value))
        self.size += -(-length // 4096) * 4096
        self.weights.append(tensor)
        return name

    def constant(self, name: str, value: Any, dtype: Any = np.int64) -> str:
        """Add a small constant."""
        self.weights.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def dense(self, x: str, name: str, terms: int, into: int) -> str:
        """A product with a weight of few bits, with a scale for each block."""
        sizes = self.sizes
        if not sizes.bits:
            weight = self.weight(f"{name}.weight", (terms, into), sizes.element, scale=0.2)
            return self("MatMul", x, weight, name=f"/{name}/MatMul")
        blocks = -(-terms // BLOCK)
        packed = self.weight(
            f"{name}.weight_Q{sizes.bits}", (into, blocks, BLOCK * sizes.bits // 8),
            TensorProto.UINT8,
        )  # fmt: skip
        scales = self.weight(
            f"{name}.weight_scales", (into, blocks), sizes.element, scale=0.8 / 2**sizes.bits
        )
        return self(
            "MatMulNBits", x, packed, scales, name=f"/{name}/MatMul_Q{sizes.bits}",
            domain="com.microsoft", N=into, K=terms, block_size=BLOCK, bits=sizes.bits,
        )  # fmt: skip

    def io(
        self, into: list[onnx.ValueInfoProto], name: str, element: int, *shape: int | str
    ) -> str:
        """Add an input or an output."""
        into.append(helper.make_tensor_value_info(name, element, shape))
        return name


def decoder(sizes: Sizes, graph: Graph) -> onnx.ModelProto:
    """The decoder as a model."""
    element = sizes.element
    ids = graph.io(graph.inputs, "input_ids", TensorProto.INT64, "batch_size", "sequence_length")
    mask = graph.io(graph.inputs, "attention_mask", TensorProto.INT64, "batch_size", MASK)
    graph.io(graph.outputs, "logits", element, "batch_size", "sequence_length", sizes.words)
    one = graph.constant("one", [1])
    total = graph("ReduceSum", mask, one, name="/model/mask/ReduceSum", keepdims=1)
    lengths = graph("Sub", total, one, name="/model/mask/Sub")
    lengths = graph("Cast", lengths, name="/model/mask/Cast", to=TensorProto.INT32)
    shape = graph("Shape", mask, name="/model/mask/Shape")
    length = graph("Gather", shape, graph.constant("place", 1), name="/model/mask/Gather", axis=0)
    length = graph("Cast", length, name="/model/mask/Cast_1", to=TensorProto.INT32)
    rates = 10_000.0 ** (-np.arange(0, sizes.head, 2) / sizes.head)
    angles = np.arange(sizes.longest)[:, None] * rates
    dtype = helper.tensor_dtype_to_np_dtype(element)
    tables = [
        graph.constant(name, each(angles), dtype)
        for name, each in (("cos_cache", np.cos), ("sin_cache", np.sin))
    ]
    words = graph.weight("model.embed_tokens.weight", (sizes.words, sizes.width), element)
    total = graph("Gather", words, ids, name="/model/embed_tokens/Gather")
    added = ""

    def normal(name: str) -> tuple[str, str]:
        """The normalised sum so far, and the sum."""
        scale = graph.weight(f"{name}.weight", (sizes.width,), element)
        if not added:
            made = graph(
                "SimplifiedLayerNormalization", total, scale, name=f"/{name}/LayerNorm",
                axis=-1, epsilon=1e-5, stash_type=1,
            )  # fmt: skip
            return made, total
        made, both = f"/{name}/output_0", f"/{name}/output_3"
        graph.several(
            "SkipSimplifiedLayerNormalization", [total, added, scale], [made, "", "", both],
            f"/{name}/SkipLayerNorm", epsilon=1e-5,
        )  # fmt: skip
        return made, both

    for i in range(sizes.layers):
        name = f"model.layers.{i}"
        x, total = normal(f"{name}.input_layernorm")
        counts = (sizes.heads, sizes.groups, sizes.groups)
        parts = [
            graph.dense(x, f"{name}.attn.{each}_proj", sizes.width, count * sizes.head)
            for each, count in zip("qkv", counts, strict=True)
        ]
        caches: list[tuple[str, str]] = []
        for each in ("key", "value"):
            old, new = f"past_key_values.{i}.{each}", f"present.{i}.{each}"
            caches.append((old, new))
            rows = (("batch_size", sizes.groups, n, sizes.head) for n in (PAST, MASK))
            graph.io(graph.inputs, old, element, *next(rows))
            graph.io(graph.outputs, new, element, *next(rows))
        mixed = f"/{name}/attn/output_0"
        graph.several(
            "GroupQueryAttention",
            [*parts, *(old for old, _ in caches), lengths, length, *tables],
            [mixed, *(new for _, new in caches)], f"/{name}/attn/GroupQueryAttention",
            num_heads=sizes.heads, kv_num_heads=sizes.groups, do_rotary=1,
        )  # fmt: skip
        added = graph.dense(mixed, f"{name}.attn.o_proj", sizes.width, sizes.width)
        x, total = normal(f"{name}.post_attention_layernorm")
        gate = graph.dense(x, f"{name}.mlp.gate_proj", sizes.width, sizes.hidden)
        up = graph.dense(x, f"{name}.mlp.up_proj", sizes.width, sizes.hidden)
        curve = graph("Sigmoid", gate, name=f"/{name}/mlp/Sigmoid")
        gate = graph("Mul", gate, curve, name=f"/{name}/mlp/Mul")
        both = graph("Mul", gate, up, name=f"/{name}/mlp/Mul_1")
        added = graph.dense(both, f"{name}.mlp.down_proj", sizes.hidden, sizes.width)
    x, _ = normal("model.norm")
    made = graph.dense(x, "lm_head", sizes.width, sizes.words)
    graph.nodes.append(helper.make_node("Identity", [made], ["logits"], name="/logits"))
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(
        helper.make_graph(graph.nodes, "decoder", graph.inputs, graph.outputs, graph.weights),
        opset_imports=opsets,
        ir_version=10,
    )


def small(sizes: Sizes | None = None) -> onnx.ModelProto:
    """A small decoder with seeded weights."""
    sizes = sizes or Sizes()
    return decoder(sizes, Graph(sizes, np.random.default_rng(0)))


def write_billion(path: Path, sizes: Sizes = BILLION) -> None:
    """Write a decoder whose weights are zeros in a file beside it."""
    graph = Graph(sizes, None, f"{path.name}.data")
    model = decoder(sizes, graph)
    with open(path.with_name(graph.file), "wb") as stream:
        stream.truncate(graph.size)
    path.write_bytes(model.SerializeToString())


def main(arguments: Sequence[str]) -> None:
    """Write a decoder."""
    path = Path(arguments[0])
    if "--billion" in arguments[1:]:
        write_billion(path)
    else:
        onnx.save(small(), path)


if __name__ == "__main__":
    main(sys.argv[1:])
