"""Scaled dot-product attention, from heads and masks to operations of nn.

A query attends the keys that no mask excludes. Masks are numbers added to the scores: 0 for an
attended key, minus infinity for an excluded key. A query without any attended key has the result 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..building import NodeBuilder
from .tensors import Array

BOTH_SIDES = -1
"""The size of a window that is unbounded on a side."""


Mask = SSAValue | Array
"""Numbers to add to the scores: a value, or an array if they are known at import."""


@dataclass(frozen=True)
class Attended:
    """The tensors that attention computes for each head: [batch, heads, queries, ...].

    Attributes:
        output: weighted values.
        raw: scores.
        capped: after the soft cap.
        masked: with the masks.
        weights: probabilities, 0 for a query without keys.
    """

    output: SSAValue
    raw: SSAValue
    capped: SSAValue
    masked: SSAValue
    weights: SSAValue


def split_heads(node: NodeBuilder, value: SSAValue, heads: int) -> SSAValue:
    """[batch, tokens, heads * size] as [batch, heads, tokens, size].

    Raises InputError if the heads do not divide the last axis.
    """
    shape = nn.shape_of(value)
    if len(shape) != 3 or heads < 1 or shape[2] % heads:
        raise node.bad(
            f"{heads} heads of a tensor of {list(shape)}; they must divide its last axis"
        )
    batch, tokens, width = shape
    apart = node.reshape(value, (batch, tokens, heads, width // heads))
    return node.add(nn.TransposeOp(apart, (0, 2, 1, 3)))


def join_heads(node: NodeBuilder, value: SSAValue) -> SSAValue:
    """[batch, heads, tokens, size] as [batch, tokens, heads * size]."""
    batch, heads, tokens, size = nn.shape_of(value)
    together = node.add(nn.TransposeOp(value, (0, 2, 1, 3)))
    return node.reshape(together, (batch, tokens, heads * size))


def attend(
    node: NodeBuilder,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    masks: Sequence[Mask] = (),
    *,
    scale: float,
    cap: float = 0.0,
    precision: Attribute | None = None,
    finite: bool = False,
) -> Attended:
    """Attention of [B, H, Q, D] over keys [B, K, S, D] and values [B, K, S, E].

    Each head of keys serves H / K heads of queries. Raises InputError for shapes that contradict
    each other.

    Args:
        masks: they broadcast to [B, H, Q, S].
        cap: scores become cap * tanh(score / cap); 0 for no cap.
        precision: the element type of the softmax.
        finite: whether masks are finite, so that every query attends some key.
    """
    batch, heads, queries, size = nn.shape_of(query)
    _check(node, nn.shape_of(query), nn.shape_of(key), nn.shape_of(value))
    few, keys = nn.shape_of(key)[1:3]
    share = heads // few
    query = node.add(nn.ScaleOp(query, scale))
    if share > 1:
        # The heads that share keys become an axis of their own, so that keys need not be repeated.
        query = node.reshape(query, (batch, few, share, queries, size))
        key, value = (
            node.reshape(each, (batch, few, 1, *nn.shape_of(each)[2:])) for each in (key, value)
        )
    raw = node.add(nn.MatMulOp(query, key, transpose_rhs=True))
    capped = raw
    if cap:
        curve = node.add(nn.TanhOp(node.add(nn.ScaleOp(raw, 1.0 / cap))))
        capped = node.add(nn.ScaleOp(curve, cap))
    masked, may_be_alone = capped, False
    total = _total(node, masks)
    if total is not None:
        _check_mask(node, total, (batch, heads, queries, keys))
        may_be_alone = not finite and _may_exclude_all(masks)
        masked = node.add(nn.AddOp(capped, _shared(node, total, share, few)))
    element = nn.element_of(query)
    scores = masked if precision is None else node.cast(masked, precision)
    softmax = _softmax_or_zero if may_be_alone else _softmax
    weights = node.cast(softmax(node, scores), element)
    output = node.add(nn.MatMulOp(weights, value))
    whole = [
        node.reshape(each, (batch, heads, queries, nn.shape_of(each)[-1]))
        for each in (output, raw, capped, masked, weights)
    ]
    return Attended(*whole)


def _check(
    node: NodeBuilder, query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...]
) -> None:
    same = key[0] == query[0] == value[0] and key[3] == query[3] and value[1:3] == key[1:3]
    if not same or key[1] == 0 or query[1] % key[1]:
        raise node.bad(
            f"queries of {list(query)}, keys of {list(key)}, values of {list(value)}, as batch, "
            "heads, tokens and size; need one batch, and heads of keys that divide those of queries"
        )


def _total(node: NodeBuilder, masks: Sequence[Mask]) -> SSAValue | None:
    total = None
    for mask in masks:
        value = node.emitted(mask) if isinstance(mask, np.ndarray) else mask
        total = value if total is None else node.add(nn.AddOp(total, value))
    return total


def _may_exclude_all(masks: Sequence[Mask]) -> bool:
    """Whether a query may be left without any key, as far as is known at import."""
    known = [mask for mask in masks if isinstance(mask, np.ndarray)]
    if len(known) < len(masks):
        return True
    total = reduce(np.add, (mask.astype(np.float64) for mask in known))
    return bool(np.isneginf(total).all(-1).any())


def _check_mask(node: NodeBuilder, mask: SSAValue, scores: tuple[int, ...]) -> None:
    shape = nn.shape_of(mask)
    aligned = (1,) * (4 - len(shape)) + shape
    if len(shape) > 4 or any(n not in (1, m) for n, m in zip(aligned, scores, strict=False)):
        raise node.bad(f"a mask of {list(shape)} for scores of {list(scores)}; it must broadcast")


def _shared(node: NodeBuilder, mask: SSAValue, share: int, few: int) -> SSAValue:
    """A mask for scores whose heads are two axes: the heads of keys, and the heads that share
    them."""
    shape = nn.shape_of(mask)
    if share == 1 or len(shape) < 3:
        return mask
    *front, heads, queries, keys = shape
    apart = (1, 1) if heads == 1 else (few, share)
    return node.reshape(mask, (*front, *apart, queries, keys))


def _softmax(node: NodeBuilder, scores: SSAValue) -> SSAValue:
    return node.add(nn.SoftmaxOp(scores, len(nn.shape_of(scores)) - 1))


def _softmax_or_zero(node: NodeBuilder, scores: SSAValue) -> SSAValue:
    """The softmax along the last axis, and 0 where all scores are minus infinity.

    The largest score of a row is subtracted, so exponentials of any other row add up to 1 or more.
    """
    element, value = nn.element_of(scores), node.wide(scores)
    axis = [len(nn.shape_of(value)) - 1]
    most = float(np.finfo(numpy_dtype(nn.element_of(value))).max)
    largest = node.add(nn.ReduceOp(value, "max", axis, keep_dims=True))
    finite = node.add(nn.ClipOp(largest, -most, most))
    powers = node.add(nn.ExpOp(node.add(nn.SubOp(value, finite))))
    total = node.add(nn.ReduceOp(powers, "sum", axis, keep_dims=True))
    divisor = node.add(nn.ClipOp(total, 1.0, np.inf))
    return node.cast(node.add(nn.DivOp(powers, divisor)), element)


# Masks


def added(
    node: NodeBuilder, allowed: SSAValue, element: Attribute, excluded: float = -np.inf
) -> SSAValue:
    """A truth value per key as a mask: 0 where it is true, and `excluded` elsewhere."""
    dtype = numpy_dtype(element)
    zero, other = (node.emitted(np.array(number, dtype)) for number in (0.0, excluded))
    return node.add(nn.SelectOp(allowed, zero, other))


def known_mask(allowed: Array, element: Attribute, excluded: float = -np.inf) -> list[Array]:
    """A truth value per key, known at import, as a mask; [] if every key is allowed."""
    dtype = numpy_dtype(element)
    numbers = np.array([excluded, 0], dtype)
    return [] if allowed.all() else [numbers[allowed.astype(np.int64)]]


def distances(node: NodeBuilder, queries: int, keys: int) -> Array:
    """The distance from each query to each key, positive for later keys: [queries, keys]."""
    node.check_table(queries, keys)
    return np.arange(keys)[None, :] - np.arange(queries)[:, None]


def within(distance: Array, offset: int, *, causal: bool, left: int, right: int) -> Array:
    """Whether a query attends a key.

    Args:
        distance: as `distances` returns it.
        offset: the number of keys before the first query.
        causal: whether later keys are excluded.
        left, right: the number of attended keys before and after the query; BOTH_SIDES for all.
    """
    allowed = np.ones(distance.shape, np.bool_)
    for most in ([0] if causal else []) + ([right] if right != BOTH_SIDES else []):
        allowed &= distance <= offset + most
    if left != BOTH_SIDES:
        allowed &= distance >= offset - left
    return allowed


def within_offsets(
    node: NodeBuilder, distance: Array, offset: SSAValue, *, causal: bool, left: int, right: int
) -> list[SSAValue]:
    """Like `within`, for offsets of each batch that depend on inputs: [batch]. Returns
    conditions."""
    dtype = numpy_dtype(nn.element_of(offset))
    apart = node.emitted(distance.astype(dtype))
    first = node.reshape(offset, (prod(nn.shape_of(offset)), 1, 1, 1))

    def moved(by: int) -> SSAValue:
        return node.add(nn.AddOp(first, node.constant(by, first))) if by else first

    most = ([0] if causal else []) + ([right] if right != BOTH_SIDES else [])
    conditions = [node.add(nn.LessEqualOp(apart, moved(by))) for by in most]
    if left != BOTH_SIDES:
        conditions.append(node.add(nn.GreaterEqualOp(apart, moved(-left))))
    return conditions


def shorter_than(node: NodeBuilder, keys: int, lengths: SSAValue) -> SSAValue:
    """Whether each key is among the first keys of its batch: [batch, 1, 1, keys].

    Args:
        lengths: the number of keys of each batch, [batch] of integers.
    """
    dtype = numpy_dtype(nn.element_of(lengths))
    place = node.emitted(node.counted(keys, dtype))
    return node.add(nn.LessOp(place, node.reshape(lengths, (prod(nn.shape_of(lengths)), 1, 1, 1))))


def rotated(
    node: NodeBuilder, value: SSAValue, cosine: SSAValue, sine: SSAValue, *, is_interleaved: bool
) -> SSAValue:
    """Pairs of elements of the last axis as complex numbers, each turned by an angle.

    Args:
        value: [..., size].
        cosine, sine: [..., half]; they broadcast. Elements after 2 * half stay unchanged.
        is_interleaved: whether the elements of a pair are neighbours, instead of `half` apart.
    """
    shape, half = nn.shape_of(value), nn.shape_of(cosine)[-1]
    front, rank = list(shape[:-1]), len(shape)
    step = 2 if is_interleaved else 1

    def part(start: int, step: int, size: int) -> SSAValue:
        return node.add(
            nn.SliceOp(value, [0] * (rank - 1) + [start], [1] * (rank - 1) + [step], [*front, size])
        )

    first, second = part(0, step, half), part(1 if is_interleaved else half, step, half)

    def product(a: SSAValue, b: SSAValue) -> SSAValue:
        return node.add(nn.MulOp(a, b))

    real = node.add(nn.SubOp(product(first, cosine), product(second, sine)))
    imaginary = node.add(nn.AddOp(product(first, sine), product(second, cosine)))
    if is_interleaved:
        pairs = [node.reshape(each, (*front, half, 1)) for each in (real, imaginary)]
        turned = node.reshape(node.add(nn.ConcatOp(pairs, rank)), (*front, 2 * half))
        parts = [turned]
    else:
        parts = [real, imaginary]
    if 2 * half < shape[-1]:
        parts.append(part(2 * half, 1, shape[-1] - 2 * half))
    return parts[0] if len(parts) == 1 else node.add(nn.ConcatOp(parts, rank - 1))
