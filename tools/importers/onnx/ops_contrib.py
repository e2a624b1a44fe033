"""Operators that onnxruntime defines in the domain com.microsoft. Its optimizers write them into
models.

Their definitions are in ContribOperators.md of onnxruntime. A node with an attribute that its
importer does not read is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..building import Value
from ..padding import mark
from . import attention
from .node import Importer, Node, Results
from .ops_contraction import conv, gemm
from .ops_elementwise import gelu
from .ops_grouped import GROUPED
from .ops_normalise import divided_by_size, normalised
from .ops_packed import PACKED
from .ops_quantised import CONTRIBUTED_QUANTISED
from .ops_quantised_recurrent import QUANTISED_RECURRENT

SKIP_EPSILON = 1e-12
"""The default of epsilon in normalisations after a sum, and in embeddings."""

EXCLUDED = -10000.0
"""The default of mask_filter_value, the number added to the score of a key that is not attended."""


# Functions of elements


def _scaled(node: Node, value: SSAValue, factor: float) -> SSAValue:
    return value if factor == 1.0 else node.add(nn.ScaleOp(value, factor))


def _quick_gelu(node: Node) -> Results:
    curve = node.add(nn.SigmoidOp(_scaled(node, node[0], node.number("alpha", 1.702))))
    return node.add(nn.MulOp(node[0], curve))


def _gelu_of_sum(kind: str) -> Importer:
    """The Gelu of the operand plus a bias, if there is one.

    Args:
        kind: as for gelu.
    """

    def importer(node: Node) -> Results:
        value = node.add(nn.AddOp(node[0], node[1])) if node.has(1) else node[0]
        return gelu(node, value, kind)

    return importer


Activation = Callable[[Node, SSAValue, list[float]], SSAValue]


def _plain(make: Callable[[SSAValue], nn.PureTensorOp]) -> Activation:
    return lambda node, value, _: node.add(make(value))


def _hard_sigmoid(node: Node, value: SSAValue, numbers: list[float]) -> SSAValue:
    alpha, beta = numbers
    line = node.add(nn.ShiftOp(node.add(nn.ScaleOp(value, alpha)), beta))
    return node.add(nn.ClipOp(line, 0.0, 1.0))


ACTIVATIONS: dict[str, tuple[Activation, list[float]]] = {
    "": (lambda _, value, __: value, []),
    "Relu": (_plain(nn.ReluOp), []),
    "Tanh": (_plain(nn.TanhOp), []),
    "Sigmoid": (_plain(nn.SigmoidOp), []),
    "LeakyRelu": (lambda node, x, n: node.add(nn.LeakyReluOp(x, n[0])), [0.01]),
    "Clip": (lambda node, x, n: node.add(nn.ClipOp(x, n[0], n[1])), [-np.inf, np.inf]),
    "HardSigmoid": (_hard_sigmoid, [0.2, 0.5]),
}
"""The activations that fused operators apply to their result, with the defaults of parameters."""


def _activated(node: Node, value: SSAValue, name: str, given: list[float]) -> SSAValue:
    """The activation of a value.

    Args:
        given: its parameters, all of them or none.
    """
    if name not in ACTIVATIONS:
        known = ", ".join(filter(None, ACTIVATIONS))
        raise node.unsupported(f"activation {name}", f"{known} are")
    function, defaults = ACTIVATIONS[name]
    if given and len(given) != len(defaults):
        raise node.bad(f"{len(given)} parameters of activation {name}; need {len(defaults)}")
    return function(node, value, given or defaults)


# Products


def _fused_matmul(node: Node) -> Results:
    alpha = node.number("alpha", 1.0)
    sides: list[SSAValue] = []
    for index, side in enumerate("AB"):
        value = node[index]
        rank = len(nn.shape_of(value))
        if node.flag(f"transBatch{side}"):
            if rank < 3:
                raise node.bad(f"transBatch{side} of {list(nn.shape_of(value))}; need three axes")
            order = (*range(1, rank - 1), 0, rank - 1)
            value = node.add(nn.TransposeOp(value, order))
        sides.append(value)
    flips = [
        node.flag(f"trans{side}") and len(nn.shape_of(value)) > 1
        for side, value in zip("AB", sides, strict=True)
    ]
    ranks = [len(nn.shape_of(value)) for value in sides]
    if min(ranks) == 0:
        raise node.bad("a number without axes; need one axis or more")
    left = node.reshape(sides[0], (1, *nn.shape_of(sides[0]))) if ranks[0] == 1 else sides[0]
    right = node.reshape(sides[1], (*nn.shape_of(sides[1]), 1)) if ranks[1] == 1 else sides[1]
    made = node.add(nn.MatMulOp(left, right, transpose_lhs=flips[0], transpose_rhs=flips[1]))
    *batch, rows, columns = nn.shape_of(made)
    shape = [*batch, *([rows] if ranks[0] > 1 else []), *([columns] if ranks[1] > 1 else [])]
    return node.reshape(_scaled(node, made, alpha), shape)


def _fused_conv(node: Node) -> Results:
    """A convolution, plus an image of the same shape, then an activation."""
    value = conv(node)
    if node.has(3):
        value = node.add(nn.AddOp(value, node[3]))
    return _activated(node, value, node.text("activation", ""), node.numbers("activation_params"))


def _fused_gemm(node: Node) -> Results:
    name = node.text("activation", "")
    given = [
        node.number(f"activation_{each}")
        for each in ("alpha", "beta", "gamma")
        if node.has_attribute(f"activation_{each}")
    ]
    return _activated(node, gemm(node), name, given)


# Normalisation


def _skip_norm(node: Node) -> Results:
    """The layer normalisation of a sum, and the sum."""
    total = _sum_of(node, 4)
    scale, shift = node[2], node[3] if node.has(3) else None
    return _layer_norm(node, total, scale, shift, [total])


def _layer_norm(
    node: Node, value: SSAValue, scale: SSAValue, shift: SSAValue | None, more: list[Value | str]
) -> list[Value | str]:
    """A normalised value, its mean and its inverse deviation, and further results."""
    epsilon, last = node.number("epsilon", SKIP_EPSILON), [len(nn.shape_of(value)) - 1]
    even, average, inverse = normalised(node, value, last, epsilon)
    result = node.add(nn.MulOp(even, node.wide(scale)))
    if shift is not None:
        result = node.add(nn.AddOp(result, node.wide(shift)))
    return [node.cast(result, nn.element_of(value)), average, inverse, *more]


def _skip_rms_norm(node: Node) -> Results:
    """The sum divided by the root of its mean square, and the sum."""
    total = _sum_of(node, 3)
    epsilon, last = node.number("epsilon", SKIP_EPSILON), [len(nn.shape_of(total)) - 1]
    even, inverse = divided_by_size(node, total, last, epsilon)
    result = node.add(nn.MulOp(even, node.wide(node[2])))
    absent = "SkipSimplifiedLayerNormalization has no mean"
    return [node.cast(result, nn.element_of(total)), absent, inverse, total]


def _sum_of(node: Node, bias: int) -> SSAValue:
    """The first two operands and the bias, added.

    Args:
        bias: its index.
    """
    total = node.add(nn.AddOp(node[0], node[1]))
    return node.add(nn.AddOp(total, node[bias])) if node.has(bias) else total


def rms_norm(node: Node) -> Results:
    """Onnxruntime's SimplifiedLayerNormalization, which it defines in the domain ai.onnx."""
    value = node[0]
    rank = len(nn.shape_of(value))
    first = node.axis(node.integer("axis", -1), rank)
    axes = list(range(first, rank))
    _ = node.integer("stash_type", 1)
    even, inverse = divided_by_size(node, value, axes, node.number("epsilon", 1e-5))
    result = node.add(nn.MulOp(even, node.wide(node[1])))
    return [node.cast(result, nn.element_of(node[1])), inverse]


