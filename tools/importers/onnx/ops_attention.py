"""The ONNX operator Attention, in all its forms."""

from __future__ import annotations

from math import sqrt

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ....dialects import nn
from ..length_values import emitted_length
from ..padding import length_along
from . import attention
from .node import Importer, Node, Results

SEVERAL_HEADS = 4
"""The rank of an operand whose heads are a separate axis."""

MODES = ("raw", "capped", "masked", "weights")
"""The fields of Attended that the fourth result may be, by qk_matmul_output_mode."""


def _attention(node: Node) -> Results:
    query, key, value = _heads(node)
    size = nn.shape_of(query)[3]
    old = 0
    if node.has(4) != node.has(5):
        raise node.bad("one of past_key and past_value; need both or none")
    if node.has(4):
        if node.has(6):
            raise node.bad("nonpad_kv_seqlen and past_key; need one of them")
        old = nn.shape_of(node[4])[2]
        key = _joined(node, node[4], key)
        value = _joined(node, node[5], value)
    mode = node.integer("qk_matmul_output_mode", 0)
    if not 0 <= mode < len(MODES):
        raise node.bad(f"qk_matmul_output_mode {mode}; need 0 to {len(MODES) - 1}")
    precision = node.integer("softmax_precision", 0)
    found = attention.attend(
        node,
        query,
        key,
        value,
        _masks(node, query, key, old),
        scale=node.number("scale") if node.has_attribute("scale") else 1.0 / sqrt(size),
        cap=node.number("softcap", 0.0),
        precision=node.element(precision) if precision else None,
    )
    is_flat = len(node.shape(0)) != SEVERAL_HEADS
    output = attention.join_heads(node, found.output) if is_flat else found.output
    return [output, key, value, getattr(found, MODES[mode])]


def _joined(node: Node, past: SSAValue, new: SSAValue) -> SSAValue:
    before, after = nn.shape_of(past), nn.shape_of(new)
    if len(before) != SEVERAL_HEADS or (*before[:2], before[3]) != (*after[:2], after[3]):
        raise node.bad(f"past of {list(before)} before {list(after)}; only axis 2 may differ")
    return node.add(nn.ConcatOp([past, new], 2)) if before[2] else new


def _heads(node: Node) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Queries, keys and values, each [batch, heads, tokens, size]."""
    ranks = {len(node.shape(i)) for i in range(3)}
    if ranks == {SEVERAL_HEADS}:
        for name, index in (("q_num_heads", 0), ("kv_num_heads", 1)):
            heads = node.shape(index)[1]
            if node.integer(name, heads) != heads:
                raise node.bad(f"{name} {node.integer(name)}; operand {index} has {heads} heads")
        return node[0], node[1], node[2]
    if ranks != {SEVERAL_HEADS - 1}:
        shapes = ", ".join(str(list(node.shape(i))) for i in range(3))
        raise node.bad(f"operands of {shapes}; need three or four axes each")
    names = ("q_num_heads", "kv_num_heads", "kv_num_heads")
    query, key, value = (
        attention.split_heads(node, node[i], node.integer(name)) for i, name in enumerate(names)
    )
    return query, key, value


def _masks(node: Node, query: SSAValue, key: SSAValue, old: int) -> list[attention.Mask]:
    """All masks of a node.

    Args:
        old: the number of past keys.
    """
    keys, element, queries = nn.shape_of(key)[2], nn.element_of(key), nn.shape_of(query)[2]
    causal = node.flag("is_causal")
    left, right = (
        node.integer(f"{side}_window_size", attention.BOTH_SIDES) for side in ("left", "right")
    )
    for side, size in (("left", left), ("right", right)):
        if size < attention.BOTH_SIDES:
            raise node.bad(f"{side}_window_size {size}; need -1 or more")
    masks: list[attention.Mask] = []
    if node.has(3):
        masks.append(_given(node, keys))
    apart = attention.distances(node, queries, keys)
    if node.has(6):
        lengths = node[6]
        count = length_along(node, query, 2)
        new = (
            node.constant(count, lengths)
            if isinstance(count, int)
            else node.cast(emitted_length(node, count), nn.element_of(lengths))
        )
        offset = node.add(nn.SubOp(lengths, new))
        conditions = [
            *attention.within_offsets(node, apart, offset, causal=causal, left=left, right=right),
            attention.shorter_than(node, keys, lengths),
        ]
        masks += [attention.added(node, each, element) for each in conditions]
    else:
        allowed = attention.within(apart, old, causal=causal, left=left, right=right)
        masks += attention.known_mask(allowed, element)
    return masks


def _given(node: Node, keys: int) -> SSAValue:
    """The operand attn_mask as numbers to add to the scores. Keys after its end are excluded."""
    mask, element = node[3], nn.element_of(node[0])
    if nn.element_of(mask) == i1:
        mask = attention.added(node, mask, element)
    mask = node.cast(mask, element)
    shape = nn.shape_of(mask)
    if not shape or shape[-1] > keys:
        raise node.bad(f"attn_mask of {list(shape)}; the last axis may have {keys} at most")
    missing = keys - shape[-1]
    if missing:
        end = [missing if i == len(shape) - 1 else 0 for i in range(len(shape))]
        mask = node.add(nn.PadOp(mask, [0] * len(shape), end, value=float("-inf")))
    return mask


ATTENTIONS: dict[str, Importer] = {"Attention": _attention}
