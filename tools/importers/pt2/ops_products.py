"""ATen operators that are sums of products: matrices, convolutions and attention."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value
from ..onnx import attention
from ..onnx.attention import Mask
from .aten_node import AtenNode, Importer, Results


def _added(node: AtenNode, value: SSAValue, bias: Value | None) -> SSAValue:
    return value if bias is None else node.add(nn.AddOp(value, node.ssa(bias)))


def _linear(node: AtenNode) -> Results:
    """A product with the transposed weights, along the last axis, plus a bias."""
    value, weight, bias = node["input"], node["weight"], node.operand("bias")
    rank = len(nn.shape_of(value))
    if len(nn.shape_of(weight)) == 1:
        return _added(node, node.apply("MatMul", value, weight), bias)
    if rank == 2:
        return node.apply("Gemm", value, weight, bias, transB=1)
    flat = node.reshape(value, (1, *nn.shape_of(value))) if rank == 1 else value
    found = node.add(nn.MatMulOp(flat, weight, transpose_rhs=True))
    return _added(
        node, node.reshape(found, (*nn.shape_of(value)[:-1], nn.shape_of(weight)[0])), bias
    )


def _matmul(node: AtenNode) -> Results:
    first, second = ("self", "mat2") if node.has("mat2") else ("self", "other")
    if node.has("vec"):
        second = "vec"
    return node.apply("MatMul", *_alike(node, first, second))


def _alike(node: AtenNode, *names: str) -> list[SSAValue]:
    return [node[name] for name in names]


def _dot(node: AtenNode) -> Results:
    return node.apply("MatMul", node["self"], node["tensor"])


def _addmm(node: AtenNode) -> Results:
    """Beta * self + alpha * mat1 @ mat2."""
    return node.apply(
        "Gemm",
        node["mat1"],
        node["mat2"],
        node["self"],
        alpha=node.number("alpha", 1.0),
        beta=node.number("beta", 1.0),
    )


def _scaled(node: AtenNode, value: SSAValue, name: str) -> SSAValue:
    return node.scaled(value, node.number(name, 1.0))


def _baddbmm(node: AtenNode) -> Results:
    found = _scaled(node, node.apply("MatMul", node["batch1"], node["batch2"]), "alpha")
    return node.add(nn.AddOp(_scaled(node, node["self"], "beta"), found))


def _addmv(node: AtenNode) -> Results:
    found = _scaled(node, node.apply("MatMul", node["mat"], node["vec"]), "alpha")
    return node.add(nn.AddOp(_scaled(node, node["self"], "beta"), found))


def _outer(node: AtenNode) -> Results:
    first, second = node["self"], node["vec2"]
    (rows,), (columns,) = nn.shape_of(first), nn.shape_of(second)
    return node.add(nn.MulOp(node.reshape(first, (rows, 1)), node.reshape(second, (1, columns))))


def _einsum(node: AtenNode) -> Results:
    return node.apply("Einsum", *node.several("tensors"), equation=node.text("equation"))


# Convolutions


def _batched(node: AtenNode, name: str, rank: int) -> tuple[SSAValue, bool]:
    """An image with an axis for samples, and whether it was added."""
    value = node[name]
    if len(nn.shape_of(value)) != rank + 1:
        return value, False
    return node.reshape(value, (1, *nn.shape_of(value))), True


def _without_batch(node: AtenNode, value: SSAValue, *, added: bool) -> SSAValue:
    return node.reshape(value, nn.shape_of(value)[1:]) if added else value


def _pads(
    node: AtenNode, kernel: tuple[int, ...], dilation: list[int], stride: list[int]
) -> list[int]:
    """The padding before each axis, then after it. It is a number, or the word same or valid."""
    rank = len(kernel)
    given = node.get("padding", 0)
    if not isinstance(given, str):
        both = node.spatial("padding", rank, 0)
        return both * 2
    if given not in ("same", "valid"):
        raise node.bad(f"padding {given!r}; need same, valid or numbers")
    if given == "valid":
        return [0] * (2 * rank)
    if any(n != 1 for n in stride):
        raise node.bad(f"padding 'same' with strides {stride}; need strides of 1")
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return [n // 2 for n in total] + [n - n // 2 for n in total]


def _convolution(node: AtenNode) -> Results:
    kernel = node.shape("weight")[2:]
    rank = len(kernel)
    if rank < 1:
        raise node.bad(f"weights of shape {list(node.shape('weight'))}; need three axes or more")
    if node.flag("transposed", False):
        return _transposed(node)
    value, added = _batched(node, "input", rank)
    stride, dilation = node.spatial("stride", rank, 1), node.spatial("dilation", rank, 1)
    found = node.apply(
        "Conv",
        value,
        node["weight"],
        node.operand("bias"),
        kernel_shape=list(kernel),
        strides=stride,
        dilations=dilation,
        pads=_pads(node, kernel, dilation, stride),
        group=node.integer("groups", 1),
    )
    return _without_batch(node, found, added=added)


def _transposed(node: AtenNode) -> Results:
    kernel = node.shape("weight")[2:]
    rank = len(kernel)
    value, added = _batched(node, "input", rank)
    found = node.apply(
        "ConvTranspose",
        value,
        node["weight"],
        node.operand("bias"),
        kernel_shape=list(kernel),
        strides=node.spatial("stride", rank, 1),
        dilations=node.spatial("dilation", rank, 1),
        pads=node.spatial("padding", rank, 0) * 2,
        output_padding=node.spatial("output_padding", rank, 0),
        group=node.integer("groups", 1),
    )
    return _without_batch(node, found, added=added)


# Attention


def _attention(node: AtenNode) -> Results:
    """Scaled dot-product attention of [..., tokens, size], with one axis of heads before it."""
    query, key, value = (node[name] for name in ("query", "key", "value"))
    shape, keys = nn.shape_of(query), nn.shape_of(key)[-2]
    if len(shape) < 2 or not shape[-1]:
        raise node.bad(f"queries of {list(shape)}; need tokens and size")
    if node.number("dropout_p", 0.0) and node.graph.training:
        raise node.unsupported("dropout of attention in training", "need dropout_p=0")
    front, tokens = shape[:-2], shape[-2]
    masks: list[Mask] = []
    given, causal = node.operand("attn_mask"), node.flag("is_causal", False)
    if given is not None:
        masks.append(_mask(node, given, query, front))
    if causal:
        allowed = attention.within(
            attention.distances(node, tokens, keys), 0, causal=True, left=-1, right=-1
        )
        masks += attention.known_mask(allowed, nn.element_of(query))
    found = attention.attend(
        node,
        _four_axes(node, query),
        _four_axes(node, key),
        _four_axes(node, value),
        masks,
        scale=node.number("scale", 1.0 / sqrt(shape[-1])),
        finite=_is_finite(node, given),
    )
    return node.reshape(found.output, (*front, tokens, nn.shape_of(value)[-1]))


def _four_axes(node: AtenNode, value: SSAValue) -> SSAValue:
    """[..., tokens, size] as [batch, heads, tokens, size]."""
    shape = nn.shape_of(value)
    if len(shape) == 4:
        return value
    front = shape[:-2]
    heads = front[-1] if front else 1
    batch = int(np.prod(front[:-1])) if front else 1
    return node.reshape(value, (batch, heads, *shape[-2:]))


def _mask(node: AtenNode, given: Value, query: SSAValue, front: tuple[int, ...]) -> SSAValue:
    """A mask as numbers to add to the scores, of at most four axes."""
    mask, element = node.ssa(given), nn.element_of(query)
    if nn.element_of(mask) == i1:
        mask = attention.added(node, mask, element)
    mask = node.cast(mask, element)
    shape = nn.shape_of(mask)
    if len(shape) > 4 or (len(front) != 2 and len(shape) > 2):
        mask = _four_axes(node, node.expanded(mask, (*front, *shape[-2:])))
    return mask


def _is_finite(node: AtenNode, mask: Value | None) -> bool:
    """Whether a known mask leaves every query a key."""
    if mask is None:
        return False
    array = node.graph.known(mask)
    if array is None:
        return False
    numbers = array if array.dtype == np.bool_ else np.asarray(array, np.float64) > -inf
    return bool(numbers.any(-1).all())


def _fused_attention(node: AtenNode) -> Results:
    found: Any = _attention(node)
    return [found, *[None] * (len(node.call.results) - 1)]


def _cosine_similarity(node: AtenNode) -> Results:
    """The product of two vectors along an axis, divided by their sizes."""
    left, right = node["x1"], node["x2"]
    rank = max(len(nn.shape_of(left)), len(nn.shape_of(right)))
    axes = node.integers_known([node.along(node.integer("dim", 1), rank)])
    least = node.number("eps", 1e-8)
    product = node.apply("ReduceSum", node.add(nn.MulOp(left, right)), axes, keepdims=0)
    sizes = [
        node.add(nn.ClipOp(node.apply("ReduceL2", each, axes, keepdims=0), least, inf))
        for each in (left, right)
    ]
    return node.add(nn.DivOp(product, node.add(nn.MulOp(*sizes))))


PRODUCTS: dict[str, Importer] = {
    "linear": _linear,
    "matmul": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "mv": _matmul,
    "dot": _dot,
    "vdot": lambda node: node.apply("MatMul", node["self"], node["other"]),
    "addmm": _addmm,
    "baddbmm": _baddbmm,
    "addmv": _addmv,
    "outer": _outer,
    "einsum": _einsum,
    **dict.fromkeys(("convolution", "_convolution", "conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed),
    "scaled_dot_product_attention": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _fused_attention,
    "_scaled_dot_product_flash_attention": _fused_attention,
    "_scaled_dot_product_efficient_attention": _fused_attention,
    "_scaled_dot_product_attention_math": _fused_attention,
    "cosine_similarity": _cosine_similarity,
}
"""The importers of products, convolutions and attention."""