def _embed_norm(node: Node) -> Results:
    """The layer normalisation of the sum of a word's, a position's and a segment's embedding."""
    shape, table = node.shape(0), node.shape(3)
    if len(shape) != 2 or len(table) != 2 or shape[1] > table[0]:
        raise node.bad(
            f"ids of {list(shape)} and positions of {list(table)}; need two axes, and a position "
            "for each word"
        )
    if node.has(1) != node.has(4):
        raise node.bad("one of segment_ids and segment_embedding; need both or none")
    total = node.add(nn.GatherOp(node[2], node[0], 0))
    if node.has(8):
        position = node.add(nn.GatherOp(node[3], node[8], 0))
    else:
        position = node[3]
        if shape[1] != table[0]:
            position = node.add(nn.SliceOp(position, [0, 0], [1, 1], [shape[1], table[1]]))
    total = node.add(nn.AddOp(total, position))
    if node.has(1):
        total = node.add(nn.AddOp(total, node.add(nn.GatherOp(node[4], node[1], 0))))
    _ = node.integer("mask_index_type", 1)
    lengths: Value = node.filled(np.zeros((), np.int32), shape[:1])
    if node.has(7):
        present = node.add(nn.EqualOp(node[7], node.constant(1, node[7])))
        lengths = node.add(nn.ReduceOp(node.cast(present, i32), "sum", [1]))
    norm, *_ = _layer_norm(node, total, node[5], node[6], [])
    return [norm, lengths, total]


