"""ONNX operators that are sums of products."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects import nn
from .node import Importer, Node, Results
from .packed_weights import packed_product
from .window import explicit_pads, same_pads, window_attributes


def _with_bias(node: Node, value: SSAValue) -> SSAValue:
    """A convolution's result plus one number per channel."""
    if not node.has(2):
        return value
    shape, channels = nn.shape_of(value), node.shape(2)
    if channels != shape[1:2]:
        raise node.bad(f"bias of shape {list(channels)}; need [{shape[1]}], one per channel")
    bias = node.reshape(node[2], (*channels, *([1] * (len(shape) - 2))))
    return node.add(nn.AddOp(value, bias))


def _kernel(node: Node, weights: int = 1) -> tuple[int, ...]:
    """The spatial shape of the weights.

    Args:
        weights: the index of this operand.
    """
    kernel = node.shape(weights)[2:]
    given = tuple(node.integers("kernel_shape", kernel))
    if given != kernel:
        raise node.bad(f"kernel_shape {list(given)}; the weights have {list(kernel)}")
    if len(kernel) != len(node.shape(0)) - 2 or not kernel:
        raise node.bad(
            f"image of shape {list(node.shape(0))}, weights of {list(node.shape(weights))}; need "
            "equal ranks of 3 or more"
        )
    return kernel


def convolution(
    node: Node, image: SSAValue, weight: SSAValue, weights: int = 1, *, into_i32: bool = False
) -> SSAValue:
    """The convolution that a node's attributes describe.

    Args:
        weights: the index of the weights' operand.
    """
    window = window_attributes(node, _kernel(node, weights))
    return node.add(
        nn.ConvOp(
            image,
            weight,
            stride=window.stride,
            dilation=window.dilation,
            pad_low=window.low,
            pad_high=window.high,
            groups=node.integer("group", 1),
            into_i32=into_i32,
        )
    )


def conv(node: Node) -> SSAValue:
    """A convolution, with a bias for each channel if there is an operand 2."""
    return _with_bias(node, convolution(node, node[0], node[1]))


def _conv_transpose(node: Node) -> Results:
    kernel = _kernel(node)
    rank, image = len(kernel), node.shape(0)[2:]
    stride = node.integers("strides", [1] * rank)
    dilation = node.integers("dilations", [1] * rank)
    extra = node.integers("output_padding", [0] * rank)
    for what, values in (("strides", stride), ("dilations", dilation), ("output_padding", extra)):
        if len(values) != rank:
            raise node.bad(f"{what} {values}; need {rank}, one per spatial axis")
    full = [
        s * (n - 1) + e + d * (k - 1) + 1
        for s, n, e, d, k in zip(stride, image, extra, dilation, kernel, strict=True)
    ]
    mode = node.text("auto_pad", "NOTSET")
    shape = node.integers("output_shape", [])
    if not shape and mode in ("SAME_UPPER", "SAME_LOWER"):
        # onnxruntime and the operator's text agree on this; ONNX's shape inference adds
        # output_padding again.
        # A kernel shorter than its stride gets no padding, and may reach fewer elements.
        shape = [min(f, n * s) for f, n, s in zip(full, image, stride, strict=True)]
    if shape:
        if len(shape) != rank:
            raise node.bad(f"output_shape {shape}; need {rank} sizes")
        total = [max(0, f - n) for f, n in zip(full, shape, strict=True)]
        # Unlike in a convolution, the odd element goes to the end for SAME_UPPER only.
        low, _ = same_pads(total, upper=mode == "SAME_UPPER")
    else:
        low, high = explicit_pads(node, rank) if mode == "NOTSET" else ([0] * rank, [0] * rank)
        shape = [f - lo - hi for f, lo, hi in zip(full, low, high, strict=True)]
    value = node.add(
        nn.ConvInputGradOp(
            node[0],
            node[1],
            shape,
            stride=stride,
            dilation=dilation,
            pad_low=low,
            groups=node.integer("group", 1),
        )
    )
    return _with_bias(node, value)


def gemm(node: Node) -> SSAValue:
    """A product of matrices, with factors, plus operand 2 if there is one."""
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    right, bias = node.flag("transB"), node[2] if node.has(2) else None
    packed = None
    if not node.flag("transA") and alpha == beta == 1.0:
        packed = packed_product(node, node[0], node[1], is_transposed=right)
    if packed is not None:
        return packed if bias is None else node.add(nn.AddOp(packed, bias))
    return node.add(
        nn.GemmOp(
            node[0],
            node[1],
            bias,
            alpha=alpha,
            beta=beta,
            transpose_lhs=node.flag("transA"),
            transpose_rhs=right,
        )
    )


def _matmul(node: Node) -> Results:
    packed = packed_product(node, node[0], node[1])
    if packed is not None:
        return packed
    return matrix_product(node, node[0], node[1])


def matrix_product(
    node: Node, left: SSAValue, right: SSAValue, *, into_i32: bool = False
) -> SSAValue:
    """NumPy's product: an operand with one axis is a row on the left, a column on the right."""
    lhs, rhs = nn.shape_of(left), nn.shape_of(right)
    left = node.reshape(left, (1, *lhs)) if len(lhs) == 1 else left
    right = node.reshape(right, (*rhs, 1)) if len(rhs) == 1 else right
    value = node.add(nn.MatMulOp(left, right, into_i32=into_i32))
    shape = list(nn.shape_of(value))
    if len(rhs) == 1:
        del shape[-1]
    if len(lhs) == 1:
        del shape[-1 if len(rhs) == 1 else -2]
    return node.reshape(value, shape)


CONTRACTIONS: dict[str, Importer] = {
    "Conv": conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": gemm,
    "MatMul": _matmul,
}
