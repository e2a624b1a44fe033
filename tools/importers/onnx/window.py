"""The attributes of ONNX windows: strides, dilations, pads, and automatic pads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialects import nn
from .node import Node

MOST_PADDING = 1 << 24
"""The most padding of an average, which counts the elements under each position, padding
included."""


@dataclass(frozen=True)
class Window:
    """A window's parameters, one entry per spatial axis."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


_MOST_SHOWN = 16
"""The most sizes of a window in a message. A damaged attribute may have any number."""


def window_attributes(node: Node, size: Sequence[int]) -> Window:
    """The window of a node whose operand 0 is [N, C, ...], with computed pads."""
    rank, image = len(size), node.shape(0)[2:]
    if len(image) != rank or not rank:
        window = list(size) if rank <= _MOST_SHOWN else f"of {rank} axes"
        raise node.bad(f"window {window} on an image of shape {list(node.shape(0))}")
    stride = node.integers("strides", [1] * rank)
    dilation = node.integers("dilations", [1] * rank)
    for what, values in (("window", size), ("strides", stride), ("dilations", dilation)):
        if len(values) != rank or any(v < 1 for v in values):
            raise node.bad(f"{what} {list(values)}; need {rank} entries of 1 or more")
    mode = node.text("auto_pad", "NOTSET")
    if mode == "NOTSET":
        low, high = explicit_pads(node, rank)
    elif mode == "VALID":
        low, high = [0] * rank, [0] * rank
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        total = [
            max(0, (-(-n // s) - 1) * s + nn.window_reach(k, d) - n)
            for n, s, d, k in zip(image, stride, dilation, size, strict=True)
        ]
        low, high = same_pads(total, upper=mode == "SAME_UPPER")
    else:
        raise node.bad(f"auto_pad {mode!r}; need one of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    if max(map(abs, (*low, *high))) > MOST_PADDING:
        raise node.unsupported(f"padding of {[*low, *high]}", "at most 2^24 on each side is")
    return Window(tuple(size), tuple(stride), tuple(dilation), tuple(low), tuple(high))


def explicit_pads(node: Node, rank: int) -> tuple[list[int], list[int]]:
    """The attribute pads: first those at the beginning of each axis, then those at the end."""
    pads = node.integers("pads", [0] * (2 * rank))
    if len(pads) != 2 * rank:
        raise node.bad(f"pads {pads}; need {2 * rank}, two per spatial axis")
    return pads[:rank], pads[rank:]


def same_pads(total: Sequence[int], *, upper: bool) -> tuple[list[int], list[int]]:
    """Padding split between both ends.

    Args:
        upper: whether the odd element goes to the end.
    """
    small, large = [n // 2 for n in total], [n - n // 2 for n in total]
    return (small, large) if upper else (large, small)