# Attention


def _number_of_heads(node: Node) -> int:
    heads = node.integer("num_heads")
    if heads < 1:
        raise node.bad(f"num_heads {heads}; need 1 or more")
    return heads


def _refuse(node: Node, operand: int, what: str) -> None:
    if node.has(operand):
        raise node.unsupported(f"operand {operand} ({what})", "leave it out")


def _refuse_flag(node: Node, name: str) -> None:
    if node.flag(name):
        raise node.unsupported(f"{name} {node.integer(name)}", "0 is")


def _slices(node: Node, value: SSAValue, sizes: list[int]) -> list[SSAValue]:
    """The parts of a value along its last axis."""
    shape, start = nn.shape_of(value), 0
    parts: list[SSAValue] = []
    for size in sizes:
        starts = [0] * (len(shape) - 1) + [start]
        extent = [*shape[:-1], size]
        parts.append(node.add(nn.SliceOp(value, starts, [1] * len(shape), extent)))
        start += size
    return parts


def _contrib_attention(node: Node) -> Results:
    """Self-attention of a sequence and its past, with one product for all projections."""
    for operand, what in ((6, "past_sequence_length"),):
        _refuse(node, operand, what)
    for name in ("do_rotary", "past_present_share_buffer", "rotary_embedding_dim"):
        _refuse_flag(node, name)
    heads, weights = _number_of_heads(node), node.shape(1)
    sizes = node.integers("qkv_hidden_sizes", [weights[-1] // 3] * 3)
    if len(sizes) != 3 or sum(sizes) != weights[-1] or len(node.shape(0)) != 3:
        raise node.bad(
            f"input of {list(node.shape(0))}, weights of {list(weights)} for parts of {sizes}; "
            "need batch, tokens and size, and the sum of the parts"
        )
    made = node.add(nn.MatMulOp(node[0], node[1]))
    made = node.add(nn.AddOp(made, node[2])) if node.has(2) else made
    query, key, value = (
        attention.split_heads(node, each, heads) for each in _slices(node, made, sizes)
    )
    old, present = 0, "the node has no past"
    if node.has(4):
        shape = node.shape(4)
        if len(shape) != 5 or shape[0] != 2:
            raise node.bad(f"past of {list(shape)}; need [2, batch, heads, tokens, size]")
        old = shape[3]
        past_key, past_value = (
            node.reshape(
                node.add(nn.SliceOp(node[4], [i, 0, 0, 0, 0], [1] * 5, [1, *shape[1:]])), shape[1:]
            )
            for i in range(2)
        )
        key = node.add(nn.ConcatOp([past_key, key], 2)) if old else key
        value = node.add(nn.ConcatOp([past_value, value], 2)) if old else value
    if node.wants(1):
        stacked = [node.reshape(each, (1, *nn.shape_of(each))) for each in (key, value)]
        present = node.add(nn.ConcatOp(stacked, 0))
    return [_attended(node, query, key, value, old, padding=3, bias=5), present]


def _multi_head_attention(node: Node) -> Results:
    for operand, what in ((8, "past_sequence_length"), (9, "cache_indirection")):
        _refuse(node, operand, what)
    heads = _number_of_heads(node)
    query, key, value = _packed(node, heads)
    old = 0
    if node.has(6) != node.has(7):
        raise node.bad("one of past_key and past_value; need both or none")
    if node.has(6):
        old = node.shape(6)[2]
        key = node.add(nn.ConcatOp([node[6], key], 2)) if old else key
        value = node.add(nn.ConcatOp([node[7], value], 2)) if old else value
    output = _attended(node, query, key, value, old, padding=4, bias=5)
    return [output, key, value, "the scores of MultiHeadAttention are not supported"]


def _packed(node: Node, heads: int) -> list[SSAValue]:
    """Queries, keys and values, [batch, heads, tokens, size] each, from one to three operands."""
    given = [i for i in range(3) if node.has(i)]
    shapes = [node.shape(i) for i in given]
    biases: list[SSAValue | None] = [None] * 3
    if given == [0] and len(shapes[0]) == 5 and shapes[0][2:4] == (heads, 3):
        parts = _unpacked(node, node[0], 3)
    elif given == [0, 1] and len(shapes[1]) == 5 and shapes[1][2:4] == (heads, 2):
        parts = [attention.split_heads(node, node[0], heads), *_unpacked(node, node[1], 2)]
    elif given == [0, 1, 2]:
        parts = [
            node[i]
            if len(node.shape(i)) == 4 and i
            else attention.split_heads(node, node[i], heads)
            for i in given
        ]
        if node.has(3) and len(shapes[1]) == 4:
            raise node.unsupported("a bias for keys of four axes", "keys of three axes are")
    else:
        raise node.bad(
            f"operands of {', '.join(str(list(s)) for s in shapes)}; need a query, key and value, "
            f"or several of them in one operand of five axes, of {heads} heads"
        )
    if node.has(3):
        widths = [heads * nn.shape_of(part)[3] for part in parts]
        if node.shape(3) != (sum(widths),):
            raise node.bad(f"bias of {list(node.shape(3))}; need [{sum(widths)}]")
        biases = [*_slices(node, node[3], widths)]
    return [
        part
        if bias is None
        else node.add(nn.AddOp(part, node.reshape(bias, (heads, 1, nn.shape_of(part)[3]))))
        for part, bias in zip(parts, biases, strict=True)
    ]


def _unpacked(node: Node, value: SSAValue, count: int) -> list[SSAValue]:
    """[batch, tokens, heads, count, size] as count tensors of [batch, heads, tokens, size]."""
    batch, tokens, heads, _, size = nn.shape_of(value)
    moved = node.add(nn.TransposeOp(value, (3, 0, 2, 1, 4)))
    whole = (batch, heads, tokens, size)
    return [
        node.reshape(
            node.add(nn.SliceOp(moved, [i, 0, 0, 0, 0], [1] * 5, [1, *whole])),
            whole,
        )
        for i in range(count)
    ]


def _attended(
    node: Node,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    old: int,
    *,
    padding: int,
    bias: int,
) -> SSAValue:
    """The output of attention.

    Args:
        old: the number of past keys.
        padding, bias: the operands of masks.
    """
    element, queries, size = nn.element_of(query), *nn.shape_of(query)[2:]
    keys = nn.shape_of(key)[2]
    excluded = node.number("mask_filter_value", EXCLUDED)
    masks: list[attention.Mask] = []
    if node.flag("unidirectional"):
        allowed = attention.within(
            attention.distances(node, queries, keys),
            old,
            causal=True,
            left=attention.BOTH_SIDES,
            right=attention.BOTH_SIDES,
        )
        lowest = float(np.finfo(np.float32).min) if numpy_dtype(element).itemsize > 2 else excluded
        masks += attention.known_mask(allowed, element, lowest)
    if node.has(padding):
        present = _present_keys(node, padding, nn.shape_of(query), keys)
        masks.append(attention.added(node, present, element, excluded))
    if node.has(bias):
        masks.append(node[bias])
    scale = node.number("scale", 0.0) or 1.0 / sqrt(size)
    # Finite masks exclude no query from all keys.
    found = attention.attend(node, query, key, value, masks, scale=scale, finite=True)
    return attention.join_heads(node, found.output)


def _present_keys(node: Node, operand: int, query: tuple[int, ...], keys: int) -> SSAValue:
    """Whether each key may be attended, to be broadcast to [batch, heads, queries, keys]."""
    mask, shape = node[operand], node.shape(operand)
    batch, queries = query[0], query[2]
    if shape == (batch,):
        return attention.shorter_than(node, keys, mask)
    if shape == (2 * batch,):
        ends, starts = (node.add(nn.SliceOp(mask, [first], [1], [batch])) for first in (0, batch))
        before = attention.shorter_than(node, keys, starts)
        return node.add(
            nn.LogicalAndOp(
                attention.shorter_than(node, keys, ends), node.add(nn.LogicalNotOp(before))
            )
        )
    wholes: dict[tuple[int, ...], tuple[int, ...]] = {
        (batch, keys): (batch, 1, 1, keys),
        (1, keys): (1, 1, 1, keys),
        (batch, queries, keys): (batch, 1, queries, keys),
    }
    if shape not in wholes:
        raise node.unsupported(
            f"a mask of {list(shape)}",
            f"[{batch}], [{2 * batch}], {[batch, keys]} and {[batch, queries, keys]} are",
        )
    positive = node.add(nn.GreaterOp(mask, node.constant(0, mask)))
    return node.reshape(positive if nn.element_of(mask) != i1 else mask, wholes[shape])


# Rotation


def _rotary(node: Node) -> Results:
    _refuse_flag(node, "is_packed_batching")
    is_interleaved, scale = node.flag("interleaved"), node.number("scale", 1.0)
    heads, part = node.integer("num_heads", 0), node.integer("rotary_embedding_dim", 0)
    half = node.shape(2)[-1]
    value, shape = node[0], node.shape(0)
    if len(shape) == 3:
        heads = heads or shape[2] // (2 * half)
        value = attention.split_heads(node, value, heads)
    elif len(shape) != 4:
        raise node.bad(f"input of {list(shape)}; need three or four axes")
    batch, _, tokens, size = nn.shape_of(value)
    if not (0 < 2 * half <= size and part in (0, 2 * half)):
        raise node.bad(f"a cache of {half} angles for {part or size} elements of {size}")
    tables = [_angles(node, operand, batch, tokens) for operand in (2, 3)]
    whole = attention.rotated(node, value, tables[0], tables[1], is_interleaved=is_interleaved)
    whole = _scaled(node, whole, scale)
    return attention.join_heads(node, whole) if len(shape) == 3 else whole


def _angles(node: Node, operand: int, batch: int, tokens: int) -> SSAValue:
    """The rows of a table of sines or cosines for each token: [batch or 1, 1, tokens, half]."""
    positions, half = node[1], node.shape(operand)[-1]
    if nn.shape_of(positions) == (1,):
        steps = node.counted(tokens, numpy_dtype(nn.element_of(positions)))
        positions = node.add(nn.AddOp(positions, node.emitted(steps)))
        count = node.sizes(0).get(len(node.shape(0)) - 2)
        if count is not None:
            # The angles of padding are those of position 0: a table of angles has an end.
            positions = mark(node, positions, {0: count})
    elif nn.shape_of(positions) != (batch, tokens):
        raise node.bad(f"position_ids of {list(node.shape(1))}; need [1] or {[batch, tokens]}")
    rows = node.add(nn.GatherOp(node[operand], positions, 0))
    front = 1 if len(nn.shape_of(positions)) == 1 else batch
    return node.reshape(rows, (front, 1, tokens, half))


CONTRIBUTED: dict[str, Importer] = {
    "Attention": _contrib_attention,
    "BiasGelu": _gelu_of_sum("none"),
    "EmbedLayerNormalization": _embed_norm,
    "FastGelu": _gelu_of_sum("tanh"),
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "Gelu": _gelu_of_sum("none"),
    "MultiHeadAttention": _multi_head_attention,
    "QuickGelu": _quick_gelu,
    "RotaryEmbedding": _rotary,
    "SkipLayerNormalization": _skip_norm,
    "SkipSimplifiedLayerNormalization": _skip_rms_norm,
    "TransposeMatMul": _fused_matmul,
    **CONTRIBUTED_QUANTISED,
    **QUANTISED_RECURRENT,
    **PACKED,
    **GROUPED,
}
"""The importers of the domain com.microsoft, by operator."""
