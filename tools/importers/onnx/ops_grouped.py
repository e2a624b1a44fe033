"""GroupQueryAttention of onnxruntime: attention with rotated queries and a cache of keys."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..length_values import emitted_length
from ..lengths import Length
from ..padding import length_along, mark
from . import attention
from .node import Importer, Node, Results
from .tensors import Array

REFUSED_OPERANDS = {11: "head_sink", 12: "k_scale", 13: "v_scale"}

REFUSED_FLAGS = ("smooth_softmax", "qk_output", "kv_cache_bit_width")


def _group_query_attention(node: Node) -> Results:
    """Each token attends the tokens up to itself, in the cache too. Returns the output and the new
    cache.

    seqlens_k is the number of keys of each sequence, minus 1. All tokens of a first prompt are new.
    A cache that has room for the new rows, or whose total_sequence_length is not known at import,
    keeps its size: the new rows replace some of it.
    """
    for operand, what in REFUSED_OPERANDS.items():
        if node.has(operand):
            raise node.unsupported(f"operand {operand} ({what})", "leave it out")
    for name in REFUSED_FLAGS:
        if node.integer(name, 0) > 0:
            raise node.unsupported(f"{name} {node.integer(name)}", "0 is")
    heads, few = node.integer("num_heads"), node.integer("kv_num_heads")
    if few < 1 or heads < few or heads % few:
        raise node.bad(f"num_heads {heads}, kv_num_heads {few}; need a multiple of 1 or more")
    query, key, value = _parts(node, heads, few)
    batch, _, tokens, size = nn.shape_of(query)
    if node.has(3) != node.has(4):
        raise node.bad("one of past_key and past_value; need both or none")
    old = node.shape(3)[2] if node.has(3) else 0
    total, count = _total(node, tokens, old), length_along(node, query, 2)
    before = _tokens_before(node, batch, tokens, total, count)
    if node.flag("do_rotary"):
        positions = _positions(node, before, batch, tokens)
        if isinstance(count, Length):
            # The angles of padding are those of position 0: a cache of angles has an end.
            positions = mark(node, positions, {1: count})
        query, key = (_turned(node, each, positions) for each in (query, key))
    keys = old if total is None else max(total, old)
    if isinstance(count, Length) and keys != old:
        raise node.size_refused(f"the number of tokens behind a cache of {old}", count)
    key = _extended(node, 3, key, before, old, keys)
    value = _extended(node, 4, value, before, old, keys)
    scale = node.number("scale", 0.0) or 1.0 / sqrt(size)
    masks = _causal(node, query, before, keys)
    if node.has(10):
        masks = [*masks, node[10]]
    cap = node.number("softcap", 0.0)
    # Each token attends at least the first key.
    found = attention.attend(node, query, key, value, masks, scale=scale, cap=cap, finite=True)
    return [attention.join_heads(node, found.output), key, value]


def _parts(node: Node, heads: int, few: int) -> list[SSAValue]:
    """Queries, keys and values, [batch, heads, tokens, size] each, from three operands or one."""
    if node.has(1) != node.has(2):
        raise node.bad("one of key and value; need both, or one operand that holds all")
    if node.has(1):
        given = ((0, heads), (1, few), (2, few))
        return [attention.split_heads(node, node[i], count) for i, count in given]
    whole = attention.split_heads(node, node[0], heads + 2 * few)
    batch, _, tokens, size = nn.shape_of(whole)
    parts: list[SSAValue] = []
    for first, count in ((0, heads), (heads, few), (heads + few, few)):
        extent = [batch, count, tokens, size]
        parts.append(node.add(nn.SliceOp(whole, [0, first, 0, 0], [1] * 4, extent)))
    return parts


def _total(node: Node, tokens: int, old: int) -> int | None:
    """total_sequence_length, the keys of the longest sequence; None if it depends on inputs."""
    if node.graph.known(node.value(6)) is not None:
        (total,) = node.array_integers(6, "total_sequence_length")
    elif old:
        return None
    else:
        # Without a cache, all keys are new.
        total = tokens
    if not tokens <= total <= old + tokens:
        raise node.bad(f"total_sequence_length {total} of {tokens} tokens and {old} in the cache")
    return total


def _tokens_before(
    node: Node, batch: int, tokens: int, total: int | None, count: int | Length
) -> SSAValue | Array:
    """The number of tokens of each sequence in the cache, [batch]: an array if known at import.

    Args:
        count: the tokens that exist.
    """
    if total == tokens == count:
        return np.zeros(batch, np.int32)
    lengths = node[5]
    if np.prod(nn.shape_of(lengths)) != batch:
        raise node.bad(f"seqlens_k of {list(nn.shape_of(lengths))}; need {[batch]}")
    array = node.graph.known(node.value(5))
    if array is not None and total is not None and isinstance(count, int):
        return array.reshape(batch) + 1 - tokens
    lengths = node.reshape(lengths, (batch,))
    if isinstance(count, int):
        new = node.constant(tokens, lengths)
    else:
        new = node.cast(emitted_length(node, count), nn.element_of(lengths))
    before = node.add(nn.SubOp(node.add(nn.ShiftOp(lengths, 1.0)), new))
    if total is not None or tokens == 1:
        return before
    # The tokens of a first prompt are all new, also those after the end of a shorter sequence.
    given = node.reshape(node[6], (1,))
    is_first = node.add(nn.EqualOp(given, node.cast(new, nn.element_of(given))))
    return node.add(nn.SelectOp(is_first, node.constant(0, before), before))


def _emitted(node: Node, value: SSAValue | Array) -> SSAValue:
    return value if isinstance(value, SSAValue) else node.emitted(value)


def _positions(node: Node, before: SSAValue | Array, batch: int, tokens: int) -> SSAValue:
    """The position of each token, [batch, tokens]."""
    if node.has(9):
        return node.reshape(node[9], (batch, tokens))
    first = node.reshape(_emitted(node, before), (batch, 1))
    steps = node.counted(tokens, numpy_dtype(nn.element_of(first)))
    return node.add(nn.AddOp(first, _emitted(node, steps)))


def _turned(node: Node, value: SSAValue, positions: SSAValue) -> SSAValue:
    """Heads rotated by the angles of their positions."""
    if not (node.has(7) and node.has(8)):
        raise node.bad("do_rotary without cos_cache and sin_cache")
    batch, tokens = nn.shape_of(positions)
    half = node.shape(7)[-1]
    if not 0 < 2 * half <= nn.shape_of(value)[3]:
        raise node.bad(f"a cache of {half} angles for {nn.shape_of(value)[3]} elements")
    rows = [node.add(nn.GatherOp(node[operand], positions, 0)) for operand in (7, 8)]
    cosine, sine = (node.reshape(each, (batch, 1, tokens, half)) for each in rows)
    return attention.rotated(
        node, value, cosine, sine, is_interleaved=node.flag("rotary_interleaved")
    )


def _extended(
    node: Node, operand: int, new: SSAValue, before: SSAValue | Array, old: int, keys: int
) -> SSAValue:
    """A cache with new rows after those of each sequence. Later rows are undefined."""
    if not old:
        return new
    if keys == old:
        return _replaced(node, operand, new, before)
    batch, few, tokens, size = nn.shape_of(new)
    table = node.add(nn.ConcatOp([node[operand], new], 2))
    if not isinstance(before, SSAValue):
        if (before == old).all() and keys == old + tokens:
            return table
        node.check_table(batch, keys)
        places = np.arange(keys)[None, :]
        later = np.minimum(places + old - before[:, None], old + tokens - 1)
        source = _emitted(node, np.where(places < before[:, None], places, later))
    else:
        first = node.reshape(before, (batch, 1))
        dtype = numpy_dtype(nn.element_of(first))
        places = _emitted(node, node.counted(keys, dtype))
        later = node.add(nn.SubOp(node.add(nn.ShiftOp(places, float(old))), first))
        later = node.add(nn.MinOp(later, node.constant(old + tokens - 1, later)))
        source = node.add(nn.SelectOp(node.add(nn.LessOp(places, first)), places, later))
    source = node.reshape(source, (batch, 1, keys, 1))
    whole = node.add(nn.ExpandOp(source, (batch, few, keys, size)))
    return node.add(nn.GatherAlongOp(table, whole, 2))


def _replaced(node: Node, operand: int, new: SSAValue, before: SSAValue | Array) -> SSAValue:
    """A cache in which new rows replace those that follow the rows of each sequence.

    Rows beyond the end of the cache are a fault.
    """
    batch, _, tokens, _ = nn.shape_of(new)
    first = node.reshape(_emitted(node, before), (batch, 1, 1, 1))
    steps = node.counted(tokens, numpy_dtype(nn.element_of(first))).reshape(1, 1, tokens, 1)
    places = node.add(nn.AddOp(first, node.emitted(steps))) if tokens > 1 else first
    return node.add(nn.UpdateOp(new, places, node[operand], "last", 2))


def _causal(
    node: Node, query: SSAValue, before: SSAValue | Array, keys: int
) -> Sequence[attention.Mask]:
    """The masks that keep each token itself and the tokens before it, in a window if there is
    one."""
    tokens, element = nn.shape_of(query)[2], nn.element_of(query)
    window, both = node.integer("local_window_size", -1), attention.BOTH_SIDES
    # A window of w tokens is a token and the w - 1 tokens before it.
    left = window - 1 if window > 0 else both
    distance = attention.distances(node, tokens, keys)
    if not isinstance(before, SSAValue) and (before == before[0]).all():
        allowed = attention.within(distance, int(before[0]), causal=True, left=left, right=both)
        return attention.known_mask(allowed, element)
    conditions = attention.within_offsets(
        node, distance, _emitted(node, before), causal=True, left=left, right=both
    )
    return [attention.added(node, each, element) for each in conditions]


GROUPED: dict[str, Importer] = {"GroupQueryAttention": _group_query_attention}
"""The importer of the domain com.microsoft."""
